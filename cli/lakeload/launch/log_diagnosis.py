"""The probable cause of a launch that left no result, from the text of its log. Pure."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

from lakeload_jobs.contract.errors import ExitCode

LONGEST = 500


@dataclass(frozen=True)
class Cause:
    """What probably happened, what to do about it, and the exit code that goes with it."""

    message: str
    hint: str | None
    exit_code: ExitCode


_MEMORY_HINT = "raise `spark.driver_memory` in the pipeline (for example to 8g)"
_LESS_MEMORY_HINT = "lower `spark.driver_memory` in the pipeline, or free memory on this machine"

# Looked for in this order: the first that matches explains the most. `{1}` is the first group.
_SIGNS: tuple[tuple[str, str, str | None, ExitCode], ...] = (
    (
        r"insufficient memory for the Java Runtime|Could not reserve enough space"
        r"|Cannot allocate memory|Invalid maximum heap size",
        "Java could not get the memory it was told to take",
        _LESS_MEMORY_HINT,
        ExitCode.MACHINE,
    ),
    (
        r"OutOfMemoryError: (Java heap space|GC overhead limit exceeded)",
        "the JVM ran out of memory ({1})",
        _MEMORY_HINT,
        ExitCode.MACHINE,
    ),
    (
        r"OutOfMemoryError: unable to create (?:new )?native thread",
        "the JVM could not start another thread",
        "raise the limit of processes (`ulimit -u`, or the container's pids limit)",
        ExitCode.MACHINE,
    ),
    (
        r"Error occurred during initialization of VM\n(.+)",
        "Java did not start ({1})",
        "look at `spark.driver.extraJavaOptions`, JAVA_TOOL_OPTIONS and SPARK_SUBMIT_OPTS",
        ExitCode.MACHINE,
    ),
    (
        r"No space left on device|Disk quota exceeded",
        "the disk is full",
        "free space in the temporary folder, or name another with `--conf spark.local.dir=…`",
        ExitCode.MACHINE,
    ),
    (
        r"UnsupportedClassVersionError",
        "this Java is too old for Spark",
        "point JAVA_HOME at a Java 17 or 21",
        ExitCode.MACHINE,
    ),
    (
        r"UnsupportedOperationException: getSubject is (?:not )?supported",
        "this Java is too new for Spark's Hadoop",
        "point JAVA_HOME at a Java 17 or 21",
        ExitCode.MACHINE,
    ),
    (
        r"JAVA_HOME is not set|Unable to locate a Java Runtime|java: (?:command )?not found"
        r"|bin/java: No such file",
        "there is no Java to run Spark with",
        "point JAVA_HOME at a Java 17 or 21",
        ExitCode.MACHINE,
    ),
    (
        r"Failed to find Spark jars directory|Could not find or load main class org\.apache\.spark",
        "this Spark installation is incomplete",
        "pip install --force-reinstall 'pyspark>=4.1,<4.2'",
        ExitCode.MACHINE,
    ),
    (
        r"(?:ClassNotFoundException|NoClassDefFoundError): ([\w.$/]+)",
        "the class `{1}` was not found",
        "add the jar that holds it with `--conf spark.jars=…`",
        ExitCode.MACHINE,
    ),
    (
        r"Master must either be|Could not parse Master URL",
        "Spark does not understand the master",
        "give `--master` as local[N] or spark://host:port",
        ExitCode.INVALID,
    ),
    (
        r"All masters are unresponsive",
        "the Spark master did not answer",
        "check `--master` and that the cluster is up",
        ExitCode.REFUSED,
    ),
    (
        r"Service 'sparkDriver' could not bind|BindException",
        "Spark could not open a port for its driver",
        "set `--conf spark.driver.bindAddress=127.0.0.1`",
        ExitCode.MACHINE,
    ),
    (
        r"UnknownHostException: ([\w.-]+)",
        "the name `{1}` could not be resolved",
        "check the name; if it is this machine's own, add it to /etc/hosts",
        ExitCode.MACHINE,
    ),
)

_LOST_JVM = re.compile(
    r"Py4J(?:Network)?Error|Answer from Java side is empty|py4j.*ConnectionRefused"
)
_TRACEBACK = re.compile(
    r"^Traceback \(most recent call last\):\n((?:[ \t].*\n)+)(\S.*)$", re.MULTILINE
)


def probable_cause(log: str, exit_status: int, opened: bool) -> Cause:
    """Return what the log suggests; `exit_status` is spark-submit's, negative after a signal."""
    for pattern, message, hint, code in _SIGNS:
        if match := re.search(pattern, log):
            return Cause(message.replace("{1}", match[match.lastindex or 0]), hint, code)
    code = ExitCode.TABLE_FAILED if opened else ExitCode.MACHINE
    if exit_status in (-signal.SIGKILL, 128 + signal.SIGKILL):
        return Cause(
            "it was killed, most likely by the system for lack of memory",
            "lower `spark.driver_memory` if the machine is short of memory (look with `dmesg`)",
            ExitCode.MACHINE,
        )
    if exit_status in (-signal.SIGTERM, 128 + signal.SIGTERM):
        return Cause("somebody else terminated it", None, ExitCode.INTERRUPTED)
    if python := shortest_traceback(log):
        # The job catches what it expects; what it could not even import, this machine lacks.
        lacking = python.startswith(("ModuleNotFoundError", "ImportError"))
        hint = "reinstall lakeload in this environment" if lacking else None
        code = code if opened or lacking else ExitCode.BUG
        return Cause(python, hint, code)
    if _LOST_JVM.search(log):
        return Cause("the Python driver lost its JVM", _MEMORY_HINT, ExitCode.MACHINE)
    if line := _last_complaint(log):
        return Cause(line, None, code)
    return Cause("its log is empty" if not log.strip() else "its log names no cause", None, code)


def shortest_traceback(log: str) -> str | None:
    """Return the last line of the shortest Python traceback: the root of a chain is the shortest.

    Tracebacks that only say that the JVM is gone explain nothing and are passed over.
    """
    found = [
        (match[1].count("\n"), match[2])
        for match in _TRACEBACK.finditer(log)
        if not _LOST_JVM.search(match[2])
    ]
    return _cut(min(found)[1]) if found else None


def _last_complaint(log: str) -> str | None:
    complaints = [
        line
        for line in log.splitlines()
        if re.search(r"\bERROR\b|^Error:|^Exception in thread|^Caused by:|: error:", line)
    ]
    return _cut(complaints[-1].strip()) if complaints else None


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
