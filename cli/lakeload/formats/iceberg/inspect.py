"""What the metadata of Iceberg tables says before Spark starts. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from lakeload.formats.inspection import AT_ONCE, Look
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import LakeloadError, Refused
from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.contract.spec import PartitionField, TableSpec
from lakeload_jobs.contract.traits import Compares, catalog_traits
from lakeload_jobs.formats.iceberg.bookmark import bookmark_of
from lakeload_jobs.formats.iceberg.catalogs.catalog import (
    IcebergCatalog,
    facts_of,
    find_table,
    partition_fields,
)
from lakeload_jobs.formats.iceberg.catalogs.opening import open_catalog
from lakeload_jobs.formats.iceberg.rules.catalogs import took_false_commit
from lakeload_jobs.formats.iceberg.rules.facts import SUMMARY_ROWS, Snapshot, TableFacts
from lakeload_jobs.formats.iceberg.rules.history import (
    Job,
    JobFound,
    Start,
    check_same_load,
    find_job,
    open_table,
)
from lakeload_jobs.sources.files.file_state import FileState
from lakeload_jobs.sources.files.listing import SourceReaders, list_files, remote_paths
from lakeload_jobs.sources.files.selection import Selection, choose_files
from lakeload_jobs.storage.objects import Objects


@dataclass(frozen=True)
class ForeseenIceberg:
    """One table: what the job would find on opening it, or why it could not load it.

    `asked` is False where only Spark has a client for the catalog: then nothing is known. `facts`
    None with `asked`: there is no table.
    """

    table: TableSpec
    asked: bool = True
    facts: TableFacts | None = None
    partition_by: tuple[PartitionField, ...] = ()
    """The spec that the table has."""
    start: Start | None = None
    already: Snapshot | None = None
    """The snapshot of this very job, when the table has it."""
    error: LakeloadError | None = None
    selection: Selection | None = None
    """The files of an incremental table that the job would load."""
    listed: tuple[FileState, ...] | None = None
    """The input of a table that is incremental or reads from S3, all of it."""
    doubt: str = ""
    """What could not be found out about the catalog."""

    @property
    def idle(self) -> bool:
        """Whether Spark has nothing to do for this table.

        What replaces every row also replaces them by none. A state whose snapshot has expired is
        believed only after a look at the rows, which is Spark's (I5).
        """
        if self.already is not None:
            return True
        if self.selection is None or self.selection.files or self.table.mode == "OVERWRITE":
            return False
        return self.start is not None and self.start.ask_rows_of is None

    @property
    def waits(self) -> bool:
        """Whether it is to be loaded, as far as is known."""
        return self.error is None and not self.idle

    @property
    def unfinished(self) -> bool:
        """Always False: what a killed run left in an Iceberg table is visible to nobody."""
        return False

    def no_op(self) -> TableResult:
        """Return the result of a table that is in already, or has no new files."""
        table = self.table
        if self.already is None and self.selection is not None:
            notes = (self.selection.sentence,)
            return TableResult(table.source, table.target, "NO_OP", notes=notes)
        if self.already is None:
            raise ValueError(f"{table.source} is not in yet")
        return TableResult(
            table.source,
            table.target,
            "NO_OP",
            rows=number_of(self.already, SUMMARY_ROWS),
            bytes=number_of(self.already, "added-files-size"),
            snapshot_id=self.already.id,
        )


def foresee_iceberg(
    session: AwsSession, tables: Sequence[TableSpec], look: Look
) -> tuple[ForeseenIceberg, ...]:
    """Look at the metadata of every table, several at a time; a refusal belongs to its table.

    Costs what opening the catalog costs and one or two requests for each table. The files of
    incremental tables and of those that read from S3 are listed as well. Raises `CatalogError`,
    `AwsError` and `InvalidInput` when the catalog cannot be opened.
    """
    readers = SourceReaders(look.destination, look.attempt.attempt_id)
    objects = Objects(session, look.destination)
    catalog = None
    if not catalog_traits(look.destination.iceberg.catalog).spark_only:
        catalog = open_catalog(look.destination, session)

    def work(table: TableSpec) -> ForeseenIceberg:
        try:
            seen = _look(catalog, table, look)
            return seen if seen.idle else _with_input(seen, readers, objects, look)
        except LakeloadError as error:
            return ForeseenIceberg(table, error=error)

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="foresee") as pool:
        seen = tuple(pool.map(work, tables))
    return _compared(catalog, seen, look) if catalog is not None and look.loads else seen


def number_of(snapshot: Snapshot, key: str) -> int:
    """Return a number of a snapshot's summary, 0 where its writer left it out."""
    text = snapshot.summary.get(key, "")
    return int(text) if text.isascii() and text.isdecimal() else 0


def _look(catalog: IcebergCatalog | None, table: TableSpec, look: Look) -> ForeseenIceberg:
    if catalog is None:
        return ForeseenIceberg(table, asked=False)
    opened = find_table(catalog, table.schema, table.table)
    facts = facts_of(opened) if opened else None
    fields = partition_fields(opened) if opened else ()
    job = _job(table, look)
    if facts is not None and (snapshot := _already(facts, look, job)) is not None:
        return ForeseenIceberg(table, True, facts, fields, already=snapshot)
    start = open_table(facts, look.destination.iceberg.branch, job)
    return ForeseenIceberg(table, True, facts, fields, start)


def _with_input(
    seen: ForeseenIceberg, readers: SourceReaders, objects: Objects, look: Look
) -> ForeseenIceberg:
    """List what the job would, with the identity that reads, and choose as it would."""
    given = seen.table.input
    if not (given.incremental or remote_paths(given.paths)):
        return seen
    state = seen.start.state if seen.start else None
    # Where nobody could be asked, every file may have been loaded.
    known = not seen.asked or (state is not None and state.state is not None)
    may_be_empty = given.incremental and known and not look.options.starts_over
    listed = list_files(given, readers, may_be_empty=may_be_empty)
    if not given.incremental or seen.start is None:
        return replace(seen, listed=listed)
    bookmark = bookmark_of(objects, state, full_refresh=look.options.full_refresh)
    selection = choose_files(bookmark, given.folder, listed, reload=look.options.reload)
    return replace(seen, selection=selection, listed=listed)


def _compared(
    catalog: IcebergCatalog, seen: tuple[ForeseenIceberg, ...], look: Look
) -> tuple[ForeseenIceberg, ...]:
    """Refuse every load where a REST catalog compares nothing (docs/decisions/0107).

    Asked once, about a table that exists. Where none does, the job asks when it has made one.
    """
    there = next((one.table for one in seen if one.waits and one.facts is not None), None)
    iceberg = look.destination.iceberg
    if there is None or catalog_traits(iceberg.catalog).compares is not Compares.REFERENCES:
        return seen
    try:
        if catalog.refuses_overtaken(there.schema, there.table, iceberg.branch):
            return seen
    except LakeloadError as error:
        doubt = f"nobody knows whether the catalog compares commits: {error.message}"
        return tuple(replace(one, doubt=doubt) if one.waits else one for one in seen)
    message, hint = took_false_commit(there.target, iceberg.branch)
    refused = Refused(f"nothing is loaded through `{catalog.place}`: {message}", hint=hint)
    return tuple(replace(one, error=refused) if one.waits else one for one in seen)


def _already(facts: TableFacts, look: Look, job: Job) -> Snapshot | None:
    """Return the snapshot of the job, as far as the metadata alone can tell; else Spark looks.

    Raises `InvalidInput` when its id was used with other settings.
    """
    answer = find_job(facts, look.destination.iceberg.branch, job.pipeline, job.job_id)
    if answer.found is not JobFound.IN or answer.snapshot is None:
        return None
    check_same_load(facts, look.destination.iceberg.branch, job)
    return facts.snapshots.get(answer.snapshot)


def _job(table: TableSpec, look: Look) -> Job:
    return Job(
        pipeline=look.pipeline,
        job_id=look.attempt.job_id,
        attempt_id=look.attempt.attempt_id,
        fingerprint=table.fingerprint,
        source=table.source,
        target=table.target,
        table_handling=look.options.table_handling,
        mode=table.mode,
        goes_on=table.input.incremental and not look.options.starts_over,
    )
