"""Spark: which one `sync` submits to, and which variables name another."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from lakeload.machine.doctor.fixes import install_bash
from lakeload.machine.doctor.model import Finding, Patient, Status
from lakeload.machine.local.spark import SUPPORTED, find_spark, read_version
from lakeload_jobs.contract.errors import MachineLacks

REINSTALL = f"{sys.executable} -m pip install --force-reinstall 'pyspark>=4.1,<4.2'"


def spark(patient: Patient) -> Iterator[Finding]:
    """Find the installed pyspark, SPARK_HOME, and the spark-submit that would be started."""
    yield from judge_pyspark(pyspark_home(), patient)
    yield from _other_submit(patient)
    yield from _other_python(patient)
    yield from _bash(patient)


def pyspark_home() -> Path | None:
    """Return the folder of the installed pyspark, without importing it; None when there is none."""
    found = importlib.util.find_spec("pyspark")
    return Path(found.origin).parent if found is not None and found.origin else None


def judge_pyspark(installed: Path | None, patient: Patient) -> Iterator[Finding]:
    """Compare pip's pyspark in `installed` and SPARK_HOME with the supported line of Spark."""
    version = read_version(installed) if installed else None
    chosen = patient.environment.get("SPARK_HOME", "")
    # A Spark of the user's own does without pip's.
    weight = Status.WARNING if chosen else Status.PROBLEM
    if installed is None:
        yield Finding("pyspark", weight, "pyspark is not installed", _NEEDS, REINSTALL)
    elif version is None or not (installed / "bin" / "spark-submit").is_file():
        found = f"the pyspark in `{installed}` has no Spark in it"
        yield Finding("pyspark", weight, found, _NEEDS, REINSTALL)
    elif not version.startswith(f"{SUPPORTED}."):
        found = f"pyspark {version} in `{installed}`"
        yield Finding("pyspark", weight, found, _NEEDS, REINSTALL)
    else:
        yield Finding("pyspark", Status.OK, f"pyspark {version} in `{installed}`")
    if chosen:
        yield _spark_home(patient, Path(chosen), version)


_NEEDS = f"lakeload needs Spark {SUPPORTED}.x, which comes with pyspark >=4.1,<4.2"


def _spark_home(patient: Patient, chosen: Path, version: str | None) -> Finding:
    try:
        used = find_spark(patient.environment)
    except MachineLacks as lacks:
        why = "`sync` takes the Spark of SPARK_HOME and no other"
        return Finding("spark-home", Status.PROBLEM, lacks.message, why, "unset SPARK_HOME")
    found = f"SPARK_HOME is `{chosen}` with Spark {used.version}: `sync` runs this one"
    if not os.access(used.submit, os.X_OK):
        why = f"`{used.submit}` cannot be executed"
        command = f"chmod +x '{used.submit}'"
        return Finding("spark-home", Status.PROBLEM, found, why, command)
    if version is not None and used.version != version:
        why = f"it differs from the installed pyspark {version}, which lakeload is tested with"
        return Finding("spark-home", Status.WARNING, found, why, "unset SPARK_HOME")
    return Finding("spark-home", Status.OK, found)


def _other_submit(patient: Patient) -> Iterator[Finding]:
    try:
        used = find_spark(patient.environment)
    except MachineLacks:
        return
    found = f"`{used.submit}`"
    if used.submit.is_file() and not os.access(used.submit, os.X_OK):
        why = "it cannot be executed: was it copied without its modes?"
        yield Finding("spark-submit", Status.PROBLEM, found, why, f"chmod +x '{used.submit}'")
        return
    on_path = shutil.which("spark-submit", path=patient.environment.get("PATH", ""))
    if on_path and not _starts(Path(on_path), used.submit):
        found += f"; the `{on_path}` of PATH is not used"
    yield Finding("spark-submit", Status.OK, found)


def _starts(script: Path, submit: Path) -> bool:
    """Whether a script is that spark-submit, or pip's copy of it, which leads to the same Spark."""
    return script.resolve() == submit.resolve() or script.parent == Path(sys.executable).parent


def _other_python(patient: Patient) -> Iterator[Finding]:
    """PYSPARK_PYTHON: without effect here, because driver and tasks need lakeload's packages."""
    named = {
        name: value
        for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
        if (value := patient.environment.get(name)) and not _same_python(value, patient)
    }
    if not named:
        return
    told = ", ".join(f"{name} is `{value}`" for name, value in named.items())
    why = f"lakeload runs driver and tasks with its own Python, `{sys.executable}`"
    yield Finding("pyspark-python", Status.WARNING, told, why, "unset " + " ".join(named))


def _same_python(value: str, patient: Patient) -> bool:
    path = shutil.which(value, path=patient.environment.get("PATH", ""))
    # Links lead out of a virtual environment to the Python it was made from: paths are compared.
    return path is not None and Path(path).absolute() == Path(sys.executable).absolute()


def _bash(patient: Patient) -> Iterator[Finding]:
    if shutil.which("bash", path=patient.environment.get("PATH", os.defpath)) is None:
        command = install_bash(patient.host.platform, patient.host.os_release)
        if Path("/bin/bash").is_file():
            command = 'export PATH="$PATH:/usr/bin:/bin"'
        why = "spark-submit is a script for bash"
        yield Finding("bash", Status.PROBLEM, "there is no bash on PATH", why, command)
