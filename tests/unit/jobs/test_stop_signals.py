"""A stop signal at every line of a job: its result says of each table what is in the lake."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from lakeload.launch.outcome import Cause, Ending, Observed, decide, read_result
from lakeload.launch.run_folder import RunFolder, create_run_folder
from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.errors import ExitCode, Interrupted
from lakeload_jobs.contract.result import RunResult, TableResult
from lakeload_jobs.formats.load_table import TableLoad
from lakeload_jobs.jobs import attempt, load, scheduler, stop_signals
from lakeload_jobs.jobs.event_log import EventLog
from tests.unit.launch.specs import SYNCED, job_spec

JOBS = Path(stop_signals.__file__).parent


class FakeLake:
    """A destination in which a table is loaded as soon as it commits."""

    def __init__(self) -> None:
        self.tables: set[str] = set()
        self.spark = SimpleNamespace(
            version="4", sparkContext=SimpleNamespace(cancelAllJobs=lambda: None)
        )
        self.spark.sparkContext.setLocalProperty = lambda name, value: None

    def uses_own_identity(self, destination: object) -> bool:
        return False

    def connect(self, *arguments: object) -> FakeLake:
        return self

    def load_table(self, given: TableLoad) -> TableResult:
        for stage in ("open", "stage", "commit"):
            given.reporter.on_stage(stage)
        self.tables.add(given.table.source)
        return TableResult(given.table.source, given.table.target, "LOADED")

    def close(self) -> None:
        """Fail, as what asks a JVM does that the same signal has ended."""
        raise ConnectionError("the JVM is gone")


class SignalAtLine:
    """Sends SIGTERM before the `number`-th line of the job's modules, once handlers are set."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        file, name = Path(frame.f_code.co_filename), frame.f_code.co_name
        # Python never interrupts between a `with` block and the release of its lock; a trace does.
        if (
            file.parent != JOBS
            or file.name in ("event_log.py", "progress.py")
            or name == "_on_signal"
        ):
            return None
        if event == "line" and callable(signal.getsignal(signal.SIGTERM)):
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGTERM)
        return self


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLake]:
    """A lake that `load.run` loads into, and the handlers of signals as they were."""
    lake = FakeLake()
    monkeypatch.setattr(attempt, "build_session", lambda spec: lake.spark)
    monkeypatch.setattr(load, "FORMATS", {"PARQUET": lake})
    monkeypatch.setattr(load, "Progress", lambda *_: nullcontext())
    monkeypatch.setattr(load, "Sources", lambda *_: SimpleNamespace(of=lambda table: None))
    monkeypatch.setattr(scheduler, "load_table", lake.load_table)
    before = {number: signal.getsignal(number) for number in stop_signals.STOP_SIGNALS}
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield lake
    for number, handler in before.items():
        signal.signal(number, handler)


def run_folder(runs: Path) -> RunFolder:
    folder = create_run_folder(runs, SYNCED, "11111111-2222-3333-4444-555555555555")
    folder.write(folder.spec, json.dumps(to_json(job_spec(folder))))
    return folder


def check(lake: FakeLake, folder: RunFolder) -> int:
    """Compare the outcome with the lake, as the command sees it when the signal ended the JVM."""
    spec = attempt.read_spec(str(folder.spec))
    result = read_result(RunResult, folder.result, spec.attempt_id)
    cause = Cause("no cause", None, ExitCode.TABLE_FAILED)
    ending = Ending(143, signal.SIGTERM)
    outcome = decide(ending, result, Observed(), spec.tables, cause, maybe="maybe")
    loaded = {table.table for table in outcome.tables if table.status == "LOADED"}
    assert loaded == lake.tables
    assert (outcome.exit_code == ExitCode.OK) == (len(loaded) == len(spec.tables))
    assert (outcome.error is None) == (outcome.exit_code == ExitCode.OK)
    return len(loaded)


@pytest.mark.parametrize("step", [61, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_stop_at_any_line_of_a_load_reports_what_is_in_the_lake(
    lake: FakeLake, tmp_path: Path, step: int
) -> None:
    counts, number, before = [], 1, sys.gettrace()
    while True:
        lake.tables.clear()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        folder = run_folder(tmp_path / str(number))
        strike = SignalAtLine(number)
        sys.settrace(strike)
        try:
            load.main(str(folder.spec))
        finally:
            sys.settrace(before)
        counts.append(check(lake, folder))
        if strike.left > 0:
            break
        number += step
    # Before the first table, and long after the last one.
    assert counts[0] == 0
    assert counts[-2:] == [2, 2]


def test_events_that_cannot_be_written_leave_a_loaded_table_loaded(
    lake: FakeLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    emit = EventLog.emit

    def full_disk(log: EventLog, kind: Any, **fields: Any) -> None:
        if kind == "table":
            raise OSError(28, "No space left on device")
        emit(log, kind, **fields)

    monkeypatch.setattr(EventLog, "emit", full_disk)
    folder = run_folder(tmp_path)
    load.main(str(folder.spec))

    assert check(lake, folder) == 2


def test_stop_that_came_while_held_strikes_when_released(lake: FakeLake) -> None:
    assert threading.current_thread() is threading.main_thread()
    stop_signals.install()
    stop_signals.hold()
    os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(Interrupted, match="stopped by SIGINT"):
        stop_signals.release()
    os.kill(os.getpid(), signal.SIGTERM)
