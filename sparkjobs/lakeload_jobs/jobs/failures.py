"""Any exception → one sentence a person can act on, with its exit code.

Spark wraps the cause of a failure in several layers; what counts is the error class it prints in
brackets, and the innermost cause.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from lakeload_jobs.contract.errors import DISK_FULL_HINT, ExitCode, LakeloadError, docs_link
from lakeload_jobs.contract.events import Stage
from lakeload_jobs.contract.result import ErrorInfo
from lakeload_jobs.rows.failures import expected_failure, failure_in
from lakeload_jobs.sources.databases.engines.registry import BY_URL, ENGINES
from lakeload_jobs.sources.files.files_in_use import FOLDER, take_left_in_use
from lakeload_jobs.sources.paths.spark_paths import plain_path

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]\s*(.*)", re.DOTALL)
# What follows the reason: Spark's advice to programmers, the state, the query.
_AFTER = re.compile(r"\s*(?:Correct the value as per|SQLSTATE: [0-9A-Z]{5}).*", re.DOTALL)
_FILE = re.compile(
    r"((?:file:/*|s3a://)\S.*?)\.?(?=\s{2}|\s+SQLSTATE|\. Could not|\. File does not|$)",
    re.MULTILINE,
)
_PARSE_MODE = re.compile(r"\s*Parse Mode: .*", re.DOTALL)
_MEMORY_HINT = (
    "set `spark: {driver_memory: …}` in the pipeline higher (with executors of their own: "
    "`spark.executor.memory` in `spark.conf`)"
)
_JAVA_ERRORS = {
    engine.facts.java_error: engine for engine in ENGINES.values() if engine.facts.java_error
}
JAVA_GONE = "JavaGone"
"""The type of the error of a job whose JVM has died."""
_MAX_TEXT = 400
_MAX_CAUSES = 16


@dataclass(frozen=True)
class _Cause:
    """One Java exception of a chain."""

    name: str
    text: str
    sqlstate: str | None = None

    @property
    def condition(self) -> str | None:
        """Spark's error class, such as `CAST_INVALID_INPUT`."""
        found = _CONDITION.match(self.text)
        return found[1] if found else None

    @property
    def sentence(self) -> str:
        """The text without its brackets, SQLSTATE and query."""
        found = _CONDITION.match(self.text)
        return _short(_AFTER.sub("", found[2] if found else self.text))


def describe(error: BaseException, stage: Stage | None) -> ErrorInfo:
    """Return what `error` says to the user. `stage` is the step it happened in."""
    expected = expected_failure(error)
    if expected is not None:
        return ErrorInfo.of(expected, stage)
    if isinstance(error, PySparkException | Py4JError):
        return replace(_from_spark(error), stage=stage)
    if isinstance(error, ConnectionError | EOFError):
        return replace(_java_gone(), stage=stage)
    name = type(error).__name__
    return replace(_bug(name, f"{name}: {_short(str(error))}"), stage=stage)


def _bug(kind: str, what: str) -> ErrorInfo:
    return ErrorInfo(
        type=kind,
        message=f"a bug in lakeload: {what}",
        exit_code=int(ExitCode.BUG),
        hint="the traceback is in spark.log; report it",
        docs=docs_link("Bug"),
    )


def _from_spark(error: BaseException) -> ErrorInfo:
    try:
        # Py4JJavaError asks the JVM for its text, which may be gone by now.
        text = str(error)
    except (Py4JError, OSError):
        return _java_gone()
    if isinstance(error, Py4JNetworkError):
        return _java_gone()
    if failure := failure_in(text):
        return failure
    causes = list(_causes(error)) or [_Cause(type(error).__name__, text.strip())]
    for cause in causes:
        if failure := failure_in(cause.text):
            return failure
    for reader in (_out_of_memory, _sql_error, _disk_full, _worker_died, _bad_file, _python_error):
        if info := reader(causes):
            return info
    named = [cause for cause in causes if cause.condition] or causes[-1:]
    return _failed(named[-1].condition or named[-1].name, named[-1].sentence)


def _causes(error: BaseException) -> Iterator[_Cause]:
    """Walk the chain of Java exceptions; nothing when the JVM no longer answers."""
    java: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    try:
        for _ in range(_MAX_CAUSES):
            if java is None:
                return
            name = str(java.getClass().getName())
            # The message of an analysis has the plan, with texts of conditions and of data.
            plan = name.endswith("AnalysisException")
            text = java.getSimpleMessage() if plan else java.getMessage()
            yield _Cause(name, str(text or "").strip(), _sqlstate(java))
            java = java.getCause()
    except (Py4JError, OSError):
        return


def _sqlstate(java: Any) -> str | None:
    """Return the SQLSTATE of an exception, None where it is no error of a database."""
    try:
        state = java.getSQLState()
    except Py4JError:
        return None
    return state or ""


def _out_of_memory(causes: list[_Cause]) -> ErrorInfo | None:
    if not any(
        "OutOfMemoryError" in cause.name or "java.lang.OutOfMemoryError" in cause.text
        for cause in causes
    ):
        return None
    message = "Spark's Java process ran out of memory: `driver_memory` is too small"
    return ErrorInfo("OutOfMemory", message, int(ExitCode.MACHINE), _MEMORY_HINT)


def _disk_full(causes: list[_Cause]) -> ErrorInfo | None:
    # Java has no code for it. Several classes carry the text, and it may be in a trace.
    texts = ("No space left on device", "Disk quota exceeded")
    if not any(text in cause.text for cause in causes for text in texts):
        return None
    message = "the disk is full: Spark could not write its temporary files"
    return ErrorInfo("DiskFull", message, int(ExitCode.MACHINE), DISK_FULL_HINT)


def _sql_error(causes: list[_Cause]) -> ErrorInfo | None:
    """A statement that a database has rejected, or a connection that was lost."""
    for cause in causes:
        if (engine := _JAVA_ERRORS.get(cause.name)) is not None:
            return ErrorInfo.of(engine.failure("reading the source", cause.sqlstate, cause.text))
        if cause.sqlstate is not None:
            return ErrorInfo.of(BY_URL.failure("reading the source", cause.sqlstate, cause.text))
    return None


def _worker_died(causes: list[_Cause]) -> ErrorInfo | None:
    for cause in causes:
        if "Python worker exited unexpectedly" in cause.text:
            folder = os.environ.get(FOLDER)
            if folder is not None and (files := take_left_in_use(Path(folder))):
                return _worker_died_at(files)
            return ErrorInfo(
                type="WorkerDied",
                message=(
                    "a Python worker of Spark was killed, usually by the operating "
                    "system because memory ran out"
                ),
                exit_code=int(ExitCode.MACHINE),
                hint="lower `spark.driver_memory` to leave more memory for Python, use fewer cores "
                "(`local[2]`), or a larger machine",
                retryable=True,
            )
    return None


def _worker_died_at(files: Sequence[str]) -> ErrorInfo:
    return ErrorInfo(
        type="WorkerDied",
        message=f"a Python worker of Spark ended while it read `{'`, `'.join(files)}`: native code "
        "ended it at damage in the file, or the operating system because memory ran out",
        exit_code=int(ExitCode.MACHINE),
        hint="check the file for damage; for memory, lower `spark.driver_memory` or use fewer "
        "cores (`local[2]`)",
        retryable=True,
    )


def _bad_file(causes: list[_Cause]) -> ErrorInfo | None:
    """A file that cannot be read, or one record of it."""
    file = next((found for cause in causes if (found := _file_in(cause.text))), None)
    record = next((c for c in causes if (c.condition or "").startswith("MALFORMED_RECORD")), None)
    where = f"reading `{file}`" if file else "reading the source"
    inner = causes[-1].sentence
    if record is not None:
        what = _short(_PARSE_MODE.sub("", record.sentence))
        what = what.removeprefix("Malformed records are detected in record parsing: ")
        why = "" if causes[-1] is record else f": {inner}"
        return _failed(
            "MalformedRecord",
            f"{where}: the record `{what.rstrip('. ')}` cannot be read{why}",
            hint="fix the file, give the column another type with `columns.types`, or set "
            "`on_bad_value: 'NULL'`",
        )
    if any((cause.condition or "").startswith("FAILED_READ_FILE") for cause in causes):
        return _failed(
            "UnreadableFile",
            f"{where}: {inner}",
            hint="check that the file is complete, and that `format` and `options` are right",
        )
    return None


def _file_in(text: str) -> str | None:
    found = _FILE.search(text) if "reading file" in text else None
    if not found:
        return None
    if found[1].startswith("s3a:"):
        return plain_path(found[1])
    return plain_path("file:///" + found[1].removeprefix("file:").lstrip("/"))


def _python_error(causes: list[_Cause]) -> ErrorInfo | None:
    """A worker's traceback: its last line names the exception."""
    for cause in causes:
        if "Traceback (most recent call last)" in cause.text:
            last = cause.text.strip().splitlines()[-1]
            if last.startswith("MemoryError"):
                return ErrorInfo.of(_expected(MemoryError()))
            return _bug(last.partition(":")[0], f"a Python worker failed with {_short(last)}")
    return None


def _expected(error: BaseException) -> LakeloadError:
    failure = expected_failure(error)
    if failure is None:
        raise TypeError(f"{type(error).__name__} is not an expected failure")
    return failure


def _java_gone() -> ErrorInfo:
    return ErrorInfo(
        type=JAVA_GONE,
        message=(
            "Spark's Java process ended unexpectedly; if memory ran out, "
            "`spark.driver_memory` is too small"
        ),
        exit_code=int(ExitCode.MACHINE),
        hint=f"check the end of spark.log; for memory, {_MEMORY_HINT}",
        retryable=True,
    )


def _failed(kind: str, message: str, hint: str | None = None) -> ErrorInfo:
    return ErrorInfo(
        type=kind.rpartition(".")[2] if "." in kind and kind[0].islower() else kind,
        message=message,
        exit_code=int(ExitCode.TABLE_FAILED),
        hint=hint,
    )


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _MAX_TEXT else flat[: _MAX_TEXT - 1] + "…"
