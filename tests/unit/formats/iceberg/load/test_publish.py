"""The publish and the drop of its branch: whatever becomes of a commit, a job is in once, and what
is told of it is so."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from lakeload_jobs.contract.errors import LoadFailed, NewerFormat
from lakeload_jobs.formats.iceberg.catalogs import changes
from lakeload_jobs.formats.iceberg.catalogs.errors import NOT_A_CATALOG, CatalogError
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.iceberg.catalogs.reading import facts_of
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable
from lakeload_jobs.formats.iceberg.commits.manifests import read_manifest
from lakeload_jobs.formats.iceberg.commits.metadata import (
    add_schema,
    remove_ref,
    schema_of,
    set_branch,
    set_properties,
)
from lakeload_jobs.formats.iceberg.load import publish
from lakeload_jobs.formats.iceberg.load.branches import create_branch, drop_branch
from lakeload_jobs.formats.iceberg.load.catalog_tables import CatalogTables
from lakeload_jobs.formats.iceberg.load.publish import (
    Committed,
    NewFiles,
    Publish,
    Published,
    Staged,
)
from lakeload_jobs.formats.iceberg.rules.admission import open_table
from lakeload_jobs.formats.iceberg.rules.facts import (
    PipelineState,
    TableAttempt,
    job_key,
    remembered_jobs,
)
from lakeload_jobs.rows.balance import Balance
from tests.unit.formats.iceberg.commits.own_table import OwnTable, data_file
from tests.unit.formats.iceberg.load.own_store import (
    Fate,
    OwnStore,
    after,
    lost,
    never,
    sent_twice,
)

BRANCH = "lakeload_20261121t101530z_" + "a" * 32
JOB = TableAttempt("shop", "j1", "a1", "f" * 64, "orders.csv", "db.orders", "APPEND")
SUMMARY = {"lakeload.pipeline": "shop", "lakeload.job-id": "j1"}

both = pytest.mark.parametrize("whole", [True, False], ids=["metadata", "references"])
"""What the catalog compares."""


@dataclass(frozen=True)
class Tables(CatalogTables):
    """Tables whose metadata files are of this machine."""

    def files(self, table: ReadTable) -> LakeFiles:
        """Return where the metadata is."""
        return cast("LakeFiles", cast("OwnStore", self.store).table.files)


@dataclass
class Load:
    """A load that has made its branch and written its files."""

    store: OwnStore
    given: Publish

    @classmethod
    def begun(
        cls, folder: Path, *, whole: bool, replaces: bool = False, more: bool = False
    ) -> Load:
        """Begin one on a table of one file, or one `more`."""
        table = OwnTable.new(folder, properties={"lakeload.created-by": "shop"})
        table.append(data_file("before", 5))
        if more:
            table.append(data_file("more", 1))
        store = OwnStore(table, whole)
        nothing: Any = None
        tables = Tables(store, nothing, nothing)
        start = open_table(facts_of(store.load("db", "orders")), "main", JOB)
        branch = create_branch(tables, "db", "orders", BRANCH, "main")
        manifest = table.manifest(data_file("ours", 3))
        number = int(manifest.row["added_snapshot_id"])
        staged = Staged(
            branch=BRANCH,
            base=branch.base,
            at=branch.at,
            rows=NewFiles(number, (manifest,), replaces),
            mode="replace" if replaces else "append",
            schema=schema_of(table.metadata),
            summary=SUMMARY,
            has_rows=True,
            balance=Balance(3, 3),
        )
        given = Publish(tables, "db", "orders", "main", JOB, start, staged, _state, True)
        store.sent.clear()
        return cls(store, given)

    def publish(self) -> Published:
        """Publish it."""
        return publish.publish(self.given)

    @property
    def number(self) -> int:
        """The snapshot that it publishes."""
        return cast("NewFiles", self.given.staged.rows).snapshot_id

    @property
    def files(self) -> set[str]:
        """The files that a reader of main finds."""
        found = self.store.table.planned()
        return {one.rpartition("/")[2].removesuffix(".parquet") for one in found}

    @property
    def branches(self) -> set[str]:
        """The branches of the table."""
        return set(self.store.table.metadata["refs"])

    @property
    def listed(self) -> int | None:
        """The snapshot that the table remembers of the job."""
        facts = facts_of(self.store.load("db", "orders"))
        return remembered_jobs(facts).get(job_key("shop", "j1"))

    def others_append(self) -> None:
        """Another engine appends a file."""
        table = self.store.table
        before = table.copy()
        before.append(data_file("theirs", 1))
        new = {s["snapshot-id"]: s for s in before.metadata["snapshots"]}
        ours = {s["snapshot-id"] for s in table.metadata["snapshots"]}
        (number,) = new.keys() - ours
        changes = [{"action": "add-snapshot", "snapshot": new[number]}, set_branch("main", number)]
        self.store.change(changes)

    def drop(self) -> None:
        """Somebody drops the branch."""
        self.store.change([remove_ref(BRANCH)])

    def published_once(self) -> None:
        """Check that it is in, once, beside what was there."""
        snapshots = self.store.table.metadata["snapshots"]
        assert [s["snapshot-id"] for s in snapshots].count(self.number) == 1
        ours = [s for s in snapshots if s["summary"].get("lakeload.job-id") == "j1"]
        assert [s["snapshot-id"] for s in ours] == [self.number]
        assert self.listed == self.number
        assert self.branches == {"main"}

    def left_alone(self) -> None:
        """Check that nothing of it is in."""
        assert "ours" not in self.files
        assert self.listed is None


def _state(snapshot: int) -> PipelineState:
    return PipelineState("orders.csv", "j1", snapshot, "f" * 64, {})


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else commits meanwhile."""
    for module in (publish, changes):
        monkeypatch.setattr(module, "pause", lambda tries: None)


@both
@pytest.mark.parametrize("replaces", [False, True])
def test_rows_job_and_state_come_in_with_one_commit(
    tmp_path: Path, *, whole: bool, replaces: bool
) -> None:
    load = Load.begun(tmp_path, whole=whole, replaces=replaces)

    done = load.publish()

    assert (done.outcome, done.snapshot) == ("IN", load.number)
    load.published_once()
    assert load.files == ({"ours"} if replaces else {"before", "ours"})
    assert len(load.store.sent) == 1


@both
@pytest.mark.parametrize("fate", [lost, sent_twice])
def test_commit_that_is_in_without_an_answer_is_not_sent_again(
    tmp_path: Path, fate: Fate, *, whole: bool
) -> None:
    load = Load.begun(tmp_path, whole=whole)
    load.store.fates = [fate]

    done = load.publish()

    assert (done.outcome, done.snapshot) == ("IN", load.number)
    assert len(load.store.sent) == 1
    load.published_once()


@both
def test_commit_that_is_in_is_found_when_another_writer_has_come_since(
    tmp_path: Path, *, whole: bool
) -> None:
    load = Load.begun(tmp_path, whole=whole)

    def fate(act: Any) -> ReadTable:
        act()
        load.others_append()
        return never(act)

    load.store.fates = [fate]

    assert load.publish().outcome == "IN"
    load.published_once()
    assert load.files == {"before", "ours", "theirs"}


@both
def test_commit_that_was_lost_is_sent_again_and_the_late_one_is_refused(
    tmp_path: Path, *, whole: bool
) -> None:
    load = Load.begun(tmp_path, whole=whole)
    load.store.fates = [never, load.store.hold]

    assert load.publish().outcome == "IN"
    load.store.deliver()

    assert len(load.store.sent) == 3
    load.published_once()
    assert load.files == {"before", "ours"}


@both
def test_append_goes_on_top_of_what_came_first(tmp_path: Path, *, whole: bool) -> None:
    load = Load.begun(tmp_path, whole=whole)
    load.store.fates = [after(load.others_append)]
    manifests = len(load.store.table.files.written)

    assert load.publish().outcome == "IN"

    load.published_once()
    assert load.files == {"before", "ours", "theirs"}
    written = load.store.table.files.written[manifests:]
    # A list for each try and one of the other writer, with a manifest: none of ours again.
    assert len([one for one in written if "/snap-" not in one]) == 1


@both
def test_replacement_of_rows_that_others_have_changed_is_not_published(
    tmp_path: Path, *, whole: bool
) -> None:
    load = Load.begun(tmp_path, whole=whole, replaces=True)
    load.store.fates = [after(load.others_append)]

    done = load.publish()

    assert done.outcome == "AGAIN"
    assert load.files == {"before", "theirs"}
    load.left_alone()
    assert load.branches == {"main"}


@both
def test_rows_do_not_come_in_on_top_of_what_was_rolled_back(tmp_path: Path, *, whole: bool) -> None:
    load = Load.begun(tmp_path, whole=whole, more=True)
    head = load.store.table.snapshot()
    back = [set_branch("main", head["parent-snapshot-id"])]
    load.store.fates = [after(lambda: load.store.change(back))]

    assert load.publish().outcome == "AGAIN"
    assert load.files == {"before"}
    load.left_alone()


@both
@pytest.mark.parametrize("by_spark", [False, True])
def test_rows_of_a_branch_that_is_not_there_yet_come_beside_those_of_main(
    tmp_path: Path, *, by_spark: bool, whole: bool
) -> None:
    load = Load.begun(tmp_path, whole=whole)
    tables, name = load.given.tables, BRANCH.replace("a" * 32, "b" * 32)
    branch = create_branch(tables, "db", "orders", name, "audit")
    start = open_table(facts_of(load.store.load("db", "orders")), "audit", JOB)
    staged = replace(load.given.staged, branch=name, base=branch.base, at=branch.at)
    if by_spark:
        # In a copy of the metadata, because columns change.
        copied = load.store.table.copy()
        snapshot = copied.append(data_file("ours", 3), branch=name)
        staged = replace(staged, rows=Committed(snapshot, private=True))

    given = replace(load.given, branch="audit", start=start, staged=staged)
    assert publish.publish(given).outcome == "IN"

    table = load.store.table
    found = [one for row in table.rows("audit") for one in read_manifest(table.files, row).entries]
    places = {one["data_file"]["file_path"].rpartition("/")[2] for one in found}
    assert places == {"before.parquet", "ours.parquet"}
    assert load.files == {"before"}


@both
def test_rows_are_not_published_into_columns_that_require_a_value_by_now(
    tmp_path: Path, *, whole: bool
) -> None:
    """Such as where another load has given the table a key meanwhile."""
    load = Load.begun(tmp_path, whole=whole)
    schema = schema_of(load.store.table.metadata)
    fields = [{**one, "required": True} for one in schema["fields"]]
    load.store.change(add_schema({**schema, "schema-id": 1, "fields": fields}))

    published = load.publish()

    assert published.outcome == "AGAIN"
    assert "requires a value" in published.reason
    load.left_alone()


@both
def test_rows_of_a_branch_that_is_dropped_meanwhile_are_not_published(
    tmp_path: Path, *, whole: bool
) -> None:
    """Whoever has dropped it may have deleted its files."""
    load = Load.begun(tmp_path, whole=whole)
    load.store.fates = [after(load.drop)]

    assert load.publish().outcome == "AGAIN"
    load.left_alone()


@both
def test_nothing_is_committed_once_the_branch_of_a_silent_catalog_is_dropped(
    tmp_path: Path, *, whole: bool
) -> None:
    load = Load.begun(tmp_path, whole=whole)
    load.store.fates = [load.store.hold] * 9

    with pytest.raises(LoadFailed, match="did not confirm the commit to") as raised:
        load.publish()
    load.store.deliver()

    assert raised.value.hint == "run again: nothing was committed"
    load.left_alone()
    assert load.branches == {"main"}


@both
def test_commit_that_comes_in_before_the_last_look_is_found(tmp_path: Path, *, whole: bool) -> None:
    load = Load.begun(tmp_path, whole=whole)
    # The look of the drop is the one after those of nine tries.
    load.store.reads = [*[lambda: None] * 9, load.store.deliver]
    load.store.fates = [load.store.hold] * 9

    assert load.publish().outcome == "IN"
    load.published_once()


@both
def test_commit_that_is_in_although_its_answer_is_an_error_is_found(
    tmp_path: Path, *, whole: bool
) -> None:
    """A proxy may put a page of its own in the place of the catalog's answer."""
    load = Load.begun(tmp_path, whole=whole)

    def fate(act: Any) -> ReadTable:
        act()
        raise CatalogError("the response is not that of a catalog", code=NOT_A_CATALOG, status=200)

    load.store.fates = [fate]

    assert load.publish().outcome == "IN"
    load.published_once()


@both
def test_refused_commit_is_explained_also_where_the_drop_is_refused(
    tmp_path: Path, *, whole: bool
) -> None:
    load = Load.begun(tmp_path, whole=whole)

    def refuse(_: Any) -> ReadTable:
        raise CatalogError("committing", code="ForbiddenException", status=403, said="no right")

    load.store.fates = [refuse, refuse]

    with pytest.raises(LoadFailed, match="the catalog rejects it: no right"):
        load.publish()
    load.left_alone()


@both
@pytest.mark.parametrize("fate", [lost, never])
def test_publish_of_a_newer_lakeload_leaves_no_branch_and_hides_no_commit(
    tmp_path: Path, fate: Fate, *, whole: bool
) -> None:
    load = Load.begun(tmp_path, whole=whole)
    load.store.fates = [fate]
    newer = set_properties({"lakeload.format": "2"})
    load.store.reads = [lambda: None, lambda: load.store.change([newer])]

    if fate is lost:
        assert load.publish().outcome == "IN"
    else:
        with pytest.raises(NewerFormat):
            load.publish()
        assert "ours" not in load.files
    assert load.branches == {"main"}


@both
def test_drop_does_not_succeed_after_the_publish_of_the_branch(
    tmp_path: Path, *, whole: bool
) -> None:
    """Else "nothing was committed" would be told of a job that is in."""
    load = Load.begun(tmp_path, whole=whole)
    load.store.fates = [lambda act: (load.publish(), act())[1]]

    assert drop_branch(load.given.tables, "db", "orders", BRANCH) is False
    load.published_once()


@both
def test_unknown_outcome_is_told_when_another_has_dropped_the_branch(
    tmp_path: Path, *, whole: bool
) -> None:
    load = Load.begun(tmp_path, whole=whole)

    def fate(act: Any) -> ReadTable:
        load.store.held.append(act)
        load.drop()
        return never(act)

    load.store.fates = [fate]

    with pytest.raises(LoadFailed, match="commit state unknown"):
        load.publish()


@both
def test_unknown_outcome_is_told_when_the_branch_cannot_be_dropped(
    tmp_path: Path, *, whole: bool
) -> None:
    load = Load.begun(tmp_path, whole=whole)

    def refuse() -> None:
        raise CatalogError("no", code="ForbiddenException", status=403)

    newer = set_properties({"lakeload.format": "2"})
    load.store.fates = [load.store.hold]
    load.store.reads = [lambda: None, lambda: load.store.change([newer]), refuse]

    with pytest.raises(LoadFailed, match="commit state unknown"):
        load.publish()
    assert BRANCH in load.branches


@both
def test_job_that_another_attempt_has_loaded_is_loaded_also_where_the_branch_stays(
    tmp_path: Path, *, whole: bool
) -> None:
    load = Load.begun(tmp_path, whole=whole)
    load.others_append()
    theirs = load.store.table.metadata["refs"]["main"]["snapshot-id"]
    jobs = {"lakeload.jobs": f"{job_key('shop', 'j1')}:{theirs}", "lakeload.seq": "1"}
    load.store.change([set_properties(jobs)])

    def refuse() -> None:
        raise CatalogError("no", code="ServiceUnavailable", status=503)

    load.store.reads = [lambda: None, refuse]

    published = load.publish()

    assert (published.outcome, published.snapshot) == ("NO_OP", theirs)
    assert "ours" not in load.files
    assert BRANCH in load.branches


@both
def test_branch_whose_creation_had_no_answer_is_made_once(tmp_path: Path, *, whole: bool) -> None:
    load = Load.begun(tmp_path, whole=whole)
    name = BRANCH.replace("a" * 32, "b" * 32)
    load.store.fates = [lost]

    made = create_branch(load.given.tables, "db", "orders", name, "main")

    assert (made.base, made.at) == (load.given.staged.base, load.given.staged.at)
    assert len(load.store.sent) == 1
    assert name in load.branches
