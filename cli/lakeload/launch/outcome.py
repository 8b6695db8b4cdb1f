"""Outcome of a run: its result file, its exit status, its log."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeVar

from lakeload.config.document import quoted
from lakeload.data import read_toml
from lakeload_jobs.contract.codec import CodecError, from_json
from lakeload_jobs.contract.errors import (
    DISK_FULL_HINT,
    ExitCode,
    Interrupted,
    LakeloadError,
    shared_exit,
)
from lakeload_jobs.contract.events import Event, Stage
from lakeload_jobs.contract.maintain import MaintainResult
from lakeload_jobs.contract.plan import PlanResult
from lakeload_jobs.contract.result import GOOD, ErrorInfo, RunResult, TableResult
from lakeload_jobs.contract.spec import CONTRACT_VERSION, TableSpec
from lakeload_jobs.contract.usage import Usage

R = TypeVar("R", RunResult, MaintainResult, PlanResult)

LARGEST = 512 * 1024 * 1024


@dataclass(frozen=True)
class ResultProblem:
    """Why there is no result."""

    message: str
    hint: str | None = None
    missing: bool = False
    """There is no file, as opposed to one that cannot be used."""


def read_result(kind: type[R], path: Path, attempt_id: str) -> R | ResultProblem:
    """Return the result that this attempt at a job with results of this kind wrote, or why it
    cannot be used."""
    try:
        if path.stat().st_size > LARGEST:
            return ResultProblem("Spark finished, but its result file is too large")
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return ResultProblem("Spark finished but reported no result", missing=True)
    except (OSError, ValueError, RecursionError) as error:
        return ResultProblem(f"Spark finished but its result cannot be read: {error}")
    contract = data.get("contract") if isinstance(data, dict) else None
    if contract != CONTRACT_VERSION:
        return ResultProblem(
            f"the job uses contract {contract!r} and this command line uses {CONTRACT_VERSION}",
            hint="install the same version of lakeload on every machine",
        )
    try:
        result = from_json(kind, data)
    except CodecError as error:
        return ResultProblem(f"Spark finished but its result file is not valid: {error}")
    if result.attempt_id != attempt_id:
        return ResultProblem(f"the result belongs to another attempt, `{result.attempt_id}`")
    return result


LONGEST = 500


@dataclass(frozen=True)
class Cause:
    """What probably happened, what to do about it, and the exit code that goes with it."""

    message: str
    hint: str | None
    exit_code: ExitCode
    native: bool = False
    """Native code has ended the driver, as a damaged file may make it do."""


_NATIVE_ENDS = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)


def native_end(exit_status: int, opened: bool, files: Sequence[str]) -> Cause | None:
    """Return the cause where native code has ended a driver that had started; `files` are those
    that were being read. None where it has not."""
    number = -exit_status if exit_status < 0 else exit_status - 128
    if not opened or number not in _NATIVE_ENDS:
        return None
    read = f" while it read {quoted(files, 3)}" if files else ""
    hint = "replace the file, or leave it out" if files else "check the input files for damage"
    message = f"native code ended it with {signal.Signals(number).name}{read}"
    return Cause(message, hint, ExitCode.TABLE_FAILED, native=True)


_MEMORY_HINT = "raise `spark.driver_memory` in the pipeline (for example to 8g)"
_LOST_JVM = re.compile(r"Py4J(?:Network)?Error|from Java side is empty|py4j.*ConnectionRefused")
_TRACEBACK = re.compile(
    r"^Traceback \(most recent call last\):\n((?:[ \t].*\n)+)(\S.*)$", re.MULTILINE
)


def probable_cause(log: str, exit_status: int, opened: bool) -> Cause:
    """Return what the log suggests; `exit_status` is spark-submit's, negative after a signal."""
    for sign in read_toml(__package__, "log_signs.toml")["sign"]:
        if match := re.search(sign["pattern"], log):
            message = sign["message"].replace("{1}", match[match.lastindex or 0])
            hint = sign.get("hint", "").replace("{disk_full}", DISK_FULL_HINT)
            return Cause(message, hint or None, ExitCode(sign["exit_code"]))
    code = ExitCode.TABLE_FAILED if opened else ExitCode.MACHINE
    if exit_status in (-signal.SIGKILL, 128 + signal.SIGKILL):
        return Cause(
            "it was killed, probably by the operating system because memory ran out",
            "lower `spark.driver_memory` (`dmesg` shows whether memory ran out)",
            ExitCode.MACHINE,
        )
    if exit_status in (-signal.SIGTERM, 128 + signal.SIGTERM):
        return Cause("another process terminated it", None, ExitCode.INTERRUPTED)
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


OutcomeKind = Literal[
    "LOADED", "FAILED", "NO_RESULT", "CRASHED", "START_FAILED", "RESULT_MISMATCH", "INTERRUPTED"
]

NOTHING_COMMITTED = "nothing was committed"


@dataclass(frozen=True)
class Ending:
    """How spark-submit ended: its status (negative: killed by that signal), and by whose wish."""

    exit_status: int
    stopped_by: signal.Signals | None = None
    killed: bool = False
    """It did not end by itself in time after SIGTERM."""


@dataclass
class Observed:
    """What the events of one launch have told so far, by source table."""

    opened: bool = False
    stages: dict[str, Stage] = field(default_factory=dict)
    committing: set[str] = field(default_factory=set)
    ended: dict[str, str] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    """The errors of tables that have ended."""

    def note(self, event: Event) -> None:
        """Take in one event."""
        if event.kind == "opened":
            self.opened = True
        elif event.kind == "stage" and event.table and event.stage:
            self.stages[event.table] = event.stage
            if event.stage == "commit":
                self.committing.add(event.table)
        elif event.kind == "table" and event.table and event.name:
            self.ended[event.table] = event.name
            if event.message:
                self.messages[event.table] = event.message


@dataclass(frozen=True)
class NativeEnd:
    """The tables that a driver was loading when native code ended it, and those it had not begun,
    by their names in the source."""

    loading: tuple[str, ...]
    waiting: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """The end of a sync: what is shown, and the exit code."""

    kind: OutcomeKind
    exit_code: ExitCode
    tables: tuple[TableResult, ...]
    error: ErrorInfo | None = None
    native_end: NativeEnd | None = None
    usage: Usage | None = None
    """What Spark's driver and its processes have used; None where it has not reported it."""
    needs_java: Mapping[str, str] = field(default_factory=dict)
    """Tables, by their names in the source, that wait for Spark with the jars of their format, each
    with the reason."""

    @property
    def status(self) -> str:
        """SUCCEEDED, FAILED or INTERRUPTED, for the JSON document."""
        if self.exit_code == ExitCode.OK:
            return "SUCCEEDED"
        return "INTERRUPTED" if self.kind == "INTERRUPTED" else "FAILED"

    @classmethod
    def of(cls, tables: tuple[TableResult, ...], usage: Usage | None = None) -> Outcome:
        """Return the outcome of a sync that said of each of its tables what became of it."""
        code = exit_code_of(tables)
        return cls("LOADED" if code in (0, 5) else "FAILED", code, tables, usage=usage)


def with_warnings(
    outcome: Outcome, warnings: Mapping[str, tuple[str, ...]], of_each: Iterable[str]
) -> Outcome:
    """Return the outcome with further warnings of tables that were loaded: by the table, and those
    that each has."""
    tables = tuple(
        replace(table, warnings=(*table.warnings, *warnings.get(table.table, ()), *of_each))
        if table.status in GOOD
        else table
        for table in outcome.tables
    )
    return replace(outcome, tables=tables)


def decide(
    ending: Ending,
    result: RunResult | ResultProblem,
    observed: Observed,
    specs: Sequence[TableSpec],
    cause: Cause,
    *,
    maybe: str,
) -> Outcome:
    """Return the outcome. `cause` is what the log suggests; it is used where no result tells.

    `maybe` is said of a table that had reached its commit.
    """
    reported = result.tables if isinstance(result, RunResult) else ()
    names = {table.table for table in reported}
    status: Literal["INTERRUPTED", "FAILED"] = "INTERRUPTED" if ending.stopped_by else "FAILED"
    missing = (spec for spec in specs if spec.source not in names)
    tables = (*reported, *(_presume(spec, observed, status, maybe) for spec in missing))
    succeeded = isinstance(result, RunResult) and result.status == "SUCCEEDED" and not result.error
    # A signal that came when all was done ends the JVM, and changes nothing else.
    if succeeded and (ending.exit_status == 0 or ending.stopped_by is not None):
        return Outcome.of(tables)
    if ending.stopped_by is not None:
        return _interrupted(ending, tables, maybe)
    if isinstance(result, ResultProblem):
        return _without_result(ending, result, observed, tables, cause)
    if succeeded:
        return _disagreeing(ending, tables)
    if result.error is not None:
        return Outcome("FAILED", ExitCode(result.error.exit_code), tables, result.error)
    code = exit_code_of(tables)
    if code == ExitCode.OK:
        error = ErrorInfo("UnknownFailure", "the job failed without an error message", ExitCode.BUG)
        return Outcome("FAILED", ExitCode.BUG, tables, error)
    return Outcome("INTERRUPTED" if code == ExitCode.INTERRUPTED else "FAILED", code, tables)


def _without_result(
    ending: Ending,
    result: ResultProblem,
    observed: Observed,
    tables: tuple[TableResult, ...],
    cause: Cause,
) -> Outcome:
    if ending.exit_status == 0 or not result.missing:
        error = ErrorInfo("NoResult", result.message, ExitCode.TABLE_FAILED, result.hint)
        return Outcome("NO_RESULT", ExitCode.TABLE_FAILED, tables, error)
    how = "the Spark driver crashed" if observed.opened else "the Spark job never started"
    message = f"{how} ({_status(ending.exit_status)}): {cause.message}"
    kind = "DriverDied" if observed.opened else "NeverStarted"
    error = ErrorInfo(kind, message, cause.exit_code, cause.hint)
    if cause.native:
        left = [table.table for table in tables if table.table not in observed.ended]
        began = tuple(name for name in left if name in observed.stages)
        loading = tuple(name for name in began if name not in observed.committing)
        native = NativeEnd(loading, tuple(name for name in left if name not in began))
        return Outcome("CRASHED", cause.exit_code, tables, error, native)
    return Outcome("CRASHED" if observed.opened else "START_FAILED", cause.exit_code, tables, error)


def refused(error: LakeloadError) -> Outcome:
    """Return the outcome of a sync that ended before any table did."""
    kind: OutcomeKind = "INTERRUPTED" if isinstance(error, Interrupted) else "FAILED"
    return Outcome(kind, error.exit_code, (), ErrorInfo.of(error))


def exit_code_of(tables: Iterable[TableResult]) -> ExitCode:
    """Return the exit code of finished tables.

    Failed tables give 1, unless all of them failed for one reason that has a code of its own and
    that running again cannot change: an invalid input (2), the machine (4), a bug (70). A 3
    (refused) stays for what was refused before any table started.
    """
    tables = tuple(tables)
    if any(table.status == "INTERRUPTED" for table in tables):
        return ExitCode.INTERRUPTED
    failed = [table for table in tables if table.status in ("FAILED", "SKIPPED")]
    if failed:
        code = shared_exit(table.error.exit_code for table in failed if table.error)
        own = (ExitCode.INVALID, ExitCode.MACHINE, ExitCode.BUG)
        return code if code in own else ExitCode.TABLE_FAILED
    if any(table.status == "LOADED_CATALOG_OUT_OF_DATE" for table in tables):
        return ExitCode.FOLLOW_UP_FAILED
    return ExitCode.OK


def _disagreeing(ending: Ending, tables: tuple[TableResult, ...]) -> Outcome:
    """The job wrote success and Spark ended badly: the data is in, so nobody may load it again."""
    code = exit_code_of(tables)
    code = ExitCode.FOLLOW_UP_FAILED if code == ExitCode.OK else code
    message = f"the job reported success and then {_status(ending.exit_status)}"
    hint = "the tables above are loaded; a rerun with the same `--job-id` loads nothing twice"
    return Outcome(
        "RESULT_MISMATCH", code, tables, ErrorInfo("ResultMismatch", message, code, hint)
    )


def _interrupted(ending: Ending, tables: tuple[TableResult, ...], maybe: str) -> Outcome:
    """Say what the interruption left: the job's own words where it had time for them."""
    how = f"stopped by {ending.stopped_by.name}" if ending.stopped_by else "stopped"
    if ending.killed:
        how += " and killed because it did not stop in time"
    done = sum(table.status in GOOD for table in tables)
    left = (table for table in tables if table.status not in GOOD and table.error)
    unknown = [table for table in left if table.error and table.error.stage == "commit"]
    if unknown:
        what = f"`{unknown[0].table}` is {maybe}"
        what += f" (and {len(unknown) - 1} more)" if len(unknown) > 1 else ""
    elif done:
        what = f"{done} of {len(tables)} tables had been loaded; nothing else was committed"
    else:
        what = NOTHING_COMMITTED
    error = ErrorInfo("Interrupted", f"{how}: {what}", ExitCode.INTERRUPTED)
    return Outcome("INTERRUPTED", ExitCode.INTERRUPTED, tables, error)


def _presume(
    spec: TableSpec, observed: Observed, status: Literal["FAILED", "INTERRUPTED"], maybe: str
) -> TableResult:
    """Return the result of a table the job could not report on, from the events it had written."""
    table = TableResult(spec.source, spec.target, status)
    said = observed.ended.get(spec.source)
    if good := next((status for status in GOOD if status == said), None):
        lost = "the job ended before it wrote its result: rows and files are not known"
        return replace(table, status=good, warnings=(lost,))
    committing = spec.source in observed.committing and said is None
    code = ExitCode.INTERRUPTED if status == "INTERRUPTED" else ExitCode.TABLE_FAILED
    error = ErrorInfo(
        "Interrupted" if status == "INTERRUPTED" else "LoadFailed",
        observed.messages.get(spec.source) or (maybe if committing else NOTHING_COMMITTED),
        code,
        stage=observed.stages.get(spec.source),
        retryable=True,
    )
    return replace(table, error=error)


def _status(exit_status: int) -> str:
    if exit_status < 0:
        return f"spark-submit was ended by {signal.Signals(-exit_status).name}"
    return f"spark-submit ended with status {exit_status}"
