"""Steps of maintenance that are one commit: whatever becomes of it, nothing that is in use goes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import CommitConflict, LoadFailed
from lakeload_jobs.contract.events import Step
from lakeload_jobs.contract.maintain import MaintainSpec, StepResult
from lakeload_jobs.contract.spec import (
    CatalogSpec,
    DestinationSpec,
    FilesInput,
    IcebergSpec,
    TableSpec,
)
from lakeload_jobs.formats.iceberg.catalogs import changes
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable
from lakeload_jobs.formats.iceberg.commits.errors import CommitRejected, CommitUnknown
from lakeload_jobs.formats.iceberg.commits.metadata import (
    remove_ref,
    remove_snapshots,
    set_branch,
    set_properties,
)
from lakeload_jobs.formats.iceberg.load.catalog_tables import CatalogTables
from lakeload_jobs.formats.iceberg.maintenance import STEPS, Work
from lakeload_jobs.formats.iceberg.rules.branches import staging_branch
from tests.unit.formats.iceberg.commits.own_table import Folder, OwnTable, data_file
from tests.unit.formats.iceberg.load.own_store import OwnStore, after, lost, never, sent_twice

NESSIE = CatalogSpec(type="NESSIE", uri="http://nessie", api="NATIVE")
ATTEMPT = "0b6f3c1e-7d7b-4c7e-9d0f-1f2e3d4c5b6a"
DEAD = staging_branch(datetime.now(UTC) - timedelta(days=2), ATTEMPT)

both = pytest.mark.parametrize("whole", [True, False], ids=["metadata", "references"])
"""What the catalog compares."""


@dataclass
class Bucket(Folder):
    """Files of this machine, of which nobody may delete those that `denied` names."""

    denied: str = "nothing"
    written: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def read(self, location: str) -> bytes:
        """Read a file."""
        self.asked.append(location)
        return super().read(location)

    def delete(self, location: str) -> None:
        """Delete a file."""
        if self.denied in location:
            raise AwsError(f"deleting `{location}`", code="AccessDenied", status=403)
        self.deleted.append(location)
        Path(location).unlink(missing_ok=True)

    def place(self, location: str) -> str:
        """All can be deleted together."""
        return ""

    def delete_together(self, locations: Sequence[str]) -> Collection[str]:
        """Delete files; return those that stay."""
        stay = {one for one in locations if self.denied in one}
        for one in locations:
            if one not in stay:
                self.delete(one)
        return stay


@dataclass(frozen=True)
class Tables(CatalogTables):
    """Tables whose metadata files are of this machine."""

    def files(self, table: ReadTable) -> LakeFiles:
        """Return where the metadata is."""
        return cast("LakeFiles", cast("OwnStore", self.store).table.files)


@dataclass
class Upkeep:
    """A table of three snapshots, whose middle one has replaced the file of the first."""

    store: OwnStore
    bucket: Bucket
    tables: Tables

    @classmethod
    def of(cls, folder: Path, *, whole: bool, catalog: CatalogSpec | None = None) -> Upkeep:
        bucket, nothing = Bucket(), cast("Any", None)
        table = replace(OwnTable.new(folder), files=bucket)
        table.append(data_file("first", 1))
        table.commit(table.addition([table.manifest(data_file("second", 2))], replaces=True))
        table.append(data_file("third", 3))
        store = OwnStore(table, whole)
        iceberg = IcebergSpec() if catalog is None else IcebergSpec(catalog=catalog)
        destination = DestinationSpec("lake", "eu", table_format="ICEBERG", iceberg=iceberg)
        return cls(store, bucket, Tables(store, destination, nothing))

    def take(self, step: Any, *, apply: bool = True, **options: Any) -> StepResult:
        """Take one step."""
        wanted = MaintainSpec((step,), apply=apply, **options)
        of = TableSpec("orders", "db", "orders", FilesInput("CSV", ("/a.csv",), {}), "f00")
        return STEPS[step](Work(self.tables, of, wanted, {}))

    def expire(self, *, apply: bool = True) -> StepResult:
        """Expire all that is old."""
        return self.take("expire", apply=apply, older_than=0)

    @property
    def snapshots(self) -> int:
        """How many snapshots the table has."""
        return len(self.store.table.metadata["snapshots"])

    def rolled_back(self) -> None:
        """An operator takes main back to the first snapshot."""
        first = self.store.table.metadata["snapshots"][0]["snapshot-id"]
        self.store.change([set_branch("main", first)])


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "pause", lambda _: None)


@both
@pytest.mark.parametrize("fate", [None, lost, sent_twice, never])
def test_expiry_removes_once_what_its_dry_run_says(fate: Any, whole: bool, tmp_path: Path) -> None:
    upkeep = Upkeep.of(tmp_path, whole=whole)
    said = upkeep.expire(apply=False)
    assert (said.status, said.snapshots, upkeep.snapshots) == ("WOULD_DO", 2, 3)
    assert upkeep.bucket.deleted == []
    upkeep.store.fates = [] if fate is None else [fate]

    did = upkeep.expire()

    assert did == replace(said, status="DONE")
    assert upkeep.snapshots == 1
    gone = [one.rpartition("/")[2] for one in upkeep.bucket.deleted[1:]]
    # The first was asked for whether it may be deleted. Two lists, and two manifests: that of the
    # first file, and the one that says of it that it is deleted.
    assert (len(gone), did.files, gone[0]) == (5, 5, "first.parquet")
    assert upkeep.store.table.planned() == {"s3://lake/second.parquet", "s3://lake/third.parquet"}
    assert upkeep.expire().status == "NOTHING_TO_DO"


@both
def test_expiry_that_a_rollback_overtakes_keeps_what_main_has_then(
    whole: bool, tmp_path: Path
) -> None:
    upkeep = Upkeep.of(tmp_path, whole=whole)
    upkeep.store.fates = [after(upkeep.rolled_back)]

    did = upkeep.expire()

    assert did.status == "DONE"
    assert upkeep.store.table.planned() == {"s3://lake/first.parquet"}
    assert upkeep.store.table.rows()
    assert "s3://lake/first.parquet" not in upkeep.bucket.deleted


@both
def test_expiry_that_always_conflicts_is_a_conflict_and_deletes_nothing(
    whole: bool, tmp_path: Path
) -> None:
    upkeep = Upkeep.of(tmp_path, whole=whole)

    def disturb() -> None:
        name = f"b{len(upkeep.store.sent)}"
        head = upkeep.store.table.metadata["current-snapshot-id"]
        # What REST catalogs compare: a branch that was there has moved.
        upkeep.store.change([set_branch(name, head), set_branch("moving", head)])
        first = upkeep.store.table.metadata["snapshots"][len(upkeep.store.sent) % 2]
        upkeep.store.change([set_branch("moving", first["snapshot-id"])])

    disturb()
    upkeep.store.fates = [after(disturb)] * changes.COMMIT_TRIES
    with pytest.raises(CommitConflict) as caught:
        upkeep.expire()
    assert caught.value.retryable
    assert "expiring snapshots of `db.orders`: conflicts" in caught.value.message
    assert caught.value.hint == "run it again when fewer loads run"
    assert (upkeep.snapshots, len(upkeep.bucket.deleted)) == (3, 1)


@pytest.mark.parametrize("step", ["expire", "branches"])
@pytest.mark.parametrize("end", [CommitUnknown("no answer"), CommitRejected("busy", busy=True)])
def test_step_without_a_conflict_ends_with_what_the_catalog_said(
    step: Step, end: Exception, tmp_path: Path
) -> None:
    upkeep = Upkeep.of(tmp_path, whole=True)
    upkeep.store.change([set_branch(DEAD, upkeep.store.table.metadata["current-snapshot-id"])])

    def fate(_: object) -> ReadTable:
        raise end from CatalogError("the catalog is busy", code="TooManyRequests", status=429)

    upkeep.store.fates = [fate] * changes.COMMIT_TRIES
    with pytest.raises(CatalogError, match="the catalog is busy"):
        upkeep.take(step, older_than=0)
    assert upkeep.store.fates == []


@both
def test_expiry_that_another_has_done_meanwhile_does_nothing(whole: bool, tmp_path: Path) -> None:
    upkeep = Upkeep.of(tmp_path, whole=whole)
    old = [one["snapshot-id"] for one in upkeep.store.table.metadata["snapshots"][:2]]

    def other(_: object) -> ReadTable:
        upkeep.store.change([remove_snapshots(old)])
        raise CommitRejected("another commit came first")

    upkeep.store.fates = [other]
    did = upkeep.expire()
    assert (did.status, did.snapshots) == ("NOTHING_TO_DO", 0)


def test_role_that_may_not_delete_expires_nothing(tmp_path: Path) -> None:
    upkeep = Upkeep.of(tmp_path, whole=True)
    upkeep.bucket.denied = "-m0.avro"
    with pytest.raises(LoadFailed, match="access denied") as caught:
        upkeep.expire()
    assert "--with maintain" in (caught.value.hint or "")
    assert (upkeep.snapshots, upkeep.store.sent) == (3, [])


def test_files_that_cannot_be_deleted_fail_the_step_after_its_commit(tmp_path: Path) -> None:
    upkeep = Upkeep.of(tmp_path, whole=True)
    upkeep.bucket.denied = "first.parquet"
    with pytest.raises(LoadFailed, match="1 of 5 files") as caught:
        upkeep.expire()
    assert "`orphans`" in (caught.value.hint or "")
    assert (upkeep.snapshots, len(upkeep.bucket.deleted)) == (1, 5)


@pytest.mark.parametrize(
    ("properties", "catalog", "status"),
    [
        ({}, NESSIE, "UNSUPPORTED"),
        ({"gc.enabled": "true"}, NESSIE, "DONE"),
        ({"gc.enabled": "false"}, None, "UNSUPPORTED"),
    ],
)
def test_files_that_others_may_have_are_never_removed(
    properties: dict[str, str], catalog: CatalogSpec | None, status: str, tmp_path: Path
) -> None:
    upkeep = Upkeep.of(tmp_path, whole=True, catalog=catalog)
    upkeep.store.change([set_properties(properties)])
    assert upkeep.expire().status == status
    assert (upkeep.snapshots == 3) == (status == "UNSUPPORTED")


@both
@pytest.mark.parametrize("fate", [None, lost, sent_twice, never])
def test_branches_of_dead_attempts_are_dropped_once(fate: Any, whole: bool, tmp_path: Path) -> None:
    upkeep = Upkeep.of(tmp_path, whole=whole)
    head = upkeep.store.table.metadata["current-snapshot-id"]
    young = staging_branch(datetime.now(UTC), ATTEMPT)
    upkeep.store.change([set_branch(name, head) for name in (DEAD, young, "audit")])
    upkeep.store.fates = [] if fate is None else [fate]

    did = upkeep.take("branches")

    assert (did.status, did.items) == ("DONE", (DEAD,))
    assert upkeep.store.table.metadata["refs"].keys() == {"main", young, "audit"}


@both
def test_branch_that_is_published_meanwhile_is_not_told_of(whole: bool, tmp_path: Path) -> None:
    upkeep = Upkeep.of(tmp_path, whole=whole)
    head = upkeep.store.table.metadata["current-snapshot-id"]
    upkeep.store.change([set_branch(DEAD, head)])
    published: Callable[[], None] = lambda: upkeep.store.change([remove_ref(DEAD)])  # noqa: E731
    upkeep.store.fates = [after(published)]
    # Glue's client may have dropped it with a request that it has sent before.
    assert upkeep.take("branches").status == ("DONE" if whole else "NOTHING_TO_DO")
    assert upkeep.store.table.metadata["refs"].keys() == {"main"}


@both
def test_expiry_that_arrives_after_it_was_asked_for_removes_its_files(
    whole: bool, tmp_path: Path
) -> None:
    upkeep = Upkeep.of(tmp_path, whole=whole)
    said = upkeep.expire(apply=False)
    upkeep.store.fates = [upkeep.store.hold]
    # The table is read to know what is old, for the permission, before the commit and after it.
    upkeep.store.reads = [*[lambda: None] * 4, upkeep.store.deliver]

    did = upkeep.expire()

    assert did == replace(said, status="DONE")
    assert (upkeep.snapshots, len(upkeep.store.sent)) == (1, 1)
    assert len(upkeep.bucket.deleted) == 1 + 5


@both
def test_files_of_every_try_go_where_another_snapshot_is_old_by_then(
    whole: bool, tmp_path: Path
) -> None:
    upkeep = Upkeep.of(tmp_path, whole=whole)

    def late() -> None:
        upkeep.store.deliver()
        upkeep.store.table.append(data_file("fourth", 4))
        upkeep.store.version += 1

    upkeep.store.fates = [upkeep.store.hold]
    upkeep.store.reads = [*[lambda: None] * 4, late]

    did = upkeep.expire()

    assert (did.status, did.snapshots, upkeep.snapshots) == ("DONE", 3, 1)
    lists = [one for one in upkeep.bucket.deleted if "/snap-" in one]
    assert len(lists) == 3
    assert "s3://lake/first.parquet" in upkeep.bucket.deleted
    assert upkeep.store.table.planned() == {
        f"s3://lake/{name}.parquet" for name in ("second", "third", "fourth")
    }


def test_list_that_cannot_be_read_expires_nothing(tmp_path: Path) -> None:
    upkeep = Upkeep.of(tmp_path, whole=True)
    first = upkeep.store.table.metadata["snapshots"][0]
    Path(first["manifest-list"]).write_bytes(b"damaged")
    with pytest.raises(LoadFailed, match=r"snap-.*the Avro file is damaged"):
        upkeep.expire()
    assert (upkeep.snapshots, upkeep.store.sent) == (3, [])


def test_each_list_is_read_once_whatever_number_of_tries_it_takes(tmp_path: Path) -> None:
    upkeep = Upkeep.of(tmp_path, whole=True)
    upkeep.store.fates = [never, never]
    lists = [one["manifest-list"] for one in upkeep.store.table.metadata["snapshots"]]
    upkeep.bucket.asked.clear()
    assert upkeep.expire().status == "DONE"
    assert sorted(one for one in upkeep.bucket.asked if "/snap-" in one) == sorted(lists)


@pytest.mark.parametrize("name", ["max-snapshot-age-ms", "min-snapshots-to-keep", "max-ref-age-ms"])
def test_retention_that_is_no_number_is_named(name: str, tmp_path: Path) -> None:
    upkeep = Upkeep.of(tmp_path, whole=True)
    upkeep.store.change([set_properties({f"history.expire.{name}": "5 days"})])
    with pytest.raises(LoadFailed, match=f"the value `5 days` in its property .*{name}"):
        upkeep.take("expire")
    assert upkeep.snapshots == 3
