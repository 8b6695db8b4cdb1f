"""A sync that finds out late that a table needs the jars of its format. Nothing is loaded."""

from __future__ import annotations

import io
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from lakeload.commands import sync_once as module
from lakeload.commands.spark_job import Context
from lakeload.commands.sync_once import Kept, LoadJob, sync_once
from lakeload.documents.spec import table_specs
from lakeload.formats.inspection import TableState
from lakeload.launch.outcome import Outcome, OutcomeKind
from lakeload.launch.properties import SparkSettings
from lakeload.launch.run import Ended, Launcher
from lakeload.launch.run_folder import RunFolder, create_run_folder
from lakeload.launch.spec import Attempt, new_attempt
from lakeload.launch.stop import StopRequests
from lakeload_jobs.contract.errors import ExitCode, JavaNeeded, MachineNotReady
from lakeload_jobs.contract.result import ErrorInfo, TableResult, TableStatus
from lakeload_jobs.contract.spec import NO_OPTIONS, JobSpec, TableSpec
from lakeload_jobs.contract.usage import Usage
from tests.unit.documents.documents import pipeline

TEXT = """version: 1
name: shop
namespace: shop
source: {type: FILES, format: CSV}
destination: {version: 1, bucket: my-data-lake, region: us-east-1, table_format: ICEBERG}
tables: [{table: a, path: "*.csv"}, {table: b, path: "*.csv"}, {table: c, path: "*.csv"}]
"""
SORTED = "the table has a sort order"


@pytest.fixture
def job(tmp_path: Path) -> LoadJob:
    (tmp_path / "a.csv").write_text("id\n1\n")
    document = pipeline(tmp_path, TEXT)
    return LoadJob(document, table_specs(document, NO_OPTIONS), new_attempt(None), NO_OPTIONS)


@dataclass(frozen=True)
class State(TableState):
    """One table, with something to load or not."""

    new: bool = True

    @property
    def idle(self) -> bool:
        """Whether there is nothing to load."""
        return not self.new

    first_run = True
    warnings = ()

    def loaded(self, result: TableResult) -> TableResult:
        """Return the result of a table without anything new."""
        return result


class Drivers:
    """Stands for Spark. A driver without jars ends as `statuses` says, where SKIPPED is a table
    that needs them, and a table that is not named has nothing new; one with jars loads what it is
    given."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, folder: Path, **statuses: TableStatus
    ) -> None:
        self.specs: list[JobSpec] = []
        self.inspections = 0
        self.with_jars: Callable[[], None] = lambda: None
        """What comes before a driver with jars starts."""
        self.kind: OutcomeKind = "FAILED"
        self._folder = folder
        self._statuses = statuses
        for name in ("preflight", "find_installation"):
            monkeypatch.setattr(module, name, lambda *given: None)
        commands = SimpleNamespace(inspect=self._inspect)
        monkeypatch.setattr(module, "commands_of", lambda table_format: commands)
        for name, stand_in in {
            "prepared": self._prepared,
            "launcher": self._launcher,
            "launch": self._launch,
        }.items():
            monkeypatch.setattr(module, name, stand_in)

    def _inspect(
        self, session: object, tables: Sequence[TableSpec], request: object
    ) -> tuple[State, ...]:
        self.inspections += 1
        return tuple(State(table, new=table.source in self._statuses) for table in tables)

    def _prepared(
        self,
        document: object,
        settings: SparkSettings,
        installation: object,
        tables: object,
        attempt: Attempt,
        context: Context,
        *,
        format_jars: bool,
    ) -> tuple[SparkSettings, RunFolder]:
        if format_jars:
            self.with_jars()
        folder = create_run_folder(self._folder / "runs", attempt.synced, attempt.attempt_id)
        return replace(settings, format_jars=format_jars), folder

    @contextmanager
    def _launcher(
        self,
        installation: object,
        settings: SparkSettings,
        tables: Sequence[TableSpec],
        context: Context,
        *,
        run: object,
    ) -> Iterator[SparkSettings]:
        context.stop.hold()
        yield settings

    def _launch(self, spec: JobSpec, folder: RunFolder, settings: SparkSettings) -> Outcome:
        self.specs.append(spec)
        tables = tuple(
            TableResult(
                one.source,
                one.target,
                status := "LOADED" if settings.format_jars else self._statuses[one.source],
                error=ErrorInfo("LoadFailed", "no", 1) if status == "FAILED" else None,
            )
            for one in spec.tables
        )
        late = {table.table: SORTED for table in tables if table.status == "SKIPPED"}
        outcome = Outcome.of(tables, Usage(2.0, 100 * len(self.specs), {"s3": 3}))
        return replace(outcome, needs_java=late, kind=self.kind) if late else outcome


@pytest.fixture
def said() -> Iterator[tuple[Context, Callable[[], str]]]:
    text = io.StringIO()
    with StopRequests() as stop:
        yield Context({}, stop, Console(file=text, width=200)), text.getvalue


def statuses(outcome: Outcome) -> dict[str, TableStatus]:
    return {table.table: table.status for table in outcome.tables}


def keeps() -> Kept:
    """Return what is kept between rounds."""

    def run(spec: JobSpec, folder: RunFolder, launcher: Launcher) -> Ended:
        raise NotImplementedError

    return Kept(run, lambda: None)


def test_tables_that_need_jars_are_loaded_by_a_second_driver(
    job: LoadJob,
    said: tuple[Context, Callable[[], str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    context, text = said
    drivers = Drivers(monkeypatch, tmp_path, a="LOADED", b="SKIPPED", c="FAILED")
    synced = sync_once(job, context)
    outcome = synced.outcome
    first, second = drivers.specs
    assert [table.source for table in second.tables] == ["b"]
    assert second.job_id == first.job_id == job.attempt.job_id
    assert second.attempt_id != first.attempt_id
    assert synced.log is not None
    assert second.attempt_id in str(synced.log)
    assert drivers.inspections == 1
    assert statuses(outcome) == {"a": "LOADED", "b": "LOADED", "c": "FAILED"}
    assert outcome.exit_code == ExitCode.TABLE_FAILED
    assert outcome.usage == Usage(4.0, 200, {"s3": 6})
    assert text().splitlines() == [
        "`shop.b` needs Iceberg's Java code (the table has a sort order): starting Spark again "
        "with it"
    ]


def test_table_of_a_second_driver_has_the_warnings_of_the_inspection(
    job: LoadJob,
    said: tuple[Context, Callable[[], str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    context, _ = said
    Drivers(monkeypatch, tmp_path, a="LOADED", b="SKIPPED", c="LOADED")
    found = {"b": ("reads the files of `a`, too",)}
    monkeypatch.setattr(module, "shared_files", lambda *given, local: found)
    outcome = sync_once(job, context).outcome
    assert {table.table: table.warnings for table in outcome.tables} == {"a": (), **found, "c": ()}


def test_driver_that_stays_has_the_jars_in_later_rounds(
    job: LoadJob,
    said: tuple[Context, Callable[[], str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    context, text = said
    drivers = Drivers(monkeypatch, tmp_path, a="LOADED", b="SKIPPED", c="SKIPPED")
    kept = keeps()
    outcome = sync_once(job, context, kept).outcome
    assert outcome.exit_code == ExitCode.OK
    assert kept.format_jars
    assert len(drivers.specs) == 2
    assert "`shop.b`, `shop.c` need Iceberg's Java code" in text()
    job = replace(job, attempt=new_attempt(None))
    assert sync_once(job, context, kept).outcome.exit_code == ExitCode.OK
    assert len(drivers.specs) == 3


def test_table_of_a_round_that_needs_jars_is_loaded_beside_one_without_anything_new(
    job: LoadJob,
    said: tuple[Context, Callable[[], str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    context, _ = said
    drivers = Drivers(monkeypatch, tmp_path, b="SKIPPED")
    outcome = sync_once(job, context, keeps()).outcome
    assert statuses(outcome) == {"a": "NO_OP", "b": "LOADED", "c": "NO_OP"}
    assert outcome.exit_code == ExitCode.OK
    assert [[table.source for table in spec.tables] for spec in drivers.specs] == [["b"], ["b"]]


def test_stopped_load_is_not_started_again(
    job: LoadJob,
    said: tuple[Context, Callable[[], str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    context, text = said
    drivers = Drivers(monkeypatch, tmp_path, a="LOADED", b="SKIPPED", c="INTERRUPTED")
    drivers.kind = "INTERRUPTED"
    assert sync_once(job, context).outcome.kind == "INTERRUPTED"
    assert len(drivers.specs) == 1
    assert text() == ""


def test_stop_before_the_first_driver_says_that_nothing_was_written(
    job: LoadJob,
    said: tuple[Context, Callable[[], str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    context, _ = said
    drivers = Drivers(monkeypatch, tmp_path, a="LOADED", b="SKIPPED", c="LOADED")
    monkeypatch.setattr(module, "preflight", lambda _: signal.raise_signal(signal.SIGINT))
    outcome = sync_once(job, context).outcome
    assert (outcome.status, outcome.tables, drivers.specs) == ("INTERRUPTED", (), [])
    assert outcome.error is not None
    assert outcome.error.message == "stopped by SIGINT before Spark started: nothing was written"


def test_stop_before_the_second_driver_keeps_what_the_first_has_loaded(
    job: LoadJob,
    said: tuple[Context, Callable[[], str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    context, _ = said
    drivers = Drivers(monkeypatch, tmp_path, a="LOADED", b="SKIPPED", c="FAILED")
    drivers.with_jars = lambda: signal.raise_signal(signal.SIGINT)
    outcome = sync_once(job, context).outcome
    assert statuses(outcome) == {"a": "LOADED", "b": "SKIPPED", "c": "FAILED"}
    assert (outcome.status, outcome.exit_code) == ("INTERRUPTED", ExitCode.INTERRUPTED)
    assert outcome.error is not None
    assert outcome.error.message == (
        "stopped by SIGINT before Spark started: 1 of 3 tables had been loaded"
    )


def test_stop_while_the_first_driver_ends_is_an_interruption(
    job: LoadJob,
    said: tuple[Context, Callable[[], str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    context, text = said
    drivers = Drivers(monkeypatch, tmp_path, a="LOADED", b="SKIPPED", c="LOADED")
    monkeypatch.setattr(
        module, "prune_run_folders", lambda runs: signal.raise_signal(signal.SIGTERM)
    )
    outcome = sync_once(job, context, keeps()).outcome
    assert (outcome.status, len(drivers.specs), text()) == ("INTERRUPTED", 1, "")
    assert outcome.error is not None
    assert outcome.error.message.endswith("before Spark started: 2 of 3 tables had been loaded")


def test_jars_that_cannot_be_fetched_leave_what_the_first_driver_has_loaded(
    job: LoadJob,
    said: tuple[Context, Callable[[], str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    context, _ = said
    drivers = Drivers(monkeypatch, tmp_path, a="LOADED", b="SKIPPED", c="LOADED")

    def without_network() -> None:
        raise MachineNotReady("fetching iceberg.jar failed")

    drivers.with_jars = without_network
    synced = sync_once(job, context)
    assert statuses(synced.outcome) == {"a": "LOADED", "b": "SKIPPED", "c": "LOADED"}
    assert synced.outcome.exit_code == ExitCode.MACHINE
    assert synced.log is not None
    assert synced.connections is not None


def test_error_of_a_table_that_needs_jars_is_one_of_the_machine() -> None:
    error = JavaNeeded("shop.orders", SORTED)
    assert (error.exit_code, error.reason) == (ExitCode.MACHINE, SORTED)
    assert SORTED in error.message
