"""What the log says about a job that left no result."""

from __future__ import annotations

import pytest

from lakeload.launch.outcome import probable_cause, shortest_traceback
from lakeload_jobs.contract.errors import ExitCode

CHAINED = """\
26/11/21 WARN something
Traceback (most recent call last):
  File "a.py", line 1, in <module>
    one()
  File "b.py", line 2, in one
    two()
ValueError: the wrapper

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "c.py", line 3, in two
    int("x")
KeyError: 'the root'
Traceback (most recent call last):
  File "d.py", line 3
py4j.protocol.Py4JNetworkError: Answer from Java side is empty
"""
VM = "Error occurred during initialization of VM\n"


@pytest.mark.parametrize(
    ("log", "status", "words", "hint", "code"),
    [
        ("java.lang.OutOfMemoryError: Java heap space", 1, "Java heap space", "spark.driver_m", 4),
        ("x OutOfMemoryError: GC overhead limit exceeded", 52, "GC overhead", "raise", 4),
        (
            "Could not reserve enough space for 8388608KB object heap",
            1,
            "its configured memory",
            "lower",
            4,
        ),
        ("java.io.IOException: No space left on device", 1, "disk is full", "spark.local.dir", 4),
        (f"{VM}Multiple garbage collectors selected", 1, "(Multiple g", "JAVA_TOOL_OPTIONS", 4),
        (
            f"{VM}Could not reserve enough space for object heap",
            1,
            "its configured memory",
            "lower",
            4,
        ),
        ("JAVA_HOME is not set", 1, "no Java", "JAVA_HOME", 4),
        ("java.lang.UnsupportedClassVersionError: x", 1, "too old", "17 or 21", 4),
        ("UnsupportedOperationException: getSubject is not supported", 1, "too new", "17", 4),
        ("java.lang.ClassNotFoundException: org.x.Driver", 1, "`org.x.Driver`", "spark.jars", 4),
        ("Error: Master must either be yarn or start with spark", 1, "master", "--master", 2),
        ("SparkException: Could not parse Master URL: 'x'", 1, "master", "--master", 2),
        ("All masters are unresponsive! Giving up.", 1, "did not respond", "--master", 3),
        ("BindException: Cannot assign: Service 'sparkDriver'", 1, "port", "bindAddress", 4),
        ("java.net.UnknownHostException: box7: box7: x", 1, "`box7`", "/etc/hosts", 4),
        ("", -9, "killed", "spark.driver_memory", 4),
        ("", 137, "killed", "spark.driver_memory", 4),
        ("", 143, "terminated", None, 130),
        ("py4j.protocol.Py4JError: gone", 1, "lost its JVM", "spark.driver_memory", 4),
        (CHAINED, 1, "KeyError: 'the root'", None, 1),
        ("INFO fine\nERROR SparkContext: it broke", 1, "it broke", None, 1),
        ("", 1, "empty", None, 1),
        ("all is well", 1, "names no cause", None, 1),
    ],
)
def test_the_log_names_its_cause(
    log: str, status: int, words: str, hint: str | None, code: int
) -> None:
    cause = probable_cause(log, status, opened=True)
    assert words in cause.message
    assert cause.exit_code == code
    if hint is None:
        assert cause.hint is None
    else:
        assert cause.hint is not None
        assert hint in cause.hint


def test_job_that_never_opened_is_a_machine_error() -> None:
    assert probable_cause("", 1, opened=False).exit_code == ExitCode.MACHINE


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("ModuleNotFoundError: No module named 'arro3'", ExitCode.MACHINE),
        ("NameError: name 'x' is not defined", ExitCode.BUG),
    ],
)
def test_traceback_before_the_job_opened_is_a_missing_package_or_a_bug(
    error: str, code: ExitCode
) -> None:
    log = f'Traceback (most recent call last):\n  File "a.py", line 1\n{error}\n'
    cause = probable_cause(log, 1, opened=False)
    assert (cause.message, cause.exit_code) == (error, code)


def test_a_log_without_traceback_has_none() -> None:
    assert shortest_traceback("Traceback (most recent call last):\nValueError: no frames") is None


def test_a_very_long_message_is_cut() -> None:
    cause = probable_cause("ERROR " + "x" * 10_000, 1, opened=True)
    assert len(cause.message) == 500
