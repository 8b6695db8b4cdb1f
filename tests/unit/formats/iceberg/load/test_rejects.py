"""Commits to a side table: whatever becomes of one, records are in once, or gone."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import (
    DestinationSpec,
    FilesInput,
    JobSpec,
    TableSpec,
)
from lakeload_jobs.formats.iceberg.catalogs import changes
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable
from lakeload_jobs.formats.iceberg.commits.metadata import (
    Json,
    add_snapshot,
    set_branch,
    set_properties,
)
from lakeload_jobs.formats.iceberg.left_rejects import settle_rejects
from lakeload_jobs.formats.iceberg.load import write
from lakeload_jobs.formats.iceberg.load.catalog_tables import CatalogTables
from lakeload_jobs.formats.iceberg.load.direct_write import Written
from lakeload_jobs.formats.iceberg.load.rejects import commit_records
from lakeload_jobs.formats.iceberg.rules.branches import staging_branch
from lakeload_jobs.formats.iceberg.rules.rejects import REJECTED_OF, PendingRejects
from lakeload_jobs.rows.counting import NO_ROWS, RowsReport
from lakeload_jobs.rows.rejects import Rejected
from tests.unit.formats.iceberg.commits.own_table import OwnTable, data_file
from tests.unit.formats.iceberg.load.own_store import OwnStore, after, lost, never, sent_twice

ATTEMPT = "0b6f3c1e-7d7b-4c7e-9d0f-1f2e3d4c5b6a"
OLD = staging_branch(datetime.now(UTC) - timedelta(days=2), ATTEMPT)
NEW = staging_branch(datetime.now(UTC), ATTEMPT)
BY_ROUND: Json = {
    "spec-id": 0,
    "fields": [
        {"name": "staging_branch", "transform": "identity", "source-id": 2, "field-id": 1000}
    ],
}
TABLE = TableSpec("orders", "db", "orders", FilesInput("CSV", ("/a.csv",), {}), "f00")
SIDE = TableSpec("orders", "db", "orders_rejected", FilesInput("CSV", ("/a.csv",), {}), "f00")
JOB = JobSpec(
    *(1, "shop", "job-1", ATTEMPT, datetime(2026, 11, 21, tzinfo=UTC)),
    *(DestinationSpec("lake", "eu", table_format="ICEBERG"), (TABLE,), "", ""),
)

fates = pytest.mark.parametrize("fate", [None, lost, sent_twice, never])
both = pytest.mark.parametrize("whole", [True, False], ids=["metadata", "references"])


@dataclass
class Store(OwnStore):
    """The side table, beside a table that has no snapshot."""

    main: Json = field(default_factory=dict)

    def load(self, namespace: str, name: str) -> ReadTable:
        """Read one of the two."""
        if name == TABLE.table:
            return ReadTable(namespace, name, self.main, "main.json")
        return super().load(namespace, name)


@dataclass(frozen=True)
class Tables(CatalogTables):
    """Tables whose metadata files are of this machine."""

    def files(self, table: ReadTable) -> LakeFiles:
        """Return where the metadata is."""
        return cast("LakeFiles", cast("OwnStore", self.store).table.files)


def begun(folder: Path, *, whole: bool) -> tuple[Store, Tables]:
    """A side table with records of a round that nobody waits for."""
    table = OwnTable.new(folder, spec=BY_ROUND, properties={REJECTED_OF: TABLE.target})
    table.append(data_file("kept", 1, staging_branch="other"))
    store = Store(table, whole)
    store.main = {**table.metadata, "refs": {}, "snapshots": [], "current-snapshot-id": -1}
    return store, Tables(store, JOB.destination, cast("Any", None))


def records(store: Store) -> list[str]:
    """The files that a reader finds."""
    return sorted(one.rpartition("/")[2].removesuffix(".parquet") for one in store.table.planned())


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "pause", lambda _: None)


@both
@fates
def test_records_are_added_once_on_top_of_what_others_add(
    fate: Any, whole: bool, tmp_path: Path
) -> None:
    store, tables = begun(tmp_path, whole=whole)
    manifest = store.table.manifest(data_file("ours", 2, staging_branch=NEW))
    number = int(manifest.row["added_snapshot_id"])

    def others() -> None:
        theirs = store.table.copy()
        made = theirs.append(data_file("theirs", 1, staging_branch="another"))
        store.change([add_snapshot(made), set_branch("main", made["snapshot-id"])])

    store.fates = [after(others), *([] if fate is None else [fate])]
    commit_records(tables, SIDE, Written(NO_ROWS, (), number, (manifest,)), {"who": "we"})

    assert records(store) == ["kept", "ours", "theirs"]
    snapshots = [one["snapshot-id"] for one in store.table.metadata["snapshots"]]
    assert snapshots.count(number) == 1
    assert store.table.snapshot()["summary"]["total-records"] == "4"


@both
@fates
@pytest.mark.parametrize(
    ("branch", "refs", "left", "remembered"),
    [
        (OLD, {}, ["kept"], False),
        (NEW, {}, ["kept"], True),
        (NEW, {NEW: {"snapshot-id": 1, "type": "branch"}}, ["kept", "waits"], True),
    ],
    ids=["old", "young", "under way"],
)
def test_records_go_with_their_branch_and_are_remembered_for_a_day(
    branch: str,
    refs: Json,
    left: list[str],
    remembered: bool,
    fate: Any,
    whole: bool,
    tmp_path: Path,
) -> None:
    store, tables = begun(tmp_path, whole=whole)
    store.table.append(data_file("waits", 2, staging_branch=branch))
    pending = PendingRejects(branch, ATTEMPT, "shop", "job-0")
    store.change([set_properties({pending.name: pending.to_property()})])
    store.main["refs"] = refs
    store.fates = [] if fate is None else [fate]

    settle_rejects(tables, TABLE.schema, TABLE.table, {})

    assert records(store) == left
    assert (pending.name in store.table.metadata["properties"]) == remembered


@both
def test_records_that_come_in_after_their_load_has_failed_are_removed(
    whole: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, tables = begun(tmp_path, whole=whole)
    manifest = store.table.manifest(data_file("late", 2, staging_branch=NEW))
    written = Written(NO_ROWS, (), int(manifest.row["added_snapshot_id"]), (manifest,))
    pending = PendingRejects(NEW, ATTEMPT, "shop", "job-1")

    def add(*_: object) -> None:
        store.change([set_properties({pending.name: pending.to_property()})])
        store.fates = [store.hold] * changes.COMMIT_TRIES
        commit_records(tables, SIDE, written, {})

    monkeypatch.setattr(write, "add_rejects", add)
    given: Any = SimpleNamespace(
        tables=tables, spec=JOB, table=TABLE, branch=NEW, opened=None, own_key=None
    )
    report = RowsReport(rejected=Rejected(2))
    staged: Any = SimpleNamespace(report=report, balance=None, same_key=None, summary={})
    with pytest.raises(LoadFailed, match="conflicts with other commits"):
        write.StagedIceberg(given, given, given, staged).commit(None)
    assert records(store) == ["kept"]
    store.deliver()

    settle_rejects(tables, TABLE.schema, TABLE.table, {})

    assert records(store) == ["kept"]
