"""New data that waits at an interval until there is enough or it is old."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lakeload.formats.inspection import outcome_without_spark
from lakeload.formats.parquet.inspect import ParquetState
from lakeload.formats.waiting import Waiting
from lakeload.sources.files.report import report_of_selection
from lakeload.sources.report import SourceReport
from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.contract.spec import CommitAt, FilesInput, JdbcInput
from lakeload_jobs.contract.state import Evidence, StateChange
from lakeload_jobs.sources.files.selection import Selection
from lakeload_jobs.sources.paths.file_state import FileState
from tests.unit.launch.specs import table

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MIB = 1 << 20
LOADED = TableResult("orders", "shop.orders", "LOADED")


def new_files(limit: CommitAt, *, size: int, minutes: int) -> ParquetState:
    """A table with two new files, the older of which is so old."""
    at = [int((NOW - timedelta(minutes=old)).timestamp() * 1e9) for old in (minutes, 0)]
    files = tuple(FileState(f"/{i}.csv", size // 2, modified) for i, modified in enumerate(at))
    change = StateChange(None, {})
    selection = Selection(files, 0, 0, (), change, Evidence(), moves_state=False)
    report = report_of_selection(files, selection, reload=False)
    read = FilesInput("CSV", ("/*.csv",), {}, incremental=True)
    return ParquetState(replace(table("orders"), input=read, commit_at=limit), report=report)


def new_rows(limit: CommitAt, *, idle: bool = False) -> ParquetState:
    """A table of a database with new rows."""
    report = SourceReport(sentence="rows", idle=idle)
    read = JdbcInput("POSTGRESQL", "db", 5432, "shop", "public", "orders", incremental=True)
    return ParquetState(replace(table("orders"), input=read, commit_at=limit), report=report)


@pytest.mark.parametrize(
    ("limit", "size", "minutes", "waits"),
    [
        (CommitAt(bytes=10 * MIB), 9 * MIB, 600, True),
        (CommitAt(bytes=10 * MIB), 10 * MIB, 0, False),
        (CommitAt(age=900), 900 * MIB, 14, True),
        (CommitAt(age=900), MIB, 15, False),
        (CommitAt(10 * MIB, 900), 9 * MIB, 14, True),
        (CommitAt(10 * MIB, 900), 9 * MIB, 15, False),
        (CommitAt(10 * MIB, 900), 10 * MIB, 14, False),
    ],
)
def test_files_wait_until_there_is_enough_or_the_oldest_is_old(
    limit: CommitAt, size: int, minutes: int, *, waits: bool
) -> None:
    [state] = Waiting().with_waiting([new_files(limit, size=size, minutes=minutes)], NOW)

    assert (state.waiting is not None) is waits
    assert (outcome_without_spark([state]) is not None) is waits


def test_waiting_table_says_what_waits_and_for_what() -> None:
    state = new_files(CommitAt(128 * MIB, 900), size=12 * MIB, minutes=3)
    [waiting] = Waiting().with_waiting([state], NOW)

    assert waiting.result.status == "NO_OP"
    assert waiting.result.notes == ("waiting: 12.0 MiB of 128.0 MiB, oldest 3 min of 15 min",)
    assert waiting.result.waiting is not None
    assert waiting.result.waiting.since == NOW - timedelta(minutes=3)


def test_rows_of_a_database_are_as_old_as_the_round_that_found_them() -> None:
    waiting, state = Waiting(), new_rows(CommitAt(age=60))

    def waits(seconds: int) -> bool:
        [found] = waiting.with_waiting([state], NOW + timedelta(seconds=seconds))
        if found.waiting is None:
            waiting.note_loaded([LOADED])
        return found.waiting is not None

    # How old rows are that the process has not seen arrive is not known.
    assert [waits(0), waits(10), waits(69), waits(70)] == [False, True, True, False]
    assert [waits(80), waits(140)] == [True, False]


def test_load_that_fails_is_tried_again_without_waiting() -> None:
    waiting, state = Waiting(), new_rows(CommitAt(age=60))
    waiting.with_waiting([state], NOW)
    waiting.with_waiting([state], NOW)
    for seconds in (60, 61):
        [found] = waiting.with_waiting([state], NOW + timedelta(seconds=seconds))
        waiting.note_loaded([replace(LOADED, status="FAILED")])
        assert found.waiting is None


def test_table_without_anything_new_does_not_wait() -> None:
    [state] = Waiting().with_waiting([new_rows(CommitAt(age=60), idle=True)], NOW)

    assert state.waiting is None
