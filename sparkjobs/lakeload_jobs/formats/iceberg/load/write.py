"""The rows of one load into an Iceberg table: staged on a branch, and published in one commit
(docs/protocol-iceberg.md)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakeload_jobs.contract.errors import LakeloadError, LoadFailed
from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.contract.state import Evidence, StateChange
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.base import ROUNDS, RetryLoad, Writer
from lakeload_jobs.formats.data_files.stage import Driver, count_parts
from lakeload_jobs.formats.iceberg.commits.metadata import snapshot_of
from lakeload_jobs.formats.iceberg.file_ledger import Ledger
from lakeload_jobs.formats.iceberg.left_rejects import settle_rejects
from lakeload_jobs.formats.iceberg.load.asked_rows import AskedTable
from lakeload_jobs.formats.iceberg.load.branches import drop_branch
from lakeload_jobs.formats.iceberg.load.catalog_settings import SparkCatalog
from lakeload_jobs.formats.iceberg.load.catalog_tables import CatalogTables
from lakeload_jobs.formats.iceberg.load.direct_write import Plan
from lakeload_jobs.formats.iceberg.load.incremental import note_evidence
from lakeload_jobs.formats.iceberg.load.opening import Ready
from lakeload_jobs.formats.iceberg.load.outcome import already, loaded
from lakeload_jobs.formats.iceberg.load.publish import Publish, Staged, publish
from lakeload_jobs.formats.iceberg.load.rejects import add_rejects
from lakeload_jobs.formats.iceberg.load.stage import Stage, stage, summary_of
from lakeload_jobs.formats.iceberg.rules.branches import staging_branch
from lakeload_jobs.formats.iceberg.rules.facts import SUMMARY_DELETED, PipelineState
from lakeload_jobs.rows.counting import Counted
from lakeload_jobs.sources.base import Reader
from lakeload_jobs.storage.objects import Objects

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class IcebergLoad:
    """One table of one attempt. The catalog is opened in `spark` where Spark needs it.

    `replaces`: every row of the table is replaced. `number` tells the rounds of one load apart.
    """

    spark: SparkSession
    tables: CatalogTables
    catalog: SparkCatalog
    spec: JobSpec
    table: TableSpec
    objects: Objects
    own_key: Callable[[], str]
    """Returns the access key id of the destination's own identity."""
    replaces: bool = False
    number: int = 0
    check: Callable[[], None] = lambda: None
    """Raises `Interrupted` when the run is to stop."""

    @property
    def asked(self) -> AskedTable:
        """The table, as it is asked what it has."""
        return AskedTable(self.tables, self.catalog, self.spark, self.table)

    @cached_property
    def ledger(self) -> Ledger:
        """The lists of what the pipeline has loaded into the table."""
        location = TableLocation(self.spec.destination.prefix, self.table.schema, self.table.table)
        return Ledger(self.objects, location, self.spec.pipeline)

    @property
    def driver(self) -> Driver:
        """What the driver stages and counts with."""
        return Driver(self.spark, self.objects, self.spec.runtime, self.check)


@dataclass(frozen=True)
class IcebergWriter:
    """Rows, and the table that is ready for them."""

    load: IcebergLoad
    ready: Ready
    plan: Plan

    @property
    def writer(self) -> Writer:
        """Who writes the data files."""
        return self.plan.writer

    @property
    def reader(self) -> Reader:
        """Who reads the rows."""
        return self.ready.rows.prepared.rows.reader

    @property
    def warnings(self) -> tuple[str, ...]:
        """Which columns the rows lack."""
        return self.ready.warnings

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the table."""
        return self.ready.notes

    def count(self) -> Counted:
        """Count the rows of each part."""
        prepared = self.ready.rows.prepared
        reads_all = prepared.rows.count_reads_all_columns
        return Counted(count_parts(self.load.driver, prepared.parts, all_columns=reads_all))

    def stage(self, counted: Counted | None) -> StagedIceberg:
        """Write the rows to a branch of their own."""
        load = self.load
        # `LoadInput` has persisted rows that cannot be read twice: no source is read here.
        request = Stage(
            spark=load.spark,
            tables=load.tables,
            catalog=load.catalog,
            spec=load.spec,
            table=load.table,
            rows=self.ready.rows,
            counted=counted,
            branch=staging_branch(datetime.now(UTC), load.spec.attempt_id, ROUNDS - load.number),
            loaded=load.spec.destination.iceberg.branch,
            replaces=load.replaces,
            driver=load.driver,
            known=self.ready.opened.table,
            begun=self.ready.opened.start.head,
            direct=self.plan.direct,
            changes=self.ready.changes,
        )
        try:
            return StagedIceberg(load, self.ready, request, stage(request))
        except BaseException:
            _drop(load, request.branch)
            raise


class StagedIceberg:
    """Rows that wait on a branch."""

    def __init__(
        self,
        load: IcebergLoad,
        ready: Ready,
        given: Stage,
        staged: Staged,
    ) -> None:
        self._load = load
        self._opened = ready.opened
        self._given = given
        self._staged = staged
        self._ledger: str | None = None
        self.report = staged.report
        self.balance, self.same_key = staged.balance, staged.same_key
        self.deleted = int(staged.summary.get(SUMMARY_DELETED, 0))

    def note(self, evidence: Evidence) -> None:
        """Write it beside the table: no publish names it yet."""
        load, before = self._load, self._opened.start.state
        name = load.spec.attempt_id
        if load.number:
            name = f"{name}-{load.number}"
        self._ledger = note_evidence(load.ledger, load.spec, load.table, evidence, before, name)

    def commit(self, change: StateChange | None) -> TableResult:
        """Publish. The branch is gone afterwards, unless the outcome is unknown.

        Rejected records are in their side table before, and stay there only if it comes in.
        """
        load, table = self._load, self._load.table
        if self.report.rejected.rows:
            self._add_rejects()
        try:
            published = publish(self._publish(change))
        except BaseException:
            self._settle()
            raise
        settled = self._settle()
        if published.outcome == "AGAIN":
            if not settled:
                raise LoadFailed(
                    f"`{table.target}` has to be loaded again, but the rejected records of "
                    "this attempt are still in the side table",
                    hint="run again: nothing was committed, and the next load removes them",
                    retryable=True,
                )
            raise RetryLoad(published.reason)
        if published.outcome == "NO_OP" or published.snapshot is None:
            return already(table, published.facts, published.snapshot, load.spec.pipeline)
        known = published.table
        snapshot = snapshot_of(known.metadata, published.snapshot)
        if snapshot is None:
            raise LoadFailed(
                f"the catalog has taken the commit to `{table.target}` and does not have its "
                f"snapshot {published.snapshot}",
                hint=(
                    f"run again with `--job-id {load.spec.job_id}`, which does not load rows twice"
                ),
            )
        # The index counts all records: those that are set aside leave gaps.
        index = "sparse" if self.report.rejected.rows else self._given.rows.prepared.index
        return loaded(
            load.spec,
            table,
            str(known.metadata["location"]).rstrip("/"),
            load.tables.files(known),
            snapshot,
            index=index,
            merged=self._staged.merged,
            files=self._staged.files,
        )

    def abandon(self) -> None:
        """Drop the branch."""
        _drop(self._load, self._given.branch)

    def _add_rejects(self) -> None:
        """Add them to the side table. What fails here leaves nothing of the load behind, or what
        the next load removes."""
        try:
            add_rejects(self._given, self.report.rejected.rows, self._load.own_key)
        except BaseException as error:
            self.abandon()
            # A commit that nobody has confirmed may still come in: the table goes on remembering.
            self._settle(forgets=False)
            if isinstance(error, Py4JError | PySparkException):
                # Another round would not know whether this one's records came in after all.
                what = f"the rejected records of `{self._load.table.target}` could not be written"
                hint = "run again: nothing was committed"
                raise LoadFailed(f"{what}: {error}", hint=hint, retryable=True) from error
            raise

    def _settle(self, *, forgets: bool = True) -> bool:
        """Say which rejected records stay; return whether that is done. What fails now is done by
        the next load. `forgets`: no more records of this load can come."""
        if not self.report.rejected.rows:
            return True
        load = self._load
        try:
            own = self._given.branch if forgets else None
            summary = summary_of(load.spec, load.table, None)
            table = load.table
            settle_rejects(load.tables, table.schema, table.table, summary, own)
        except (LakeloadError, Py4JError, PySparkException, OSError):
            logger.warning("rejected records are not settled", exc_info=True)
            return False
        return True

    def _publish(self, change: StateChange | None) -> Publish:
        load, opened, given = self._load, self._opened, self._given
        spec, table, before = load.spec, load.table, self._opened.start.state
        # Where every row is replaced, those of an earlier job are gone too.
        earlier = before.rows_job if before and not load.replaces else None

        def state(snapshot: int) -> PipelineState:
            return PipelineState(
                source=table.source,
                job=spec.job_id,
                snapshot=snapshot,
                fingerprint=table.fingerprint,
                columns={**opened.recorded, **given.rows.mapping.column_map},
                state=change.after if change else None,
                ledger=self._ledger,
                rows_job=spec.job_id if self._staged.has_rows else earlier,
            )

        return Publish(
            tables=load.tables,
            schema=table.schema,
            table=table.table,
            branch=given.loaded,
            job=opened.job,
            start=opened.start,
            staged=self._staged,
            state=state,
            # What replaces every row leaves nothing of an earlier account in the table.
            sets_state=change is not None or load.replaces,
        )


def _drop(load: IcebergLoad, branch: str) -> None:
    """Drop the staging branch. What fails now must not hide why the load did; the next start of
    the table drops what is left."""
    try:
        drop_branch(load.tables, load.table.schema, load.table.table, branch)
    except (LakeloadError, OSError):
        logger.warning("the staging branch %s is left", branch, exc_info=True)
