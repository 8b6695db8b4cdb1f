"""Reset of Iceberg tables: a table that holds one pipeline's rows alone goes, with its files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from lakeload.formats.parquet.recover import code_of_errors
from lakeload.formats.tables import UpkeepTable, about, for_each
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import (
    ExitCode,
    FollowUpFailed,
    LakeloadError,
    LoadFailed,
)
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.formats.iceberg.catalogs import CatalogError
from lakeload_jobs.formats.iceberg.catalogs.catalog import (
    IcebergCatalog,
    OpenTable,
    Removal,
    TableFiles,
    facts_of,
    files_of,
    remove_files,
    table_files,
)
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.iceberg.file_ledger import ledger_folder
from lakeload_jobs.formats.iceberg.orphan_branches import left_branches
from lakeload_jobs.formats.iceberg.rules.facts import (
    CREATED_BY,
    SUMMARY_PIPELINE,
    TableFacts,
    pipelines_of,
    state_of,
)
from lakeload_jobs.formats.parquet.log.publish import Notify
from lakeload_jobs.storage.objects import Objects

_WRITES = ("append", "overwrite", "delete")
"""What a snapshot that changes rows is called; `replace` rewrites files and changes none."""


@dataclass(frozen=True)
class TableDrop:
    """One table: what a reset would remove, and what it has removed.

    `rows` and `snapshots` are those the table has now; `dropped`: the catalog does not have it any
    more.
    """

    target: str
    location: str = ""
    snapshots: int = 0
    rows: int = 0
    files: TableFiles | None = None
    ledger: tuple[str, ...] = ()
    """Keys of the lists of loaded files that the pipeline keeps beside the table."""
    dropped: bool = False
    removal: Removal | None = None
    error: LakeloadError | None = None

    @property
    def nothing_to_do(self) -> bool:
        """Whether there is no such table."""
        return self.files is None and self.error is None


@dataclass(frozen=True)
class DropJob:
    """What all tables of one `reset` have in common."""

    catalog: IcebergCatalog
    destination: DestinationSpec
    session: AwsSession
    pipeline: str
    notify: Notify

    def plan(self, tables: Sequence[UpkeepTable]) -> tuple[TableDrop, ...]:
        """Say what `run` would do. Reads only."""
        return tuple(for_each(tables, lambda table: self._guarded(table, self._look)))

    def run(self, tables: Sequence[UpkeepTable]) -> tuple[TableDrop, ...]:
        """Drop each table, several at a time; one that cannot go leaves the others alone."""
        return tuple(for_each(tables, lambda table: self._guarded(table, self._drop)))

    def _guarded(self, table: UpkeepTable, work: Callable[[UpkeepTable], TableDrop]) -> TableDrop:
        try:
            return work(table)
        except LakeloadError as error:
            return TableDrop(table.target, error=error)

    def _look(self, table: UpkeepTable) -> TableDrop:
        opened = self._open(table)
        if opened is None:
            return TableDrop(table.target)
        return self._found(table, opened, files_of(opened, self.destination, self.session))

    def _open(self, table: UpkeepTable) -> OpenTable | None:
        try:
            return self.catalog.load_table(table.location.schema, table.location.table)
        except CatalogError as error:
            if error.missing:
                return None
            raise

    def _found(self, table: UpkeepTable, opened: OpenTable, files: LakeFiles) -> TableDrop:
        facts = facts_of(opened)
        check_droppable(facts, self.pipeline)
        current = facts.snapshots.get(opened.snapshot_id or 0)
        state = state_of(facts, self.pipeline)
        return TableDrop(
            table.target,
            facts.location,
            len(facts.snapshots),
            int(current.summary.get("total-records", "0")) if current else 0,
            table_files(opened, files),
            self._ledger(table) if state and state.ledger else (),
        )

    def _ledger(self, table: UpkeepTable) -> tuple[str, ...]:
        """Return the keys of the pipeline's own folder: nobody else writes there."""
        objects = Objects(self.session, self.destination)
        folder = ledger_folder(table.location, self.pipeline)
        return tuple(entry.key for entry in objects.list(folder))

    def _drop(self, table: UpkeepTable) -> TableDrop:
        opened = self._open(table)
        if opened is None:
            return TableDrop(table.target)
        files = files_of(opened, self.destination, self.session)
        found = self._found(table, opened, files)
        notify = about(table, self.notify)
        again = self._open(table)
        if again is None or again.metadata_location != opened.metadata_location:
            raise LoadFailed(
                "the table was changed while its files were listed: nothing was removed",
                hint="make sure that no load of it runs, and run the same command again",
            )
        # Without purge: catalogs refuse it, or leave the files to somebody else, each its own way.
        self.catalog.drop_table(table.location.schema, table.location.table)
        found = replace(found, dropped=True)
        places = found.files.all if found.files else ()
        notify(f"dropped from the catalog; removing {len(places):,} files")
        removal = remove_files(files, places)
        own = LakeFiles(self.session, self.destination)
        ledger = remove_files(
            own, [f"s3://{self.destination.bucket}/{key}" for key in found.ledger]
        )
        removal = Removal(
            removal.removed + ledger.removed,
            removal.left + ledger.left,
            removal.error or ledger.error,
        )
        if removal.error is None:
            return replace(found, removal=removal)
        error = FollowUpFailed(
            f"the table is dropped; {len(removal.left):,} of its files could not be removed: "
            f"{removal.error.message}",
            hint=f"they lie below `{found.location}`, and nothing names them any more: remove what "
            "is there by hand",
        )
        return replace(found, removal=removal, error=error)


def check_droppable(facts: TableFacts, pipeline: str) -> None:
    """Raise `LoadFailed` unless all rows of the table, and the table itself, are the pipeline's."""
    maker = facts.properties.get(CREATED_BY)
    by_hand = "to remove it all the same, drop it with the catalog's own tools"
    if maker != pipeline:
        whose = f"pipeline `{maker}`" if maker else "nobody's load"
        raise LoadFailed(
            f"the table was made by {whose}, not by pipeline `{pipeline}`: it is not removed",
            hint=by_hand,
        )
    if others := _others(facts, pipeline):
        names = ", ".join(f"`{name}`" for name in others)
        raise LoadFailed(
            f"the table also holds rows of pipeline {names}, and it would go as a whole",
            hint=f"delete this pipeline's rows with SQL, by `_supa_job_id`; or, {by_hand}",
        )
    if strangers := _strangers(facts):
        raise LoadFailed(
            "the table also has rows that no load of lakeload wrote "
            f"({strangers:,} of its snapshots)",
            hint=by_hand,
        )
    if left := left_branches(facts):
        raise LoadFailed(
            "a load of the table may be running: staging branches that are not published yet: "
            f"{len(left):,}",
            hint="when none is, `lakeload recover PIPELINE --abort-older-than 0` drops them",
        )


def exit_code_of(tables: Sequence[TableDrop]) -> ExitCode:
    """Return OK, or what the worst of the tables asks for."""
    return code_of_errors(table.error for table in tables)


def _others(facts: TableFacts, pipeline: str) -> tuple[str, ...]:
    summaries: Iterable[str | None] = (
        snapshot.summary.get(SUMMARY_PIPELINE) for snapshot in facts.snapshots.values()
    )
    known = {*pipelines_of(facts), *(name for name in summaries if name)}
    return tuple(sorted(known - {pipeline}))


def _strangers(facts: TableFacts) -> int:
    return sum(
        SUMMARY_PIPELINE not in snapshot.summary
        and snapshot.summary.get("operation") in _WRITES
        and snapshot.summary.get("added-records", "0") != "0"
        for snapshot in facts.snapshots.values()
    )
