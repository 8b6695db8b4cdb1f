"""Iceberg tables after the load: what their metadata tells, and what may be taken away."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from lakeload.documents.named_files import NamedFiles
from lakeload.formats.iceberg import recover, reset, runs
from lakeload.formats.iceberg.recover import BranchRecovery
from lakeload.formats.iceberg.reset import TableDrop, check_droppable
from lakeload.formats.iceberg.runs import SnapshotTable, published
from lakeload.ui import recover as recover_ui
from lakeload.ui import reset as reset_ui
from lakeload.ui import runs as runs_ui
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.formats.iceberg.catalogs.reading import facts_of
from lakeload_jobs.formats.iceberg.catalogs.table_files import Removal, TableFiles
from lakeload_jobs.formats.iceberg.rules.branches import StagingBranch, staging_branch
from lakeload_jobs.formats.iceberg.rules.facts import TableFacts, job_key
from tests.unit.formats.iceberg.metadata import open_table, snapshot

ATTEMPT = "3f1e0c5a-7c1e-4f1b-9d55-1f0e6e3b2a10"
AT = datetime(2026, 11, 21, 10, 15, tzinfo=UTC)
LEFT = StagingBranch(staging_branch(AT, ATTEMPT), ATTEMPT, AT, 9)
OURS = {"lakeload.created-by": "shop", "lakeload.state.shop": "{}"}


def loaded(number: int, parent: int | None, job: str, pipeline: str = "shop") -> dict[str, object]:
    """Return a snapshot as a load publishes it."""
    return snapshot(
        number,
        parent,
        **{
            "added-records": "5",
            "added-data-files": "1",
            "added-files-size": "2048",
            "lakeload.job-id": job,
            "lakeload.pipeline": pipeline,
            "lakeload.attempt": ATTEMPT,
            "lakeload.rows": "5",
            "lakeload.mode": "APPEND",
        },
    )


def facts(*snapshots: dict[str, object], properties: dict[str, str], head: int) -> TableFacts:
    """Return the facts of a table whose main branch is at `head`."""
    return facts_of(open_table(*snapshots, properties=properties, refs={"main": head}))


def console() -> Console:
    """Return a stream of 80 columns that is no terminal."""
    return Console(file=io.StringIO(), width=80, markup=False, highlight=False)


def lines(stream: Console) -> list[str]:
    """Return what was written, line by line."""
    assert isinstance(stream.file, io.StringIO)
    return [line.rstrip() for line in stream.file.getvalue().splitlines()]


def test_rolled_back_job_differs_from_an_unpublished_one() -> None:
    remembered = f"{job_key('shop', 'a')}:1,{job_key('shop', 'b')}:2"
    found = facts(
        loaded(1, None, "a"),
        loaded(2, 1, "b"),
        loaded(3, 1, "staged"),
        snapshot(4, 1, operation="replace"),
        properties={"lakeload.jobs": remembered},
        head=4,
    )
    known = {run.job_id: run for run in published(found, "main", "shop.orders")}
    assert {job: run.state for job, run in known.items()} == {"a": "done", "b": "rolled back"}
    assert (known["a"].rows, known["a"].files, known["a"].bytes) == (5, 1, 2048)
    assert (known["a"].mode, known["a"].document["attempt_id"], known["a"].pipeline) == (
        "APPEND",
        ATTEMPT,
        "shop",
    )


def test_job_whose_rows_were_not_counted_has_those_of_its_snapshot() -> None:
    uncounted = loaded(1, None, "a")
    summary = uncounted["summary"]
    assert isinstance(summary, dict)
    del summary["lakeload.rows"]
    summary["added-records"] = "9"

    [run] = published(facts(uncounted, properties={}, head=1), "main", "shop.orders")

    assert run.rows == 9


def test_runs_are_grouped_by_job_with_details_of_the_table() -> None:
    found = facts(loaded(1, None, "monday"), properties={}, head=1)
    history = runs.report(
        published(found, "main", "shop.orders"),
        (SnapshotTable("shop.orders", True, 3, (LEFT,)), SnapshotTable("shop.new", exists=False)),
    )
    out, err = console(), console()
    runs_ui.show_text(history, NamedFiles(Path("p.yml")), out, err, verbose=False)
    assert lines(out) == [
        "2026-11-21 10:01  job monday  pipeline shop",
        "  shop.orders  APPEND  5 rows  1 file  2.0 KiB  done",
        "shop.orders: 3 earlier jobs whose snapshots have expired",
        "shop.orders: a load that is running or was abandoned, since 2026-11-21 10:15",
        f"  branch {LEFT.name}",
    ]
    more = console()
    runs_ui.show_text(history, NamedFiles(Path("p.yml")), more, err, verbose=True)
    assert lines(more)[2:4] == [
        "    shop.orders: snapshot 1",
        f"      attempt {ATTEMPT}",
    ]
    document = runs_ui.to_document(history)
    assert document["runs"][0]["snapshot_id"] == 1
    assert [table["exists"] for table in document["tables"]] == [True, False]
    assert document["tables"][0]["branches"][0]["attempt_id"] == ATTEMPT


@pytest.mark.parametrize(
    ("properties", "snapshots", "said"),
    [
        ({}, (), "made by no load"),
        ({"lakeload.created-by": "other"}, (), "made by pipeline `other`"),
        ({**OURS, "lakeload.state.other": "{}"}, (), "rows of pipeline `other`"),
        (OURS, (loaded(1, None, "a", "third"),), "rows of pipeline `third`"),
        (OURS, (snapshot(1, None, **{"added-records": "3"}),), "no load of lakeload wrote (1 of"),
    ],
)
def test_reset_of_a_table_with_other_rows_does_not_drop_it(
    properties: dict[str, str], snapshots: tuple[dict[str, object], ...], said: str
) -> None:
    found = facts_of(open_table(*snapshots, properties=properties))
    with pytest.raises(LoadFailed) as caught:
        check_droppable(found, "shop")
    assert said in caught.value.message


def test_reset_of_a_table_with_a_running_load_does_not_drop_it() -> None:
    found = facts_of(
        open_table(loaded(9, None, "a"), properties=OURS, refs={"main": 9, LEFT.name: 9})
    )
    with pytest.raises(LoadFailed, match="not published yet: 1"):
        check_droppable(found, "shop")


def test_reset_after_own_compaction_drops_the_table() -> None:
    found = facts(
        loaded(1, None, "a"),
        snapshot(2, 1, operation="replace", **{"added-records": "5"}),
        properties=OURS,
        head=2,
    )
    check_droppable(found, "shop")


def test_recover_text_lists_removed_and_kept_objects() -> None:
    young = StagingBranch(LEFT.name, "11111111-2222-3333-4444-555555555555", AT, 10)
    found = [
        BranchRecovery("shop.orders", True, (LEFT,), (young,)),
        BranchRecovery("shop.visits"),
        BranchRecovery("shop.new", exists=False),
    ]
    done = recover.report(found, dry_run=False)
    out, err = console(), console()
    recover_ui.show_text(done, NamedFiles(Path("p.yml")), out, err)
    assert lines(out) == [
        "table        status      what was done",
        "shop.orders  RECOVERED   dropped 1 branch of abandoned attempts",
        "shop.visits  UP_TO_DATE  nothing to do",
        "shop.new     UP_TO_DATE  there is no such table yet",
        "shop.orders: branch of 2026-11-21 10:15: gone",
        f"  attempt {ATTEMPT}",
        "shop.orders: branch of 2026-11-21 10:15: stays: it is too new",
        "  attempt 11111111-2222-3333-4444-555555555555",
    ]
    assert lines(err) == [
        "note: an Iceberg table shows a whole job or none of it: only branches, uploads and "
        "files can be left"
    ]
    document = recover_ui.to_document(done)
    assert [table["status"] for table in document["tables"]] == [
        "RECOVERED",
        "UP_TO_DATE",
        "UP_TO_DATE",
    ]


def test_reset_text_lists_planned_and_removed_objects() -> None:
    files = TableFiles(
        {"s3://b/t/data/1.parquet": 2048}, ("s3://b/t/metadata/1.json",), ("s3://x",)
    )
    planned = TableDrop("shop.orders", "s3://b/t", 2, 7, files, ("lists/1.json",))
    gone = replace(planned, dropped=True, removal=Removal(2))
    out, err = console(), console()
    command = "lakeload reset p.yml orders --yes"
    reset_ui.show_text(reset.report([planned], done=False), command, out, err)
    reset_ui.show_text(reset.report([gone], done=True), "", out, err)
    assert lines(out) == [
        "shop.orders",
        "  would drop the table from the catalog: 7 rows in 2 snapshots",
        "  would remove 1 file of rows, 2.0 KiB, and 1 file of metadata",
        "  would remove 1 list of loaded files",
        "  left in place, because it is not below `s3://b/t`: 1 file",
        "    s3://x",
        "shop.orders",
        "  dropped the table from the catalog: 7 rows in 2 snapshots",
        "  removed 2 files: 2.0 KiB of rows, and metadata",
        "  left in place, because it is not below `s3://b/t`: 1 file",
        "    s3://x",
    ]
    assert lines(err) == [
        "note: nothing was removed; to apply: `lakeload reset p.yml orders --yes`"
    ]
    assert reset_ui.to_document(reset.report([gone], done=True))["tables"][0]["dropped"]
