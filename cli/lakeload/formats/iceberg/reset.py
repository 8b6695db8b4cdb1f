"""Reset of Iceberg tables: a table that holds one pipeline's rows alone goes, with its files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lakeload.config.document import quoted
from lakeload.formats.iceberg.tables import IcebergTables, open_tables
from lakeload.formats.reports import ResetReport, ResetTable
from lakeload.formats.tables import TableRef, TablesRequest, about, each_table
from lakeload_jobs.contract.errors import FollowUpFailed, InvalidInput, LakeloadError, LoadFailed
from lakeload_jobs.contract.traits import catalog_traits
from lakeload_jobs.core.names import REJECTED_SUFFIX
from lakeload_jobs.core.sizes import counted, format_size
from lakeload_jobs.formats.iceberg.catalogs.changes import catalog_errors, drop_table
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.iceberg.catalogs.reading import facts_of, read_table
from lakeload_jobs.formats.iceberg.catalogs.table_files import (
    Removal,
    TableFiles,
    remove_files,
    table_files,
)
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable
from lakeload_jobs.formats.iceberg.catalogs.vended_files import files_for
from lakeload_jobs.formats.iceberg.commits.metadata import MAIN
from lakeload_jobs.formats.iceberg.file_ledger import ledger_folder
from lakeload_jobs.formats.iceberg.rules.branches import staging_branches
from lakeload_jobs.formats.iceberg.rules.facts import (
    CREATED_BY,
    SUMMARY_PIPELINE,
    TableFacts,
    keeps_files,
    pipelines_of,
    state_of,
)
from lakeload_jobs.formats.iceberg.rules.rejects import REJECTED_OF
from lakeload_jobs.storage.objects import Objects

SHOWN = 10
"""Files that stay which are named on the screen; JSON has all."""
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
    """Those that go with it."""
    ledger: tuple[str, ...] = ()
    """Keys of the lists of loaded files that the pipeline keeps beside the table."""
    stay: str | None = None
    """The reason that the files of the table and its lists of loaded files are kept."""
    dropped: bool = False
    removal: Removal | None = None
    error: LakeloadError | None = None


def reset(request: TablesRequest, *, with_log: bool, act: bool) -> ResetReport:
    """Say what of the tables goes, and with `act` remove it. Raises `InvalidInput` for a log."""
    if with_log:
        raise InvalidInput(
            "`--with-log`: the load history of an Iceberg table is stored in the table and "
            "is removed with it",
            hint="leave it out",
        )
    lake = open_tables(request)
    return report(drop_tables(lake, [*_with_side_tables(lake)], act=act), done=act)


def _with_side_tables(lake: IcebergTables) -> Iterator[TableRef]:
    """Yield the tables, each before the side table of its rejected records, if it has one."""
    for table in lake.tables:
        yield table
        for location in table.location.with_side_table[1:]:
            side = TableRef(table.target + REJECTED_SUFFIX, location)
            try:
                opened = _open(lake, side)
            except LakeloadError:
                # What is wrong with the catalog, the table's own reset says.
                continue
            if opened and facts_of(opened).properties.get(REJECTED_OF) == table.target:
                yield side


def report(found: Sequence[TableDrop], *, done: bool) -> ResetReport:
    """Return what of the tables goes, or went."""
    return ResetReport(tuple(map(_table, found)), done)


def drop_tables(
    lake: IcebergTables, tables: Sequence[TableRef], *, act: bool
) -> tuple[TableDrop, ...]:
    """Drop each table or say what would go; one that cannot go leaves the others alone."""
    return each_table(
        tables,
        lambda table: _drop(lake, table, act=act),
        lambda table, error: TableDrop(table.target, error=error),
    )


def _open(lake: IcebergTables, table: TableRef) -> ReadTable | None:
    return read_table(lake.store, table.location.schema, table.location.table)


def _found(lake: IcebergTables, table: TableRef, opened: ReadTable, files: LakeFiles) -> TableDrop:
    facts = facts_of(opened)
    check_droppable(facts, lake.pipeline)
    current = facts.snapshots.get(facts.refs.get(MAIN, 0))
    state = state_of(facts, lake.pipeline)
    catalog = catalog_traits(lake.destination.iceberg.catalog)
    stay = keeps_files(facts.properties, shared=catalog.keeps_history)
    ledger: tuple[str, ...] = ()
    if state and state.ledger and not stay:
        # The pipeline's own folder: nobody else writes there.
        folder = ledger_folder(table.location, lake.pipeline)
        listed = Objects(lake.session, lake.destination).list(folder)
        ledger = tuple(entry.key for entry in listed)
    return TableDrop(
        table.target,
        facts.location,
        len(facts.snapshots),
        int(current.summary.get("total-records", "0")) if current else 0,
        TableFiles({}, (), ()) if stay else table_files(opened, files),
        ledger,
        stay,
    )


def _drop(lake: IcebergTables, table: TableRef, *, act: bool) -> TableDrop:
    opened = _open(lake, table)
    if opened is None:
        return TableDrop(table.target)
    files = files_for(opened, lake.destination, lake.session, lake.store)
    found = _found(lake, table, opened, files)
    if not act:
        return found
    again = _open(lake, table)
    if again is None or again.metadata_location != opened.metadata_location:
        raise LoadFailed(
            "the table was changed while its files were listed: nothing was removed",
            hint="make sure that no load of it runs, and run the same command again",
        )
    # Without purge: catalogs refuse it, or leave the files to somebody else, each its own way.
    with catalog_errors(f"dropping the table `{table.target}`"):
        drop_table(lake.store, again)
    places = found.files.all if found.files else ()
    then = "its files stay" if found.stay else f"removing {len(places):,} files"
    about(table, lake.notify)(f"dropped from the catalog; {then}")
    removal = remove_files(files, places)
    own = LakeFiles(lake.session, lake.destination)
    bucket = lake.destination.bucket
    ledger = remove_files(own, [f"s3://{bucket}/{key}" for key in found.ledger])
    removal = Removal(
        removal.removed + ledger.removed,
        removal.left + ledger.left,
        removal.error or ledger.error,
    )
    found = replace(found, dropped=True, removal=removal)
    if removal.error is None:
        return found
    error = FollowUpFailed(
        f"the table is dropped; {len(removal.left):,} of its files could not be removed: "
        f"{removal.error.message}",
        hint=f"remove the files below `{found.location}` by hand: no metadata refers to them",
    )
    return replace(found, error=error)


def check_droppable(facts: TableFacts, pipeline: str) -> None:
    """Raise `LoadFailed` unless all rows of the table, and the table itself, are the pipeline's."""
    maker = facts.properties.get(CREATED_BY)
    by_hand = "to remove it all the same, drop it with the catalog's own tools"
    if maker != pipeline:
        whose = f"pipeline `{maker}`" if maker else "no load"
        raise LoadFailed(
            f"the table was made by {whose}, not by pipeline `{pipeline}`: it is not removed",
            hint=by_hand,
        )
    if others := _others(facts, pipeline):
        raise LoadFailed(
            f"the table also holds rows of pipeline {quoted(others)}, and it would go as a whole",
            hint=f"delete this pipeline's rows with SQL, by `_supa_job_id`; or, {by_hand}",
        )
    if strangers := _strangers(facts):
        raise LoadFailed(
            "the table also has rows that no load of lakeload wrote "
            f"({strangers:,} of its snapshots)",
            hint=by_hand,
        )
    if left := staging_branches(facts.refs):
        raise LoadFailed(
            "a load of the table may be running: staging branches that are not published yet: "
            f"{len(left):,}",
            hint="when none is, `lakeload recover PIPELINE --abort-older-than 0` drops them",
        )


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


def _table(found: TableDrop) -> ResetTable:
    files, removal = found.files, found.removal
    document = {
        "location": found.location or None,
        "snapshots": found.snapshots,
        "rows": found.rows,
        "plan": None
        if files is None
        else {
            "data_files": list(files.data),
            "bytes": files.bytes,
            "metadata_files": files.metadata,
            "left": files.elsewhere,
            "files_stay": found.stay,
            "ledger": found.ledger,
        },
        "dropped": found.dropped,
        "removed": None if removal is None else {"files": removal.removed, "left": removal.left},
    }
    lines: tuple[str, ...] = ("there is no such table",) if found.error is None else ()
    if files is not None:
        lines = tuple(_lines(found, files))
    return ResetTable(found.target, lines, document, pending=files is not None, error=found.error)


def _lines(found: TableDrop, files: TableFiles) -> Iterator[str]:
    holds = f"{counted(found.rows, 'row')} in {counted(found.snapshots, 'snapshot')}"
    if found.removal is None:
        amount = f"{counted(len(files.data), 'file')} of rows, {format_size(files.bytes)}"
        yield f"would drop the table from the catalog: {holds}"
        if not found.stay:
            yield f"would remove {amount}, and {counted(len(files.metadata), 'file')} of metadata"
        if found.ledger:
            yield f"would remove {counted(len(found.ledger), 'list')} of loaded files"
    else:
        removed = counted(found.removal.removed, "file")
        yield f"dropped the table from the catalog: {holds}"
        if not found.stay:
            yield f"removed {removed}: {format_size(files.bytes)} of rows, and metadata"
    if found.stay:
        yield f"no file of the table is removed: {found.stay}"
    if files.elsewhere:
        many = counted(len(files.elsewhere), "file")
        yield f"left in place, because it is not below `{found.location}`: {many}"
        for place in files.elsewhere[:SHOWN]:
            yield f"  {place}"
