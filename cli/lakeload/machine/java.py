"""Selection of Java: JAVA_HOME, PATH or a standard location, without starting it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lakeload.data import read_toml
from lakeload_jobs.contract.errors import MachineNotReady

OLDEST = 17
TOO_NEW = 24
"""Spark 4.1's Hadoop calls `Subject.getSubject`, which Java 24 removed."""

USUAL_PLACES = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/homebrew/opt/openjdk*",
    "/usr/local/opt/openjdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
)


@dataclass(frozen=True)
class Java:
    """One Java runtime: its home, version such as `17.0.15`, and who built it."""

    home: Path
    version: str
    vendor: str

    @property
    def major(self) -> int:
        """17 for `17.0.15`; 8 for `1.8.0_412`."""
        numbers = [int(number) for number in re.findall(r"\d+", self.version)[:2]]
        if len(numbers) == 2 and numbers[0] == 1:
            return numbers[1]
        return numbers[0] if numbers else 0

    @property
    def usable(self) -> bool:
        """Whether Spark 4.1 runs on it."""
        return OLDEST <= self.major < TOO_NEW


def find_java(environment: Mapping[str, str], places: tuple[str, ...] = USUAL_PLACES) -> Java:
    """Return the first usable Java of JAVA_HOME, PATH and the usual places, in that order.

    Raises `MachineNotReady` naming every Java that was found and the command that installs one.
    """
    found: dict[Path, Java] = {}
    for home in _homes(environment, places):
        java = found.get(home) or read_java(home)
        if java is None:
            continue
        if java.usable:
            return java
        found[home] = java
    raise _no_java(tuple(found.values()))


def read_java(home: Path) -> Java | None:
    """Return the Java installed in `home`, or None when there is none.

    The `release` file tells in no time; only builds without one are started to ask.
    """
    executable = home / "bin" / "java"
    if not os.access(executable, os.X_OK):
        return None
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return _ask_java(home, executable)
    values = dict(re.findall(r'^(\w+)="([^"]*)"', text, re.MULTILINE))
    if "JAVA_VERSION" not in values:
        return _ask_java(home, executable)
    return Java(home, values["JAVA_VERSION"], values.get("IMPLEMENTOR", "unknown vendor"))


def install_command(platform: str, os_release: str, what: str = "java") -> str:
    """Return the command for this system that installs a Java which Spark 4.1 runs on, or what
    else install.toml names.

    `os_release` is the text of /etc/os-release, empty where there is none.
    """
    values = dict(re.findall(r'^(ID|ID_LIKE|VERSION_ID)="?([^"\n]*)"?$', os_release, re.MULTILINE))
    version = values.get("VERSION_ID", "").partition(".")[0]
    names = [platform, values.get("ID", ""), *values.get("ID_LIKE", "").split()]
    if names[1] == "debian" and version.isdecimal() and int(version) >= 13:
        names.insert(0, "debian 13 or newer")
    commands = read_toml(__package__, "install.toml")[what]
    found: str = next(
        (one["run"] for name in names for one in commands if name in one["on"]), commands[-1]["run"]
    )
    return found


def _homes(environment: Mapping[str, str], places: tuple[str, ...]) -> Iterator[Path]:
    if configured := environment.get("JAVA_HOME"):
        yield Path(configured)
    if on_path := shutil.which("java", path=environment.get("PATH", "")):
        yield Path(on_path).resolve().parent.parent
    for pattern in places:
        path = Path(pattern.replace("~", environment.get("HOME", "~"), 1))
        yield from sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))


def _ask_java(home: Path, executable: Path) -> Java | None:
    try:
        answer = subprocess.run(  # noqa: S603 (the path was found by us, no shell)
            [str(executable), "-version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r'version "([^"]+)"', answer.stderr)
    return Java(home, version[1], "unknown vendor") if version else None


def _no_java(found: tuple[Java, ...]) -> MachineNotReady:
    try:
        os_release = Path("/etc/os-release").read_text(encoding="utf-8")
    except OSError:
        os_release = ""
    hint = install_command(sys.platform, os_release)
    if not found:
        return MachineNotReady("Spark needs Java 17 or 21 and no Java was found", hint=hint)
    listed = ", ".join(f"Java {java.version} in `{java.home}`" for java in found)
    return MachineNotReady(
        f"Spark needs Java 17 or 21 and this machine has only {listed}",
        hint=f"{hint}  (or set JAVA_HOME to an installed one)",
    )
