"""Rewrites that not every table gets: of position deletes, and on another branch than `main`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakeload_jobs.contract.events import Step
from lakeload_jobs.contract.spec import PartitionField
from tests.integration.formats.iceberg.upkeep import Upkeep, glue_upkeep, small_files, statuses
from tests.servers.ministack import Lake

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def upkeep(spark: SparkSession, base_identity: Lake, tmp_path: Path) -> Upkeep:
    return glue_upkeep(spark, base_identity, tmp_path)


def delete_files(upkeep: Upkeep) -> int:
    """Return the number of files of deletes that readers of `main` have to apply."""
    summary = upkeep.read().current_snapshot().summary  # type: ignore[union-attr]
    assert summary is not None
    return int(summary["total-delete-files"] or 0)


def test_delete_files_are_rewritten_where_that_leaves_fewer(upkeep: Upkeep) -> None:
    def upsert(*ids: int) -> None:
        path = upkeep.file([{"id": number, "note": "new"} for number in ids])
        upkeep.loaded(upkeep.table(path, primary_key=("id",), mode="UPSERT"))

    upsert(0, 1)
    small_files(upkeep, rows=2)
    upsert(*range(100, 112, 2))
    table = upkeep.table(primary_key=("id",))

    # Spark keeps one file of deletes for each data file: there is nothing to join.
    assert delete_files(upkeep) == 6
    assert statuses(upkeep.keep(table, "deletes")) == {"deletes": "NOTHING_TO_DO"}

    granularity(upkeep, "partition")
    upsert(101, 103)
    upsert(105, 107)
    expected, before = upkeep.rows(), delete_files(upkeep)
    assert len(expected) == 14
    assert before > 6

    # Six data files have deleted rows; then all is one partition.
    for wanted, left in (("file", 6), ("partition", 1)):
        granularity(upkeep, wanted)
        said = upkeep.keep(table, "deletes", apply=False)["deletes"]
        did = upkeep.keep(table, "deletes")["deletes"]
        assert (said.status, said.files, said.files_after) == ("WOULD_DO", before, left)
        assert did == replace(said, status="DONE")
        assert delete_files(upkeep) == left
        assert upkeep.rows() == expected
        assert statuses(upkeep.keep(table, "deletes")) == {"deletes": "NOTHING_TO_DO"}
        before = left


def granularity(upkeep: Upkeep, value: str) -> None:
    """Say of what a file of deletes is: one data file, or a partition."""
    upkeep.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('write.delete.granularity' = '{value}')")


def test_another_branch_is_compacted_and_main_stays_as_it_is(upkeep: Upkeep) -> None:
    audit = replace(upkeep.destination.iceberg, branch="audit")
    upkeep.destination = replace(upkeep.destination, iceberg=audit)
    one_partition: dict[str, Any] = {"partition_by": (PartitionField("bucket", "id", 1),)}
    table = upkeep.table(upkeep.file([{"id": n} for n in range(10)]), **one_partition)
    upkeep.loaded(table)
    rewrites: tuple[Step, ...] = ("compact", "deletes", "manifests")

    without_main = upkeep.keep(table, *rewrites, apply=False)
    upkeep.java().manageSnapshots().fastForwardBranch("main", "audit").commit()
    small_files(upkeep, branch="audit")
    upkeep.sql("DELETE FROM {t}.branch_audit WHERE id = 3")
    said = upkeep.keep(table, *rewrites, apply=False)
    main, before = refs(upkeep)
    did = upkeep.keep(table, *rewrites)
    main_after, after = refs(upkeep)

    assert set(statuses(without_main).values()) == {"UNSUPPORTED"}
    assert "once the branch `main` has a snapshot" in without_main["compact"].notes[0]
    assert statuses(said) == {
        "compact": "WOULD_DO",
        "deletes": "UNSUPPORTED",
        "manifests": "UNSUPPORTED",
    }
    assert did["compact"] == replace(said["compact"], status="DONE", delete_files=1)
    assert (did["compact"].files, did["compact"].files_after) == (7, 1)
    assert main_after == main
    assert upkeep.rows(snapshot_id=after) == upkeep.rows(snapshot_id=before)
    assert len(upkeep.rows(snapshot_id=after)) == 15
    assert len(list(upkeep.read().scan(snapshot_id=after).plan_files())) == 1
    assert len(upkeep.rows()) == 10


def refs(upkeep: Upkeep) -> tuple[int, int]:
    """Return the snapshots of `main` and of `audit`."""
    found = upkeep.read().metadata.refs
    return found["main"].snapshot_id, found["audit"].snapshot_id
