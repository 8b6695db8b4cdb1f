"""Python: its version and its text encoding."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator

from lakeload.machine.doctor.fixes import python_command
from lakeload.machine.doctor.model import Finding, Patient, Status

OLDEST, TOO_NEW = (3, 11), (3, 15)
"""Supported are versions from the first up to, but not with, the second."""


def python_version(patient: Patient) -> Iterator[Finding]:
    """Compare the Python that runs lakeload with the supported range."""
    yield judge(sys.version_info[:2], patient)


def judge(version: tuple[int, int], patient: Patient) -> Finding:
    """Return the finding for a version such as (3, 11)."""
    text = ".".join(map(str, version))
    system = f"{platform.system()} {platform.machine()}"
    found = f"Python {text} in `{sys.executable}`, on {system}"
    if version < OLDEST:
        why = "lakeload needs Python 3.11 or newer"
        command = python_command(patient.host.platform, patient.host.os_release)
        return Finding("python", Status.PROBLEM, found, why, command)
    if version >= TOO_NEW:
        why = "lakeload is tested with Python 3.11 to 3.14"
        command = python_command(patient.host.platform, patient.host.os_release)
        return Finding("python", Status.WARNING, found, why, command)
    if patient.host.platform == "win32":
        why = "lakeload needs Linux or macOS; on Windows, run it in WSL"
        return Finding("python", Status.PROBLEM, found, why, "wsl --install")
    return Finding("python", Status.OK, found)


def encoding(patient: Patient) -> Iterator[Finding]:
    """Tell whether names of files that are not ASCII survive."""
    yield judge_encoding(sys.getfilesystemencoding(), patient)


def judge_encoding(name: str, patient: Patient) -> Finding:
    """Return the finding for the encoding of file names; Java goes by the locale's variables.

    Python makes UTF-8 of the C locale by itself (PEP 538, PEP 540); Java 17 does not, and then
    cannot open files whose names are not ASCII.
    """
    variables = patient.environment
    setting = next((key for key in ("LC_ALL", "LC_CTYPE", "LANG") if variables.get(key)), None)
    value = variables[setting] if setting else ""
    told = f"`{setting}={value}`" if setting else "no locale is set"
    utf8 = value.lower().replace("-", "").partition(".")[2].startswith("utf8")
    if patient.host.platform == "darwin" and name == "utf-8":
        return Finding("encoding", Status.OK, "file names are UTF-8")
    if utf8 and name == "utf-8":
        return Finding("encoding", Status.OK, f"UTF-8, from {told}")
    why = "Java cannot open files whose names are not ASCII"
    command = f"export {setting or 'LC_ALL'}=C.UTF-8"
    return Finding("encoding", Status.WARNING, f"{told}: not UTF-8", why, command)
