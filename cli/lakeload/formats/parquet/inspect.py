"""Inspection of Parquet tables before Spark starts, from their commit logs. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakeload.formats.inspection import InspectionRequest, TableState, inspect_each, with_input
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.result import FileResult, TableResult
from lakeload_jobs.contract.spec import TableSpec
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log.admission import LoadAttempt, table_settings
from lakeload_jobs.formats.parquet.log.bookmark import bookmark_of
from lakeload_jobs.formats.parquet.log.records import LoadRecord
from lakeload_jobs.formats.parquet.log.table_log import InspectedLog, OpenedLog, TableLog
from lakeload_jobs.sources.position import position_of
from lakeload_jobs.sources.readers import SourceReaders
from lakeload_jobs.storage.objects import Objects


@dataclass(frozen=True)
class ParquetState(TableState):
    """One table as its log has it; `opened` None where that could not be read."""

    opened: OpenedLog | None = None

    @property
    def idle(self) -> bool:
        """Whether this job is committed already, or nothing is new."""
        nothing = self.nothing_new and not self.report.records_anyway
        return self.already is not None or nothing

    @property
    def already(self) -> LoadRecord | None:
        """The record of this very job, when the table has it."""
        return self.opened.already if self.opened else None

    @property
    def unfinished(self) -> bool:
        """Whether a record in its log has to be finished, which may be this very job's."""
        return self.opened is not None and bool(self.opened.settled)

    @property
    def first_run(self) -> bool:
        """Whether no record is the pipeline's."""
        return self.opened is not None and self.opened.first_run

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the log warns of."""
        return self.opened.warnings if self.opened else ()

    @property
    def inspected(self) -> InspectedLog | None:
        """The log as far as the load need not read it again."""
        return self.opened.inspected if self.opened else None

    def loaded(self, result: TableResult) -> TableResult:
        """Return the result with what the record of this very job says."""
        if (record := self.already) is None:
            raise ValueError(f"{self.table.source} has neither a record nor an error")
        return replace(
            result,
            already=True,
            position=position_of(record.state.after) if record.state else None,
            rows=record.rows - (record.deleted_rows or 0),
            deleted=record.deleted_rows or 0,
            bytes=record.bytes,
            files=tuple(FileResult(file.key, file.rows, file.bytes) for file in record.files),
            file_count=len(record.files),
            index=record.index,
            rejected=record.rejected.rows if record.rejected else 0,
        )


def inspect(
    session: AwsSession, tables: Sequence[TableSpec], request: InspectionRequest
) -> tuple[ParquetState, ...]:
    """Read the log of every table.

    The files of incremental tables and of those that read from S3 are listed as well: what is
    missing or denied is known before Spark starts.
    """
    objects = Objects(session, request.destination)
    readers = SourceReaders(request.destination, session)

    def work(table: TableSpec) -> ParquetState:
        location = TableLocation(request.destination.prefix, table.schema, table.table)
        job = LoadAttempt(
            request.pipeline,
            request.attempt.job_id,
            request.attempt.attempt_id,
            table.fingerprint,
            table.source,
            request.options.table_handling,
            table_settings(request.destination, location),
            table.append_again,
        )
        opened = TableLog(objects, location).inspect(job)
        state = ParquetState(table, opened, location=location.url(request.destination.bucket))
        if opened.already is not None:
            return state
        return with_input(
            state,
            readers,
            request.options,
            known=opened.state is not None,
            bookmark=lambda: bookmark_of(
                objects, location, pipeline=request.pipeline, source=table.source, opened=opened
            ),
        )

    return inspect_each(
        tables, work, lambda table, error: ParquetState(table, error=error), request.on_table
    )
