"""What the lake says of the tables before Spark starts. Reads only.

Of Parquet tables their commit logs, here; of Iceberg tables their metadata, in `foresee_iceberg`.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from lakeload.formats.inspection import AT_ONCE, Look
from lakeload.launch.outcome import Outcome, exit_code_of
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import ExitCode, LakeloadError
from lakeload_jobs.contract.result import ErrorInfo, FileResult, TableResult
from lakeload_jobs.contract.spec import TableSpec
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log.admission import table_settings
from lakeload_jobs.formats.parquet.log.bookmark import bookmark_of
from lakeload_jobs.formats.parquet.log.records import LoadRecord
from lakeload_jobs.formats.parquet.log.table_log import Opened, TableLog
from lakeload_jobs.sources.files.file_state import FileState
from lakeload_jobs.sources.files.listing import SourceReaders, list_files, remote_paths
from lakeload_jobs.sources.files.selection import Selection, choose_files
from lakeload_jobs.storage.objects import Objects


class Foresight(Protocol):
    """What is known of one table of either format."""

    @property
    def table(self) -> TableSpec:
        """Which table."""

    @property
    def error(self) -> LakeloadError | None:
        """Why the job could not load it."""

    @property
    def doubt(self) -> str:
        """What could not be found out, and matters should it be loaded; '' for nothing."""

    @property
    def idle(self) -> bool:
        """Whether Spark has nothing to do for it."""

    @property
    def unfinished(self) -> bool:
        """Whether the job would first finish what an earlier one left."""

    def no_op(self) -> TableResult:
        """Return its result, when it is idle."""


@dataclass(frozen=True)
class Foreseen:
    """One Parquet table: what the job would find on opening it, or why it could not load it."""

    table: TableSpec
    opened: Opened | None
    error: LakeloadError | None = None
    selection: Selection | None = None
    """The files of an incremental table that the job would load."""
    listed: tuple[FileState, ...] | None = None
    """The input of a table that is incremental or reads from S3."""
    doubt: str = ""

    @property
    def idle(self) -> bool:
        """Whether Spark has nothing to do for this table."""
        return self.already is not None or (self.selection is not None and self.selection.idle)

    @property
    def already(self) -> LoadRecord | None:
        """The record of this very job, when the table has it."""
        return self.opened.already if self.opened else None

    @property
    def unfinished(self) -> bool:
        """Whether a record in its log has to be finished, which may be this very job's."""
        return self.opened is not None and bool(self.opened.settled)

    def no_op(self) -> TableResult:
        """Return the result of a table that is in already, or has no new files."""
        table, record = self.table, self.already
        if self.selection is not None:
            notes = (self.selection.sentence,)
            return TableResult(table.source, table.target, "NO_OP", notes=notes)
        if record is None:
            raise ValueError(f"{table.source} has neither a record nor an error")
        files = tuple(FileResult(file.key, file.rows, file.bytes) for file in record.files)
        return TableResult(
            table.source,
            table.target,
            "NO_OP",
            rows=record.rows,
            bytes=record.bytes,
            files=files,
            reader="jvm",
            index=record.index,
        )


def foresee(session: AwsSession, tables: Sequence[TableSpec], look: Look) -> tuple[Foresight, ...]:
    """Look at every table, several at a time; a refusal belongs to its table.

    Raises `CatalogError`, `AwsError` and `InvalidInput` when the catalog of Iceberg tables cannot
    be opened.
    """
    if look.destination.table_format == "PARQUET":
        return foresee_logs(session, tables, look)
    # Imports pyiceberg, which Parquet tables do without.
    from lakeload.formats.iceberg.inspect import foresee_iceberg

    return foresee_iceberg(session, tables, look)


def foresee_logs(
    session: AwsSession, tables: Sequence[TableSpec], look: Look
) -> tuple[Foreseen, ...]:
    """Look at the log of every table, several at a time.

    The files of incremental tables and of those that read from S3 are listed as well: what is
    missing or denied is known before Spark starts.
    """
    objects = Objects(session, look.destination)
    readers = SourceReaders(look.destination, look.attempt.attempt_id)

    def work(table: TableSpec) -> Foreseen:
        try:
            return _look(objects, readers, table, look)
        except LakeloadError as error:
            return Foreseen(table, None, error)

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="foresee") as pool:
        return tuple(pool.map(work, tables))


def _look(objects: Objects, readers: SourceReaders, table: TableSpec, look: Look) -> Foreseen:
    location = TableLocation(look.destination.prefix, table.schema, table.table)
    opened = TableLog(objects, location).inspect(
        look.pipeline,
        look.attempt.job_id,
        table.fingerprint,
        table.source,
        look.options.table_handling,
        table_settings(look.destination, location),
    )
    incremental = table.input.incremental
    if opened.already is not None or not (incremental or remote_paths(table.input.paths)):
        return Foreseen(table, opened)
    may_be_empty = incremental and opened.state is not None and not look.options.reload
    listed = list_files(table.input, readers, may_be_empty=may_be_empty)
    if not incremental:
        return Foreseen(table, opened, listed=listed)
    bookmark = bookmark_of(
        objects, location, pipeline=look.pipeline, source=table.source, opened=opened
    )
    selection = choose_files(bookmark, table.input.folder, listed, reload=look.options.reload)
    return Foreseen(table, opened, None, selection, listed)


def outcome_without_spark(foreseen: Sequence[Foresight]) -> Outcome | None:
    """Return the outcome when no table is left to load, else None: Spark has work to do.

    A table that is already in under this job id, or has no new files, needs no Spark, unless
    something in it has to be finished first. A table that cannot be loaded fails the same way in
    the job; but as long as one can, the job reports on all of them.
    """
    if any(not table.error and (table.unfinished or not table.idle) for table in foreseen):
        return None
    results = tuple(map(_result, foreseen))
    refused = all(table.error and table.error.exit_code == ExitCode.REFUSED for table in results)
    # No table has started: what AWS refuses to all of them is a refusal of the run.
    code = ExitCode.REFUSED if results and refused else exit_code_of(results)
    return Outcome("LOADED" if code == 0 else "FAILED", code, results)


def _result(foreseen: Foresight) -> TableResult:
    if foreseen.error is None:
        return foreseen.no_op()
    table, error = foreseen.table, ErrorInfo.of(foreseen.error, "open")
    return TableResult(table.source, table.target, "FAILED", error=error)
