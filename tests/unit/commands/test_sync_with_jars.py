"""A sync that finds out late that a table needs the jars of its format. Nothing is loaded."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from lakeload.commands import sync_once as module
from lakeload.commands.spark_job import Context
from lakeload.commands.sync_once import Kept, LoadJob, Synced, sync_once
from lakeload.documents.spec import table_specs
from lakeload.launch.outcome import Outcome, OutcomeKind
from lakeload.launch.run import Ended, Launcher
from lakeload.launch.run_folder import RunFolder
from lakeload.launch.spec import new_attempt
from lakeload.launch.stop import StopRequests
from lakeload_jobs.contract.errors import ExitCode, JavaNeeded
from lakeload_jobs.contract.result import ErrorInfo, TableResult, TableStatus
from lakeload_jobs.contract.spec import NO_OPTIONS, JobSpec
from lakeload_jobs.contract.usage import Usage
from tests.unit.documents.documents import pipeline

TEXT = """version: 1
name: shop
namespace: shop
source: {type: FILES, format: CSV}
destination: {version: 1, bucket: my-data-lake, region: us-east-1, table_format: ICEBERG}
tables: [{table: a, path: a.csv}, {table: b, path: b.csv}, {table: c, path: c.csv}]
"""
SORTED = "the table has a sort order"


@pytest.fixture
def job(tmp_path: Path) -> LoadJob:
    document = pipeline(tmp_path, TEXT)
    return LoadJob(document, table_specs(document, NO_OPTIONS), new_attempt(None), NO_OPTIONS)


class Attempts:
    """Stands for the load with one driver. Without jars it ends as `statuses` says, where SKIPPED
    is a table that needs them; with jars it loads what it is given."""

    def __init__(self, kind: OutcomeKind = "FAILED", **statuses: TableStatus) -> None:
        self.jobs: list[LoadJob] = []
        self._kind = kind
        self._statuses = statuses

    def __call__(self, job: LoadJob, context: Context, kept: Kept | None) -> Synced:
        self.jobs.append(job)
        tables = tuple(
            TableResult(
                one.source,
                one.target,
                status := "LOADED" if job.format_jars else self._statuses[one.source],
                error=ErrorInfo("LoadFailed", "no", 1) if status == "FAILED" else None,
            )
            for one in job.tables
        )
        late = {table.table: SORTED for table in tables if table.status == "SKIPPED"}
        outcome = Outcome.of(tables, Usage(2.0, 100 * len(self.jobs), {"s3": 3}))
        if late:
            outcome = replace(outcome, needs_java=late, kind=self._kind)
        return Synced(outcome)


@pytest.fixture
def said() -> Iterator[tuple[Context, Callable[[], str]]]:
    text = io.StringIO()
    with StopRequests() as stop:
        yield Context({}, stop, Console(file=text, width=200)), text.getvalue


def test_tables_that_need_jars_are_loaded_by_a_second_driver(
    job: LoadJob, said: tuple[Context, Callable[[], str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    context, text = said
    attempts = Attempts(a="LOADED", b="SKIPPED", c="FAILED")
    monkeypatch.setattr(module, "_sync_attempt", attempts)
    outcome = sync_once(job, context).outcome
    first, second = attempts.jobs
    assert [table.source for table in second.tables] == ["b"]
    assert second.attempt.job_id == first.attempt.job_id
    assert second.attempt.attempt_id != first.attempt.attempt_id
    assert {table.table: table.status for table in outcome.tables} == {
        "a": "LOADED",
        "b": "LOADED",
        "c": "FAILED",
    }
    assert outcome.exit_code == ExitCode.TABLE_FAILED
    assert outcome.usage == Usage(4.0, 200, {"s3": 6})
    assert text().splitlines() == [
        "`shop.b` needs Iceberg's Java code (the table has a sort order): starting Spark again "
        "with it"
    ]


def test_driver_that_stays_has_the_jars_in_later_rounds(
    job: LoadJob, said: tuple[Context, Callable[[], str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    context, text = said
    monkeypatch.setattr(
        module, "_sync_attempt", attempts := Attempts(a="LOADED", b="SKIPPED", c="SKIPPED")
    )

    def run(spec: JobSpec, folder: RunFolder, launcher: Launcher) -> Ended:
        raise NotImplementedError

    kept = Kept(run, lambda: None)
    outcome = sync_once(job, context, kept).outcome
    assert outcome.exit_code == ExitCode.OK
    assert kept.format_jars
    assert len(attempts.jobs) == 2
    assert "`shop.b`, `shop.c` need Iceberg's Java code" in text()


def test_stopped_load_is_not_started_again(
    job: LoadJob, said: tuple[Context, Callable[[], str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    context, text = said
    attempts = Attempts("INTERRUPTED", a="LOADED", b="SKIPPED", c="INTERRUPTED")
    monkeypatch.setattr(module, "_sync_attempt", attempts)
    assert sync_once(job, context).outcome.kind == "INTERRUPTED"
    assert len(attempts.jobs) == 1
    assert text() == ""


def test_error_of_a_table_that_needs_jars_is_one_of_the_machine() -> None:
    error = JavaNeeded("shop.orders", SORTED)
    assert (error.exit_code, error.reason) == (ExitCode.MACHINE, SORTED)
    assert SORTED in error.message
