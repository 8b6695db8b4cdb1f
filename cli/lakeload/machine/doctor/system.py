"""The system: open files, and a host name that leads back to this machine."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator

from lakeload.machine.doctor.model import Finding, Patient, Status
from lakeload.runtimes.registry import runtime_of

FILES = 1024
"""What Linux grants by default; macOS grants 256, and Spark's class path alone has more."""


def open_files(patient: Patient) -> Iterator[Finding]:
    """Look at how many files a process may have open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield judge_open_files(soft, hard)


def judge_open_files(soft: int, hard: int) -> Finding:
    """Return the finding for the two limits of open files; RLIM_INFINITY is none."""
    if soft == resource.RLIM_INFINITY or soft >= FILES:
        shown = "any number of" if soft == resource.RLIM_INFINITY else f"{soft:,}"
        return Finding("open-files", Status.OK, f"a process may have {shown} files open")
    found = f"a process may have {soft:,} files open"
    reachable = hard == resource.RLIM_INFINITY or hard >= 4 * FILES
    least = 4 * FILES if reachable else hard
    why = f"Spark and the uploads of several tables need {FILES:,} or more"
    command = f"ulimit -n {least}" if least >= FILES else "sudo prlimit --pid $$ --nofile=4096:4096"
    return Finding("open-files", Status.WARNING, found, why, command)


def host_name(patient: Patient) -> Iterator[Finding]:
    """Tell whether this machine's name resolves; Spark asks for it when it starts."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except (OSError, UnicodeError):
        yield judge_host_name(name, patient, resolves=False)
    else:
        yield judge_host_name(name, patient, resolves=True)


def judge_host_name(name: str, patient: Patient, *, resolves: bool) -> Finding:
    """Return the finding for this machine's name.

    Where lakeload gives Spark the loopback address, the name is not needed.
    """
    if resolves:
        return Finding("host-name", Status.OK, f"the host name `{name}` resolves")
    found = f"the host name `{name}` does not resolve"
    command = f"echo '127.0.1.1 {name}' | sudo tee -a /etc/hosts"
    if "spark.driver.host" in runtime_of(patient.need.master).properties((), {}):
        why = "lakeload gives Spark 127.0.0.1 instead; other programs that use Spark will not start"
        return Finding("host-name", Status.WARNING, found, why, command)
    why = "executors on other machines reach the driver by its name"
    return Finding("host-name", Status.PROBLEM, found, why, command)
