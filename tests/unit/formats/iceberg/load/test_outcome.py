"""What the user of a loaded Iceberg table is told."""

from __future__ import annotations

import pytest

from lakeload_jobs.contract.result import RowChanges
from lakeload_jobs.formats.iceberg.load.outcome import already, beyond, changes, merged_rows
from lakeload_jobs.formats.iceberg.rules.facts import SUMMARY_MODE
from tests.unit.formats.iceberg.test_operations import OURS, facts, loaded
from tests.unit.launch.specs import table


def test_committed_job_without_file_names_has_its_file_count() -> None:
    snapshot = loaded(1, None, "job-1")
    summary = snapshot["summary"]
    assert isinstance(summary, dict)
    summary |= {"added-data-files": "512"}

    result = already(table("orders"), facts(snapshot, properties=OURS, head=1), 1)

    assert (result.files, result.file_count, result.bytes) == ((), 512, 2048)


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
