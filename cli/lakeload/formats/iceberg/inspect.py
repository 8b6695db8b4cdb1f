"""Inspection of Iceberg tables before Spark starts, from their metadata. Reads only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lakeload.formats.inspection import InspectionRequest, TableState, inspect_each, with_input
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import LakeloadError, Refused
from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.contract.state import Bookmark, RejectedRecords
from lakeload_jobs.contract.traits import Compares, catalog_traits
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.iceberg.catalogs.reading import (
    existing_table,
    facts_of,
    read_table,
    refuses_overtaken,
)
from lakeload_jobs.formats.iceberg.catalogs.table_stores import TableStore
from lakeload_jobs.formats.iceberg.catalogs.tables import open_tables
from lakeload_jobs.formats.iceberg.file_ledger import Ledger, bookmark_of
from lakeload_jobs.formats.iceberg.rules.admission import (
    JobFound,
    Start,
    check_same_load,
    find_job,
    open_table,
)
from lakeload_jobs.formats.iceberg.rules.catalogs import rest_uri, took_false_commit
from lakeload_jobs.formats.iceberg.rules.facts import (
    SUMMARY_DELETED,
    SUMMARY_REJECTED,
    Snapshot,
    TableAttempt,
    TableFacts,
    source_state_of,
)
from lakeload_jobs.formats.iceberg.rules.rejects import find_rejected
from lakeload_jobs.formats.iceberg.rules.summaries import loaded_rows, number_in
from lakeload_jobs.formats.iceberg.rules.writers import WrittenTable, needs_java
from lakeload_jobs.sources.position import position_of
from lakeload_jobs.sources.readers import SourceReaders
from lakeload_jobs.storage.objects import Objects


@dataclass(frozen=True)
class IcebergState(TableState):
    """One table as its metadata has it.

    `facts` None: there is no table, or it could not be read.
    """

    facts: TableFacts | None = None
    start: Start | None = None
    already: Snapshot | None = None
    """The snapshot of this very job, when the table has it."""
    position: datetime | None = None
    """Up to when the source is loaded, when the table has the job."""
    written: WrittenTable | None = None
    """What decides who writes its data files."""

    def needs_java(self, spec: JobSpec) -> str:
        """Return why Spark writes or merges the rows, or is asked for them."""
        if self.start is not None and self.start.ask_rows_of is not None:
            return "whether the rows of an earlier load are there is not known"
        return needs_java(spec, self.table, self.written)

    @property
    def idle(self) -> bool:
        """Whether this job is committed already, or nothing is new.

        What replaces every row also replaces them by none. A state whose snapshot has expired is
        believed only after a look at the rows, which is Spark's (I5).
        """
        if self.already is not None:
            return True
        if not self.nothing_new or self.table.mode == "OVERWRITE":
            return False
        return self.start is not None and self.start.ask_rows_of is None

    @property
    def waits(self) -> bool:
        """Whether it is to be loaded, as far as is known."""
        return self.error is None and not self.idle

    @property
    def first_run(self) -> bool:
        """Whether the pipeline has never loaded the table."""
        return self.start is not None and self.start.first_run

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a load would warn of."""
        return self.start.warnings if self.start else ()

    def loaded(self, result: TableResult) -> TableResult:
        """Return the result with what the snapshot of this very job says."""
        if self.already is None:
            raise ValueError(f"{self.table.source} is not loaded yet")
        return replace(
            result,
            already=True,
            position=self.position,
            rows=loaded_rows(self.already.summary),
            rejected=number_in(self.already.summary, SUMMARY_REJECTED),
            deleted=number_in(self.already.summary, SUMMARY_DELETED),
            bytes=number_in(self.already.summary, "added-files-size"),
            file_count=number_in(self.already.summary, "added-data-files"),
            snapshot_id=self.already.id,
        )


def inspect(
    session: AwsSession, tables: Sequence[TableSpec], request: InspectionRequest
) -> tuple[IcebergState, ...]:
    """Read the metadata of every table.

    Costs what opening the catalog costs and one or two requests for each table. The files of
    incremental tables and of those that read from S3 are listed as well. Raises `CatalogError`,
    `AwsError` and `InvalidInput` when the catalog cannot be opened.
    """
    readers = SourceReaders(request.destination, session)
    objects = Objects(session, request.destination)
    catalog = open_tables(request.destination, session)
    catalog.open()

    def own_key() -> str:
        # That of a role changes with each session.
        role = request.destination.credentials.role_arn
        return "" if role else session.base_keys().access_key_id

    def work(table: TableSpec) -> IcebergState:
        state = _inspect(catalog, table, request, own_key)
        return state if state.idle else _with_input(state, readers, objects, request)

    states = inspect_each(
        tables, work, lambda table, error: IcebergState(table, error=error), request.on_table
    )
    return _compared(catalog, states, request) if request.loads else states


def _inspect(
    catalog: TableStore, table: TableSpec, request: InspectionRequest, own_key: Callable[[], str]
) -> IcebergState:
    read = read_table(catalog, table.schema, table.table)
    facts = facts_of(read) if read else None
    job = _job(table, request)
    if facts is not None and (snapshot := _already(facts, request, job)) is not None:
        position = position_of(source_state_of(facts, job.pipeline))
        return IcebergState(
            table, facts, already=snapshot, position=position, location=facts.location
        )
    start = open_table(facts, request.destination.iceberg.branch, job)
    if read is None or facts is None:
        return IcebergState(table, None, start)
    written = existing_table(request.destination, read, own_key)
    return IcebergState(table, facts, start, written=written, location=facts.location)


def _with_input(
    state: IcebergState, readers: SourceReaders, objects: Objects, request: InspectionRequest
) -> IcebergState:
    start, options = state.start, request.options
    earlier = start.state if start else None

    def bookmark() -> Bookmark:
        branch = request.destination.iceberg.branch

        def rejected(job: str) -> RejectedRecords:
            return find_rejected(state.facts, branch, request.pipeline, job)[0]

        schema, name = state.table.schema, state.table.table
        location = TableLocation(request.destination.prefix, schema, name)
        ledger = Ledger(objects, location, request.pipeline)
        return bookmark_of(ledger, earlier, full_refresh=options.full_refresh, rejected=rejected)

    known = earlier is not None and earlier.state is not None
    return with_input(state, readers, options, known=known, bookmark=bookmark if start else None)


def _compared(
    catalog: TableStore, states: tuple[IcebergState, ...], request: InspectionRequest
) -> tuple[IcebergState, ...]:
    """Refuse every load where a REST catalog compares nothing (docs/decisions/0107).

    Asked once, about a table that exists. Where none does, the job asks when it has made state.
    """
    there = next((state.table for state in states if state.waits and state.facts is not None), None)
    iceberg = request.destination.iceberg
    if there is None or catalog_traits(iceberg.catalog).compares is not Compares.REFERENCES:
        return states
    # With an HTTP client, which other catalogs do without.
    from lakeload_jobs.formats.iceberg.catalogs.http import origin

    try:
        if refuses_overtaken(catalog, there.schema, there.table, iceberg.branch):
            return states
    except LakeloadError as error:
        caveat = (
            f"it is not known whether the catalog validates commit requirements: {error.message}"
        )
        return tuple(replace(state, caveat=caveat) if state.waits else state for state in states)
    message, hint = took_false_commit(there.target, iceberg.branch)
    place = origin(rest_uri(iceberg.catalog))
    refused = Refused(f"nothing is loaded through `{place}`: {message}", hint=hint)
    return tuple(replace(state, error=refused) if state.waits else state for state in states)


def _already(facts: TableFacts, request: InspectionRequest, job: TableAttempt) -> Snapshot | None:
    """Return the snapshot of the job, as far as the metadata alone can tell; else Spark looks.

    Raises `InvalidInput` when its id was used with other settings.
    """
    answer = find_job(facts, request.destination.iceberg.branch, job.pipeline, job.job_id)
    if answer.found is not JobFound.IN or answer.snapshot is None:
        return None
    check_same_load(facts, request.destination.iceberg.branch, job)
    return facts.snapshots.get(answer.snapshot)


def _job(table: TableSpec, request: InspectionRequest) -> TableAttempt:
    return TableAttempt(
        pipeline=request.pipeline,
        job_id=request.attempt.job_id,
        attempt_id=request.attempt.attempt_id,
        fingerprint=table.fingerprint,
        source=table.source,
        target=table.target,
        table_handling=request.options.table_handling,
        mode=table.mode,
        retries=table.retries,
        append_again=table.append_again,
        goes_on=table.input.incremental and not request.options.starts_over,
    )
