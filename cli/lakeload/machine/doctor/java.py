"""Java: which one a load would run, where it comes from, and whether it is whole."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from lakeload.machine.doctor.fixes import export
from lakeload.machine.doctor.model import Finding, Patient, Status
from lakeload.machine.local.java import Java, find_java, install_command, read_java
from lakeload_jobs.contract.errors import MachineLacks

NEEDED_MODULES = (
    "java.desktop",
    "java.logging",
    "java.management",
    "java.naming",
    "java.security.jgss",
    "java.sql",
    "java.xml",
    "jdk.security.auth",
    "jdk.unsupported",
)
"""What Spark and Hadoop load from beside java.base; runtimes made with jlink may leave them out."""


def java(patient: Patient) -> Iterator[Finding]:
    """Find the Java that `sync` would run; say what is wrong with JAVA_HOME where it is set."""
    host = patient.host
    install = install_command(host.platform, host.os_release)
    try:
        used = find_java(host.environment, host.java_places)
    except MachineLacks as lacks:
        yield Finding("java", Status.PROBLEM, lacks.message, _why(lacks.message), install)
        yield from _java_home(patient, None)
        return
    found = f"Java {used.version} ({used.vendor}) in `{used.home}`, {_origin(patient, used)}"
    if missing := missing_modules(used.home):
        why = f"this runtime lacks {_listed(missing)}, which Spark loads"
        yield Finding("java", Status.PROBLEM, found, why, install)
    else:
        yield Finding("java", Status.OK, found)
    yield from _java_home(patient, used)


def missing_modules(home: Path) -> tuple[str, ...]:
    """Return which needed modules the runtime's `release` file does not list; () without a list."""
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    listed = re.search(r'^MODULES="([^"]*)"', text, re.MULTILINE)
    if listed is None:
        return ()
    there = set(listed[1].split())
    return tuple(module for module in NEEDED_MODULES if module not in there)


def _java_home(patient: Patient, used: Java | None) -> Iterator[Finding]:
    """JAVA_HOME that is set and not what runs; lakeload passes it over, other programs do not."""
    value = patient.environment.get("JAVA_HOME")
    if not value or (used is not None and used.home == Path(value)):
        return
    there = read_java(Path(value))
    if there is not None:
        found = f"JAVA_HOME is `{value}` with Java {there.version}"
        why = "Spark 4.1 needs Java 17 or newer, and not yet 24"
    elif not Path(value).exists():
        found, why = f"JAVA_HOME is `{value}`, and there is nothing", ""
    else:
        found = f"JAVA_HOME is `{value}`, and no Java is there"
        why = "it has to be the folder above `bin/java`"
    if used is None:
        yield Finding("java-home", Status.WARNING, found, why, "unset JAVA_HOME")
        return
    instead = f"lakeload takes Java {used.version} instead; other programs may fail"
    told = f"{why}; {instead}" if why else instead
    yield Finding("java-home", Status.WARNING, found, told, export("JAVA_HOME", used.home))


def _origin(patient: Patient, used: Java) -> str:
    configured = patient.environment.get("JAVA_HOME")
    if configured and Path(configured) == used.home:
        return "from JAVA_HOME"
    on_path = shutil.which("java", path=patient.environment.get("PATH", ""))
    if on_path and Path(on_path).resolve().parent.parent == used.home:
        return "from PATH"
    return "from one of the usual places"


def _why(message: str) -> str:
    if "only Java" not in message:
        return "Spark runs on Java"
    return "Spark 4.1 needs Java 17 or newer, and its Hadoop cannot run on Java 24 or newer"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)
