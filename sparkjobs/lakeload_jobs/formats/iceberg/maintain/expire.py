"""Expiry of snapshots, and what is kept."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from lakeload_jobs.contract.maintain import StepResult
from lakeload_jobs.formats.iceberg.load.tables import Java
from lakeload_jobs.formats.iceberg.maintain.work import (
    Work,
    check_deleting,
    keeps_files,
    metadata_table,
    not_possible,
    nothing,
    shown,
    until_won,
)
from lakeload_jobs.formats.iceberg.rules.branches import left_branches, staging_branches
from lakeload_jobs.formats.iceberg.rules.facts import TableFacts, lineage, pipelines_of, state_of

STATES_KEPT = timedelta(days=30)
"""A pipeline that has not loaded for longer does not keep a table's history."""


def kept_snapshots(facts: TableFacts, branch: str, now: datetime) -> frozenset[int]:
    """Return the snapshots of `branch` that have to stay: all from its head back to the oldest of

    - the snapshot of each pipeline's state, unless it is older than `STATES_KEPT`;
    - the one that each staging branch was made from: its load publishes only while the head it
      began with is still an ancestor (I2).

    Without those in between, an old snapshot could not be told from one that was rolled back.
    """
    own = lineage(facts, branch).ids
    oldest_kept = (now - STATES_KEPT).timestamp() * 1000
    needed = {
        state.snapshot
        for name in pipelines_of(facts)
        if (state := state_of(facts, name)) is not None
        and state.snapshot in facts.snapshots
        and facts.snapshots[state.snapshot].timestamp_ms >= oldest_kept
    }
    for staged in staging_branches(facts.refs):
        base = next((number for number in lineage(facts, staged.name).ids if number in own), None)
        if base is not None:
            needed.add(base)
    depth = max((own.index(number) for number in needed if number in own), default=-1)
    return frozenset(own[: depth + 1])


_BEGINNING = 1
"""Milliseconds since 1970: expires nothing, so that only the snapshots that are named go."""


@dataclass(frozen=True)
class Expiry:
    """The snapshots to expire, and how many old ones stay because loads need them."""

    snapshots: tuple[int, ...]
    kept: int


def expire(work: Work) -> StepResult:
    """Expire old snapshots, or say how many, with the files that they alone refer to."""
    if why := keeps_files(work.facts().properties):
        return not_possible("expire", why)
    found = _old(work)
    notes = (_kept_note(found.kept),) if found.kept else ()
    if not found.snapshots:
        return nothing("expire", *notes)
    files, size = _freed(work, found.snapshots)
    if work.spec.apply:
        check_deleting(work)
        until_won(work, lambda: _expire(work))
    return StepResult(
        "expire",
        "DONE" if work.spec.apply else "WOULD_DO",
        files=files,
        bytes=size,
        snapshots=len(found.snapshots),
        notes=notes,
    )


def _old(work: Work) -> Expiry:
    """Ask Iceberg what it would expire, and leave out what loads need."""
    facts = work.facts()
    update = work.table.expireSnapshots()
    if work.spec.older_than is not None:
        age = work.spec.older_than
        update = update.expireOlderThan(int((work.now().timestamp() - age) * 1000))
    if work.spec.retain_last is not None:
        update = update.retainLast(work.spec.retain_last)
    old = [snapshot.snapshotId() for snapshot in update.apply()]
    needed = kept_snapshots(facts, work.branch, work.now())
    return Expiry(
        tuple(number for number in old if number not in needed),
        sum(number in needed for number in old),
    )


def _expire(work: Work) -> Java:
    # What is old is asked anew: a try that lost may have lost to an expiry.
    found = _old(work)
    action = work.actions.expireSnapshots(work.table)
    for number in found.snapshots:
        action = action.expireSnapshotId(number)
    action = action.expireOlderThan(_BEGINNING).cleanExpiredMetadata(True)
    return action.option("stream-results", "true").execute()


def _freed(work: Work, snapshots: Collection[int]) -> tuple[int, int]:
    """Return the files that would go and their bytes, without the bytes of manifest lists.

    As Iceberg's action finds them: what its metadata tables have now, and have no longer after an
    expiry that is made up in memory.
    """
    after = _without(work, snapshots)
    sizes = _files(work, work.table).groupBy("path").agg(sql.max("size").alias("size"))
    freed = sizes.join(_files(work, after).select("path").distinct(), "path", "left_anti")
    (row,) = freed.agg(sql.count("path").alias("files"), sql.sum("size").alias("size")).collect()
    # Each snapshot has a manifest list of its own.
    return int(row["files"]) + len(snapshots), int(row["size"] or 0)


def _without(work: Work, snapshots: Collection[int]) -> Java:
    """Return the table as it would be without some snapshots. Nothing is written."""
    iceberg = work.java.org.apache.iceberg
    transaction = work.table.newTransaction()
    update = transaction.expireSnapshots().expireOlderThan(_BEGINNING)
    for number in snapshots:
        update = update.expireSnapshotId(number)
    update.cleanExpiredFiles(False).commit()
    now = work.table.operations().current().metadataFileLocation()
    metadata = iceberg.TableMetadata.buildFrom(transaction.table().operations().current())
    # Metadata tables are known by the file they are of.
    located = metadata.discardChanges().withMetadataLocation(now).build()
    return iceberg.BaseTable(
        iceberg.StaticTableOperations(located, work.table.io()), work.table.name()
    )


def _files(work: Work, table: Java) -> DataFrame:
    """Return path and size of every data file, delete file and manifest of a table's snapshots."""

    def read(kind: str, path: str, size: str) -> DataFrame:
        rows = metadata_table(work, table, kind)
        return rows.selectExpr(f"{path} AS path", f"{size} AS size")

    files = read("ALL_FILES", "file_path", "file_size_in_bytes")
    return files.union(read("ALL_MANIFESTS", "path", "length"))


def _kept_note(kept: int) -> str:
    noun = "snapshot stays" if kept == 1 else "snapshots stay"
    return f"{kept} old {noun}: the latest load of a pipeline, or one that runs, needs them"


def drop_branches(work: Work) -> StepResult:
    """Drop the staging branches that are older than `abort_older_than`, or say which."""
    found = _left(work)
    if not found:
        return nothing("branches")
    if not work.spec.apply:
        return StepResult("branches", "WOULD_DO", items=shown(found))
    dropped = until_won(work, lambda: _drop(work))
    return StepResult("branches", "DONE", items=shown(dropped)) if dropped else nothing("branches")


def _left(work: Work) -> list[str]:
    age = timedelta(seconds=work.spec.abort_older_than)
    return list(left_branches(work.facts().refs, work.now(), age))


def _drop(work: Work) -> list[str]:
    # Found anew each time: a slow load may have published and removed its branch meanwhile.
    found = _left(work)
    if found:
        change = work.table.manageSnapshots()
        for name in found:
            change = change.removeBranch(name)
        change.commit()
    return found
