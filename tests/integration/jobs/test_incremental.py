"""`incremental: true`: each file once, whatever arrives in which order, and whoever runs beside."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.contract.spec import RunOptions, TableSpec
from lakeload_jobs.formats.parquet.load.write import ParquetWriter
from lakeload_jobs.sources.files import listing as input_listing
from tests.inputs import files_of
from tests.integration.jobs.conftest import Job


def csv(*numbers: int) -> str:
    return "n\n" + "".join(f"{number}\n" for number in numbers)


def at(path: str, seconds: int) -> str:
    """Give a file this modification time."""
    os.utime(path, (seconds, seconds))
    return path


def table(job: Job, *patterns: str, **changes: Any) -> TableSpec:
    """Return an incremental table of the CSV files that the patterns name below the input."""
    (job.folder / "input").mkdir(exist_ok=True)
    paths = [str(job.folder / "input" / pattern) for pattern in patterns or ["*.csv"]]
    spec = job.table(*paths, **changes)
    folder = str(job.folder / "input")
    return replace(spec, input=replace(files_of(spec), incremental=True, folder=folder))


def numbers(job: Job) -> list[int]:
    """Return the source's one column of everything that is visible in the lake."""
    found: list[Any] = []
    for key in job.lake.data_keys():
        found += pq.read_table(pa.BufferReader(job.lake.read(key)))["n"].to_pylist()
    return sorted(found)


def records(job: Job) -> list[dict[str, Any]]:
    """Return the records of the table's log, in order."""
    found = sorted(filter(re.compile(r"/log/\d+\.json$").search, job.lake.keys()))
    return [json.loads(job.lake.read(key)) for key in found]


def test_each_file_is_loaded_once_in_whatever_order_files_arrive(job: Job) -> None:
    orders = table(job)
    at(job.file("a.csv", csv(1, 2)), 100)
    at(job.file("b.csv", csv(3)), 200)
    first = job.load_one(orders)
    assert (first.status, first.rows) == ("LOADED", 3)
    assert first.notes == ("2 new files (0 known)",)

    again = job.load_one(orders)
    assert (again.status, again.rows, again.notes) == ("NO_OP", 0, ("no new files (2 known)",))
    assert len(records(job)) == 1

    at(job.file("c.csv", csv(4)), 300)
    assert job.load_one(orders).rows == 1
    at(job.file("late.csv", csv(5)), 150)
    late = job.load_one(orders)
    assert (late.rows, late.notes) == (1, ("1 new file (3 known)",))
    assert numbers(job) == [1, 2, 3, 4, 5]
    assert [record["inputs"][0]["names"] for record in records(job)] == [
        ["a.csv", "b.csv"],
        ["c.csv"],
        ["late.csv"],
    ]


def test_file_removed_and_restored_is_not_loaded_again(job: Job, tmp_path: Path) -> None:
    orders = table(job)
    archived = Path(at(job.file("a.csv", csv(1)), 200))
    at(job.file("b.csv", csv(2)), 100)
    job.load_one(orders)
    archived.rename(tmp_path / "archive.csv")
    assert job.load_one(orders).notes == ("no new files (1 known)",)
    assert [record["rows"] for record in records(job)] == [1 + 1, 0]
    # The second record has the state of what is there now: nobody needs the first one any more.
    assert job.load_one(orders).notes == ("no new files (1 known)",)
    assert len(records(job)) == 2
    (tmp_path / "archive.csv").rename(archived)
    assert job.load_one(orders).rows == 0
    archived.unlink()
    (job.folder / "input" / "b.csv").unlink()
    assert job.load_one(orders).notes == ("no new files (0 known)",)
    assert numbers(job) == [1, 2]


def test_file_rewritten_is_loaded_again_with_a_warning(job: Job) -> None:
    orders = table(job)
    at(job.file("a.csv", csv(1)), 100)
    at(job.file("b.csv", csv(2)), 100)
    job.load_one(orders)
    changed = at(job.file("a.csv", csv(1, 7)), 200)
    result = job.load_one(orders)
    assert result.rows == 2
    assert any("changed since it was loaded" in w and changed in w for w in result.warnings)
    assert numbers(job) == [1, 1, 2, 7]


def test_reload_loads_all_files_reports_it_and_updates_the_bookmark(job: Job) -> None:
    orders = table(job)
    at(job.file("a.csv", csv(1)), 100)
    job.load_one(orders)
    at(job.file("b.csv", csv(2)), 50)
    result = job.load_one(orders, options=RunOptions(reload=True, table_handling="APPEND"))
    assert (result.status, result.rows) == ("LOADED", 2)
    assert (
        "`--reload` appended all files (2) including files that were loaded before (1 of them had)"
        in result.warnings[0]
    )
    assert job.load_one(orders).status == "NO_OP"
    assert numbers(job) == [1, 1, 2]


def test_columns_that_only_some_files_have_keep_their_names_and_types(job: Job) -> None:
    orders = table(job)
    job.file("a.csv", "n,é\n1,2\n")
    job.load_one(orders)
    job.file("b.csv", "n\n3\n")
    job.load_one(orders)
    job.file("c.csv", "é,e,n\n4,x,5\n")
    result = job.load_one(orders)
    assert job.values(result) == [{"e": 4, "e_1": "x", "n": 5}]


def test_new_partition_folders_keep_their_columns(job: Job) -> None:
    orders = table(job, "by-day")
    job.file("by-day/day=1/a.csv", csv(1))
    job.load_one(orders)
    job.file("by-day/day=2/a.csv", csv(2))
    assert job.values(job.load_one(orders)) == [{"n": 2, "day": 2}]


def test_configuration_and_files_moved_together_keep_the_bookmark(job: Job) -> None:
    at(job.file("a.csv", csv(1)), 100)
    job.load_one(table(job))
    (job.folder / "input").rename(job.folder / "moved")
    moved = job.table(str(job.folder / "moved" / "*.csv"))
    folder = str(job.folder / "moved")
    result = job.load_one(
        replace(moved, input=replace(files_of(moved), incremental=True, folder=folder))
    )
    assert result.notes == ("no new files (1 known)",)


@pytest.fixture
def another_run_commits(job: Job, monkeypatch: pytest.MonkeyPatch) -> list[TableResult]:
    """Let another job of the same pipeline load between the listing of a job and its commit."""
    results: list[TableResult] = []
    original = input_listing.check_unchanged

    def check(*arguments: Any, **named: Any) -> None:
        monkeypatch.undo()
        results.append(job.load_one(table(job)))
        original(*arguments, **named)

    monkeypatch.setattr("lakeload_jobs.sources.files.spark.reader.check_unchanged", check)
    return results


def test_two_concurrent_incremental_runs_one_loads_and_one_conflicts(
    job: Job, another_run_commits: list[TableResult]
) -> None:
    job.file("a.csv", csv(1, 2, 3))
    slower = job.load_one(table(job))
    assert [result.status for result in another_run_commits] == ["LOADED"]
    assert slower.status == "FAILED"
    assert slower.error is not None
    assert "both would load the same rows" in slower.error.message
    assert slower.error.retryable
    assert numbers(job) == [1, 2, 3]
    assert job.lake.uploads_left() == []
    assert job.load_one(table(job)).status == "NO_OP"


@pytest.mark.parametrize(
    ("change", "moment"), [("append", "count"), ("replace", "stage"), ("remove", "count")]
)
def test_a_file_that_changes_while_it_is_read_fails_the_load_and_is_loaded_once_afterwards(
    job: Job, monkeypatch: pytest.MonkeyPatch, change: str, moment: str
) -> None:
    # Two files: two partitions, which are counted before they are written.
    path = Path(at(job.file("a.csv", csv(1)), 100))
    at(job.file("b.csv", csv(*range(10, 20))), 100)

    def meddle(*arguments: Any, **named: Any) -> Any:
        monkeypatch.undo()
        if change == "append":
            path.write_text(csv(1, 2))
        elif change == "remove":
            path.rename(path.with_suffix(".away"))
        else:
            other = path.with_suffix(".tmp")
            other.write_text(csv(5))
            other.rename(path)
        return original(*arguments, **named)

    original = getattr(ParquetWriter, moment)
    monkeypatch.setattr(ParquetWriter, moment, meddle)
    result = job.load_one(table(job))
    assert result.status == "FAILED", result
    assert numbers(job) == []
    assert job.lake.uploads_left() == []
    assert records(job) == []
    first = {"append": [1, 2], "remove": [], "replace": [5]}[change]
    assert job.load_one(table(job)).status == "LOADED"
    assert numbers(job) == sorted([*first, *range(10, 20)])


def test_incremental_after_non_incremental_loads_is_rejected(job: Job) -> None:
    path = job.file("a.csv", csv(1))
    job.load_one(job.table(path))
    result = job.load_one(table(job))
    assert result.error is not None
    assert "it is not known which files are loaded" in result.error.message
    assert "--reload" in (result.error.hint or "")
    assert (
        job.load_one(table(job), options=RunOptions(reload=True, table_handling="APPEND")).rows == 1
    )
    assert job.load_one(table(job)).status == "NO_OP"


def test_a_limit_is_refused_because_files_would_be_loaded_in_part(job: Job) -> None:
    job.file("a.csv", csv(1, 2))
    result = job.load_one(table(job), options=RunOptions(limit=1, table_handling="APPEND"))
    assert result.error is not None
    assert result.error.exit_code == 2
    assert "`--limit` cannot be used" in result.error.message
