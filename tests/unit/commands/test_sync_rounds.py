"""Rounds: when they begin, which job they are, and what ends them. Nothing is loaded."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from lakeload.app import app
from lakeload.commands import sync_rounds
from lakeload.commands.liveness import Liveness
from lakeload.commands.reports import Reports
from lakeload.commands.spark_job import Context
from lakeload.commands.sync_once import LoadJob, Synced
from lakeload.commands.sync_rounds import RETRIES, Round, Rounds, Schedule
from lakeload.documents.load import load_pipeline
from lakeload.documents.spec import table_specs
from lakeload.launch.outcome import Outcome, exit_code_of
from lakeload.launch.resident import Resident
from lakeload.launch.spec import new_attempt
from lakeload.launch.stop import StopRequests
from lakeload.launch.timings import NO_TIME
from lakeload_jobs.contract.errors import ExitCode, InvalidInput, Refused
from lakeload_jobs.contract.result import ErrorInfo, TableResult, TableStatus
from lakeload_jobs.contract.spec import NO_OPTIONS
from tests.unit.documents.documents import pipeline

TEXT = """version: 1
name: shop
destination_prefix: lake
source: {type: FILES, format: CSV, incremental: true}
destination: {version: 1, bucket: my-data-lake, region: us-east-1, table_format: PARQUET}
tables: [{table: orders, path: a.csv}]
"""
LOADED = TableResult("orders", "lake.orders", "LOADED", rows=1)
IDLE = TableResult("orders", "lake.orders", "NO_OP")


def failed(code: ExitCode, *, retryable: bool, stage: str | None = "stage") -> TableResult:
    error = ErrorInfo("LoadFailed", "it failed", int(code), retryable=retryable, stage=stage)  # type: ignore[arg-type]
    status: TableStatus = "INTERRUPTED" if code is ExitCode.INTERRUPTED else "FAILED"
    return TableResult("orders", "lake.orders", status, error=error)


RETRYABLE = failed(ExitCode.TABLE_FAILED, retryable=True)


@pytest.fixture
def job(tmp_path: Path) -> LoadJob:
    document = pipeline(tmp_path, TEXT)
    tables = table_specs(document, NO_OPTIONS)
    return LoadJob(document, tables, new_attempt(None), NO_OPTIONS)


@pytest.fixture
def stop() -> Iterator[StopRequests]:
    with StopRequests() as requests:
        yield requests


class FakeLoads:
    """Stands for `sync_once`: each load ends as the next of `results` says."""

    def __init__(self, results: list[TableResult], then: Callable[[], None] = lambda: None) -> None:
        self.jobs: list[LoadJob] = []
        self._results = results
        self._then = then

    def __call__(self, job: LoadJob, context: Context, kept: object) -> Synced:
        self.jobs.append(job)
        table = self._results[min(len(self.jobs), len(self._results)) - 1]
        if len(self.jobs) == len(self._results):
            self._then()
        code = exit_code_of([table])
        return Synced(Outcome("LOADED" if code == 0 else "FAILED", code, (table,)))


def as_it_is(job: LoadJob) -> LoadJob:
    """The tables that are found are those that there were."""
    return job


def run(
    job: LoadJob,
    stop: StopRequests,
    loads: FakeLoads,
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    read: Callable[[], LoadJob] | None = None,
    look: Callable[[LoadJob], LoadJob] = as_it_is,
    **schedule: object,
) -> tuple[ExitCode, list[Round]]:
    monkeypatch.setattr(sync_rounds, "sync_once", loads)
    monkeypatch.setattr(sync_rounds, "_LOOK_SECONDS", 0.001)
    monkeypatch.setattr(sync_rounds, "_FIRST_PAUSE", 0.001)
    # This process has many more tests to run.
    monkeypatch.setattr(sync_rounds, "_collect_garbage", lambda: None)
    shown: list[Round] = []
    environment = {"LAKELOAD_RUN_DIR": str(folder / "runs")}
    context = Context(environment, stop, Console(quiet=True), quiet=True)
    rounds = Schedule(timedelta(milliseconds=10), **schedule)  # type: ignore[arg-type]
    again = read or (lambda: replace(job, attempt=new_attempt(None)))
    return Rounds(again, look, shown.append, rounds, context).run(job), shown


def test_rounds_begin_at_multiples_of_the_interval() -> None:
    five = Schedule(timedelta(minutes=5))

    assert five.due(1_000_000_000.0) == 1_000_000_200.0
    assert five.due(1_000_000_200.0) == 1_000_000_500.0
    assert [five.pause(failures) for failures in (1, 2, 3, 4, 5)] == [5, 10, 20, 40, 80]
    assert Schedule(timedelta(seconds=1)).pause(1) == 1


def test_failed_round_is_tried_again_under_its_id_and_then_another_begins(
    job: LoadJob, stop: StopRequests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    loads = FakeLoads([RETRYABLE])
    code, _ = run(job, stop, loads, monkeypatch, tmp_path, max_rounds=RETRIES + 2)

    ids = [load.attempt.job_id for load in loads.jobs]
    assert code == ExitCode.TABLE_FAILED
    assert ids[: RETRIES + 1] == [ids[0]] * (RETRIES + 1)
    assert ids[RETRIES + 1] != ids[0]
    assert len({load.attempt.attempt_id for load in loads.jobs}) == RETRIES + 2


@pytest.mark.parametrize(
    "result", [LOADED, IDLE, failed(ExitCode.TABLE_FAILED, retryable=False)], ids=lambda r: r.status
)
def test_each_round_that_cannot_end_better_is_followed_by_a_new_job(
    job: LoadJob,
    stop: StopRequests,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    result: TableResult,
) -> None:
    loads = FakeLoads([result])
    run(job, stop, loads, monkeypatch, tmp_path, max_rounds=3)

    assert len({load.attempt.job_id for load in loads.jobs}) == 3


@pytest.mark.parametrize("code", [ExitCode.INVALID, ExitCode.MACHINE, ExitCode.BUG])
def test_what_running_again_cannot_change_ends_the_first_round_alone(
    job: LoadJob,
    stop: StopRequests,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    code: ExitCode,
) -> None:
    broken = failed(code, retryable=False)
    first = FakeLoads([broken])
    later = FakeLoads([LOADED, broken, LOADED])

    assert run(job, stop, first, monkeypatch, tmp_path, max_rounds=3)[0] == code
    assert len(first.jobs) == 1
    assert run(job, stop, later, monkeypatch, tmp_path, max_rounds=3)[0] == ExitCode.OK
    assert len(later.jobs) == 3


def test_driver_forgets_its_credentials_after_each_round_that_failed(
    job: LoadJob, stop: StopRequests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    loads = FakeLoads([LOADED, RETRYABLE, LOADED, IDLE])
    after: list[int] = []
    monkeypatch.setattr(Resident, "forget", lambda _: after.append(len(loads.jobs)))
    run(job, stop, loads, monkeypatch, tmp_path, max_rounds=4)

    assert after == [2]


def test_until_idle_ends_with_the_first_round_without_news(
    job: LoadJob, stop: StopRequests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    loads = FakeLoads([LOADED, LOADED, IDLE, LOADED])
    code, shown = run(job, stop, loads, monkeypatch, tmp_path, until_idle=True)

    assert (code, [done.idle for done in shown]) == (ExitCode.OK, [False, False, True])


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (LOADED, ExitCode.OK),
        (failed(ExitCode.INTERRUPTED, retryable=True, stage=None), ExitCode.OK),
        (failed(ExitCode.INTERRUPTED, retryable=True), ExitCode.INTERRUPTED),
    ],
    ids=["all in", "not begun", "cut off"],
)
def test_stop_signal_ends_rounds_and_says_whether_a_table_was_cut_off(
    job: LoadJob,
    stop: StopRequests,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    result: TableResult,
    code: ExitCode,
) -> None:
    stop.hold()
    loads = FakeLoads([LOADED, result], then=lambda: os.kill(os.getpid(), signal.SIGTERM))

    assert run(job, stop, loads, monkeypatch, tmp_path)[0] == code
    assert len(loads.jobs) == 2


def test_hangup_reads_the_configuration_again(
    job: LoadJob, stop: StopRequests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "isatty", lambda descriptor: False)
    loads = FakeLoads([RETRYABLE], then=lambda: os.kill(os.getpid(), signal.SIGHUP))
    run(job, stop, loads, monkeypatch, tmp_path, max_rounds=2)

    # A job of other settings is another job, although this one is to be tried again.
    assert loads.jobs[0].attempt.job_id != loads.jobs[1].attempt.job_id
    assert stop.requested is None


def test_second_process_on_this_machine_is_refused_and_told_of_the_first(
    job: LoadJob, stop: StopRequests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def second() -> None:
        with pytest.raises(Refused, match=f"by process {os.getpid()} of this machine since 20"):
            run(job, stop, FakeLoads([LOADED]), monkeypatch, tmp_path, max_rounds=1)

    loads = FakeLoads([LOADED], then=second)
    run(job, stop, loads, monkeypatch, tmp_path, max_rounds=1)

    assert len(loads.jobs) == 1


def test_rounds_into_another_lake_of_the_same_pipeline_may_run_beside_them(
    job: LoadJob, stop: StopRequests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "lake.yml").write_text(
        "version: 1\nbucket: my-data-lake\nregion: us-east-1\ntable_format: PARQUET\n"
        "endpoints: {s3: http://127.0.0.1:9000}\n"
    )
    document = load_pipeline(job.document.path, {}, tmp_path / "lake.yml")
    other = LoadJob(document, job.tables, new_attempt(None), NO_OPTIONS)
    beside = FakeLoads([LOADED])

    def second() -> None:
        run(other, stop, beside, monkeypatch, tmp_path, max_rounds=1)

    run(job, stop, FakeLoads([LOADED], then=second), monkeypatch, tmp_path, max_rounds=1)

    assert [load.destination.endpoints.s3 for load in beside.jobs] == ["http://127.0.0.1:9000"]


def test_hangup_reads_the_destination_again_that_the_command_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file, lake = tmp_path / "p.yml", tmp_path / "lake.yml"
    text = "{version: 1, bucket: lake-one, region: us-east-1, table_format: PARQUET}"
    lake.write_text(text)
    file.write_text(TEXT.replace("bucket: my-data-lake", "bucket: '${LAKE}'"))

    def then() -> None:
        lake.write_text(text.replace("lake-one", "lake-two"))
        os.kill(os.getpid(), signal.SIGHUP)

    loads = FakeLoads([LOADED], then=then)
    monkeypatch.setattr(os, "isatty", lambda descriptor: False)
    monkeypatch.setattr(sync_rounds, "sync_once", loads)
    monkeypatch.setattr(sync_rounds, "_collect_garbage", lambda: None)
    monkeypatch.setenv("LAKELOAD_RUN_DIR", str(tmp_path / "runs"))
    flags = ["--destination", str(lake), "--every", "1s", "--max-rounds", "2"]
    done = CliRunner().invoke(app, ["sync", str(file), *flags])

    assert done.exit_code == 0, done.output
    assert [load.destination.bucket for load in loads.jobs] == ["lake-one", "lake-two"]


def appending(folder: Path) -> LoadJob:
    """A job whose table is appended whole."""
    document = pipeline(folder, TEXT.replace(", incremental: true", ""))
    return LoadJob(document, table_specs(document, NO_OPTIONS), new_attempt(None), NO_OPTIONS)


def test_table_that_appends_all_rows_each_time_is_refused(
    stop: StopRequests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    loads = FakeLoads([LOADED])
    with pytest.raises(InvalidInput, match="`orders` would be appended whole") as refused:
        run(appending(tmp_path), stop, loads, monkeypatch, tmp_path, max_rounds=1)

    assert "set `incremental: true`" in str(refused.value.hint)
    assert loads.jobs == []


def test_hangup_keeps_the_configuration_where_the_new_one_would_append_all_rows(
    job: LoadJob, stop: StopRequests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "isatty", lambda descriptor: False)
    loads = FakeLoads([LOADED], then=lambda: os.kill(os.getpid(), signal.SIGHUP))
    (tmp_path / "new").mkdir()
    new = appending(tmp_path / "new")
    run(job, stop, loads, monkeypatch, tmp_path, read=lambda: new, max_rounds=2)

    assert [load.tables for load in loads.jobs] == [job.tables, job.tables]


GLOB = """version: 1
name: shop
source: {type: JDBC, url: 'postgresql://127.0.0.1:1/shop', user: x}
destination: {version: 1, bucket: my-data-lake, region: us-east-1, table_format: PARQUET}
tables: [{table: 'public.*', cursor: id}]
"""


def test_tables_of_globs_are_looked_up_in_each_new_round(
    stop: StopRequests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    document = pipeline(tmp_path, GLOB)
    [found] = table_specs(document, NO_OPTIONS)
    job = LoadJob(document, (found,), new_attempt(None), NO_OPTIONS)
    loads = FakeLoads([LOADED, RETRYABLE, LOADED])

    def look(before: LoadJob) -> LoadJob:
        added = replace(found, source=f"public.t{len(before.tables)}")
        return replace(before, tables=(*before.tables, added))

    run(job, stop, loads, monkeypatch, tmp_path, look=look, max_rounds=4)

    # A job that is tried again has the tables that it had.
    assert [len(load.tables) for load in loads.jobs] == [1, 2, 2, 3]


def test_tables_of_globs_stay_where_the_source_cannot_be_asked(
    stop: StopRequests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    document = pipeline(tmp_path, GLOB)
    tables = table_specs(document, NO_OPTIONS)
    job = LoadJob(document, tables, new_attempt(None), NO_OPTIONS)
    loads = FakeLoads([LOADED])

    def look(before: LoadJob) -> LoadJob:
        raise Refused("no route to host")

    code, _ = run(job, stop, loads, monkeypatch, tmp_path, look=look, max_rounds=3)

    assert code == ExitCode.OK
    assert [load.tables for load in loads.jobs] == [tables] * 3


def test_liveness_touches_its_file_and_notifies_systemd(tmp_path: Path) -> None:
    file, address = tmp_path / "health", str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(address)
        systemd.settimeout(5)
        liveness = Liveness({"NOTIFY_SOCKET": address}, file)
        os.utime(file, (0, 0))
        liveness.ready()
        liveness.alive("waiting")
        sent = [systemd.recv(100).decode() for _ in range(2)]
        assert file.stat().st_mtime > 0
        liveness.stopping()
        sent.append(systemd.recv(100).decode())

    assert sent == ["READY=1", "WATCHDOG=1\nSTATUS=waiting", "STOPPING=1"]
    assert not file.exists()


def test_health_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be written: No such file"):
        Liveness({}, tmp_path / "no" / "folder")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--max-rounds", "2"], "`--max-rounds` needs an interval"),
        (["--every", "5m", "--reload"], "`--every` and `--reload` cannot be used together"),
        (["--until-idle", "--dry-run"], "`--until-idle` and `--dry-run` cannot be used together"),
        (["--every", "5h"], "`--every`: `5h` is out of range"),
        (["--every", "5m", "--stop-within", "x"], "`--stop-within`: `x` is not a duration"),
    ],
)
def test_flags_of_rounds_that_have_no_effect_or_no_meaning_are_refused(
    flags: list[str], words: str, tmp_path: Path
) -> None:
    (tmp_path / "p.yml").write_text(TEXT)
    done = CliRunner().invoke(app, ["sync", str(tmp_path / "p.yml"), *flags])

    assert done.exit_code == 2
    assert words in " ".join(done.output.split())


MORE = replace(LOADED, more=True)


def run_until_loaded(
    job: LoadJob,
    stop: StopRequests,
    loads: FakeLoads,
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
) -> ExitCode:
    monkeypatch.setattr(sync_rounds, "sync_once", loads)
    monkeypatch.setattr(sync_rounds, "_collect_garbage", lambda: None)
    environment = {"LAKELOAD_RUN_DIR": str(folder / "runs")}
    context = Context(environment, stop, Console(quiet=True), quiet=True)
    return Rounds(lambda: job, as_it_is, lambda done: None, Schedule(None), context).run(job)


def test_limited_load_goes_on_until_nothing_is_left(
    job: LoadJob, stop: StopRequests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    loads = FakeLoads([MORE, MORE, LOADED])
    code = run_until_loaded(job, stop, loads, monkeypatch, tmp_path)

    assert code == ExitCode.OK
    assert len({load.attempt.job_id for load in loads.jobs}) == len(loads.jobs) == 3


def test_table_that_fails_ends_a_limited_load_with_its_code(
    job: LoadJob, stop: StopRequests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    loads = FakeLoads([MORE, RETRYABLE])
    code = run_until_loaded(job, stop, loads, monkeypatch, tmp_path)

    assert code == ExitCode.TABLE_FAILED
    assert len(loads.jobs) == 2


def test_stop_between_limited_jobs_says_that_something_is_left(
    job: LoadJob, stop: StopRequests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stop.hold()
    loads = FakeLoads([MORE, MORE], lambda: os.kill(os.getpid(), signal.SIGTERM))
    code = run_until_loaded(job, stop, loads, monkeypatch, tmp_path)

    assert code == ExitCode.INTERRUPTED
    assert len(loads.jobs) == 2


def test_round_with_more_to_load_is_followed_at_once(
    job: LoadJob, stop: StopRequests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    loads = FakeLoads([MORE])
    hourly = Schedule(timedelta(hours=1))
    context = Context({}, stop, Console(quiet=True), quiet=True)
    reports = Reports(job, {}, only_news=True)
    done = Round(1, job, loads(job, context, None), 0.0, reports, NO_TIME)
    rounds = Rounds(lambda: job, as_it_is, lambda done: None, hourly, context)

    assert rounds._next(done, time.time()) <= time.time()


@pytest.mark.parametrize(
    ("schedule", "may_wait"),
    [
        ({"max_rounds": 3}, [True, True, False]),
        ({"max_rounds": 2, "until_idle": True}, [False] * 2),
    ],
)
def test_nothing_waits_in_the_last_round_and_until_idle(
    job: LoadJob,
    stop: StopRequests,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    schedule: dict[str, Any],
    may_wait: list[bool],
) -> None:
    seen: list[bool] = []

    class Loads(FakeLoads):
        def __call__(self, job: LoadJob, context: Context, kept: Any) -> Synced:
            seen.append(kept.may_wait)
            return super().__call__(job, context, kept)

    run(job, stop, Loads([LOADED]), monkeypatch, tmp_path, **schedule)

    assert seen == may_wait
