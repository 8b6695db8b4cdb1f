"""Numbers in the summary of a load's snapshot."""

from __future__ import annotations

import pytest

from lakeload_jobs.contract.result import RowChanges
from lakeload_jobs.formats.iceberg.rules.facts import SUMMARY_DELETED, SUMMARY_MODE, SUMMARY_ROWS
from lakeload_jobs.formats.iceberg.rules.summaries import beyond, changes, loaded_rows, merged_rows


def merge(*numbers: int, added: int, **more: int) -> dict[str, str]:
    """Return the summary of a MERGE: rows inserted, updated, deleted and copied, and its files."""
    names = ("inserted", "updated", "deleted", "copied")
    pairs = zip(names, numbers, strict=True)
    merged = {f"spark.merge-into.num-target-rows-{name}": number for name, number in pairs}
    files = {"added-records": added} | {name.replace("_", "-"): n for name, n in more.items()}
    return {SUMMARY_MODE: "UPSERT"} | {name: str(n) for name, n in (merged | files).items()}


def test_numbers_of_a_merge_that_its_files_contradict_are_not_believed() -> None:
    rewritten = merge(2, 3, 0, 16, added=21, deleted_records=19)
    doubled = merge(4, 6, 0, 32, added=21, deleted_records=19)

    assert merged_rows(rewritten) == changes(rewritten) == RowChanges(2, 3, 0)
    assert merged_rows(doubled) is changes(doubled) is None
    assert changes(merge(0, 0, 4, 0, added=0)) == RowChanges(0, 0, 4)


@pytest.mark.parametrize(
    ("summary", "copies", "rows"),
    [
        (merge(2, 3, 1, 0, added=5), False, 0),
        (merge(2, 3, 1, 0, added=4), False, -1),
        (merge(2, 3, 1, 15, added=20, deleted_records=19), True, 0),
        (merge(2, 3, 1, 15, added=22, deleted_records=19), True, 2),
        (merge(2, 3, 1, 15, added=22, deleted_records=19, total_position_deletes=1), True, 0),
    ],
)
def test_rows_in_the_files_of_a_merge_are_compared_with_what_it_did(
    summary: dict[str, str], copies: bool, rows: int
) -> None:
    assert beyond(RowChanges(2, 3, 1), summary, copies=copies) == rows


def test_rows_that_were_not_counted_are_those_that_the_snapshot_brought() -> None:
    appended = {SUMMARY_MODE: "APPEND", "added-records": "9"}

    assert loaded_rows(appended) == 9
    assert loaded_rows(appended | {SUMMARY_DELETED: "2"}) == 7
    assert loaded_rows(appended | {SUMMARY_ROWS: "8"}) == 8
    assert loaded_rows(merge(2, 3, 1, 0, added=5)) == 6
