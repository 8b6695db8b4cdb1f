"""FILES as a source: the whole input each time, or with `incremental` the files that are new.

docs/incremental.md has the guarantees; sources.files.bookmark how they are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import FilesInput, JobSpec, TableSpec
from lakeload_jobs.contract.state import Bookmark, Evidence, StateChange
from lakeload_jobs.rows.casts import quoted
from lakeload_jobs.sources.base import (
    EarlierColumns,
    Rows,
    Splits,
    UnreadableFile,
    explained_by_change,
    with_all_bad_values,
)
from lakeload_jobs.sources.files.content import content_hashes
from lakeload_jobs.sources.files.formats.registry import FILE_FORMATS, TEXT_FORMATS
from lakeload_jobs.sources.files.listing import check_unchanged, list_files
from lakeload_jobs.sources.files.selection import Selection, choose_files, selection_warnings
from lakeload_jobs.sources.files.spark.reader import open_files
from lakeload_jobs.sources.files.spark.s3a import S3Source
from lakeload_jobs.sources.files.spark.text import open_text_files
from lakeload_jobs.sources.files.spark.typed import TypedTable, open_typed_files
from lakeload_jobs.sources.paths.file_state import FileState
from lakeload_jobs.sources.paths.local_listing import link_warnings
from lakeload_jobs.sources.settings import refuse_limit
from lakeload_jobs.sources.spark_frames import as_handed_over, frame_of


def connect_files(spec: JobSpec, aws: AwsSession) -> Callable[[TableSpec, FilesInput], FilesSource]:
    """Return what makes the source of each table of one run: they share its access to S3."""
    s3 = S3Source(spec, aws)
    return lambda table, given: FilesSource(spec, table, given, s3)


@dataclass(frozen=True)
class FilesSource:
    """The files of one table."""

    spec: JobSpec
    table: TableSpec
    given: FilesInput
    s3: S3Source
    unreadable: dict[FileState, UnreadableFile] = field(default_factory=dict)
    """Files that this load sets aside for what it found when it read their rows."""

    @property
    def incremental(self) -> bool:
        """Whether account is kept of the files that were loaded."""
        return self.given.incremental

    def slice(self, bookmark: Bookmark) -> FilesSlice:
        """Return the files to load. A source that is loaded whole is listed when it is opened.

        Raises what listing raises, `InvalidInput` for `limit`, and `LoadFailed` for a state that
        does not belong to files.
        """
        spec, given = self.spec, self.given
        if not given.incremental:
            return FilesSlice(spec, self.table, given, self.s3, unreadable=self.unreadable)
        refuse_limit(incremental=True, limit=spec.options.limit)
        may_be_empty = bookmark.state is not None and not spec.options.reload
        listed = list_files(given, self.s3.readers, may_be_empty=may_be_empty)
        selection = choose_files(
            bookmark,
            given.folder,
            listed,
            reload=spec.options.reload,
            on_changed_file=given.on_changed_file,
            contents=self._contents if given.content_hash else None,
            limit=self.table.round_limit,
        )
        return FilesSlice(spec, self.table, given, self.s3, selection, self.unreadable)

    def close(self) -> None:
        """Do nothing: files are opened by those who read them."""

    def _contents(self, files: Sequence[FileState]) -> tuple[str, ...]:
        return content_hashes(files, self.given, self.s3.readers)


@dataclass(frozen=True)
class FilesSlice:
    """The files of one load; without a selection all that are there."""

    spec: JobSpec
    table: TableSpec
    given: FilesInput
    s3: S3Source
    selection: Selection | None = None
    unreadable: dict[FileState, UnreadableFile] = field(default_factory=dict)

    @property
    def idle(self) -> bool:
        """Whether no file is new."""
        return self.selection is not None and not self.selection.files

    @property
    def records_anyway(self) -> bool:
        """Whether a commit spares the next run a look at all records."""
        return self.selection is not None and self.selection.moves_state

    @property
    def must_record(self) -> bool:
        """Whether new versions are not loaded: they are remembered."""
        found = self.selection
        return found is not None and bool(found.skipped or found.same)

    @property
    def more(self) -> bool:
        """Whether new files are left for a later load."""
        return self.selection is not None and bool(self.selection.later)

    @property
    def sentence(self) -> str:
        """How many files are new."""
        return self.selection.sentence if self.selection else ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may double rows."""
        return selection_warnings(self.selection, reload=self.spec.options.reload)

    @property
    def bytes(self) -> int | None:
        """The bytes of the files, where they are listed already."""
        return self.selection.bytes if self.selection else None

    @property
    def change(self) -> StateChange | None:
        """The state when these files are loaded."""
        return self.selection.state if self.selection else None

    def noted(self, rejected_from: Collection[str]) -> Evidence | None:
        """Return the files, as they were listed. Where their content is hashed, raises `AwsError`
        and `LoadFailed` for one that has changed since."""
        if self.selection is None:
            return None
        files, readers = self.selection.files, self.s3.readers
        if not self.given.content_hash or not files:
            return self.selection.noted(rejected_from)
        contents = content_hashes(files, self.given, readers)
        # So what was hashed is what was loaded.
        check_unchanged(files, self.given, readers)
        return self.selection.noted(rejected_from, contents)

    def open(self, spark: SparkSession, earlier: EarlierColumns) -> Rows:
        """Open the files: text, ORC and Avro by our own readers, Parquet by Arrow as far as it
        reads them, all others by Spark.

        Raises `InvalidInput` where `spark: {reader: DIRECT}` asks for what is not possible.
        """
        given, readers = self.given, self.s3.readers
        files = self.selection.files if self.selection else list_files(given, readers)
        with explained_by_change(lambda: check_unchanged(files, given, readers)):
            rows = self._open(spark, files, earlier)
        rows = replace(rows, check_type=partial(self._check_type, spark, files, earlier))
        if self.selection is None:
            rows = replace(rows, warnings=(*rows.warnings, *link_warnings(files)))
        if self.spec.reader == "DIRECT" and rows.only_spark:
            raise InvalidInput(
                f"the table cannot be read with `spark: {{reader: DIRECT}}`: {rows.only_spark}",
                hint="`spark: {reader: AUTO}` lets Spark read where it is needed",
            )
        return rows

    def _check_type(
        self,
        spark: SparkSession,
        files: tuple[FileState, ...],
        earlier: EarlierColumns,
        name: str,
        kind: str,
    ) -> None:
        """Read one column of the files as a type (`sources.base.CheckType`)."""
        columns = self.table.columns
        columns = replace(columns, types={**(columns.types or {}), name: kind})
        table = replace(self.table, columns=columns, on_bad_value="FAIL")
        rows = replace(self, table=table)._open(spark, files, earlier)
        with with_all_bad_values(rows):
            values = frame_of(rows) if table.where is None else frame_of(rows).where(table.where)
            values.agg(F.count(quoted(name))).collect()

    def _open(
        self, spark: SparkSession, files: tuple[FileState, ...], earlier: EarlierColumns
    ) -> Rows:
        given, table, s3 = self.given, self.table, self.s3
        typed_by = self.selection.typed_by if self.selection and self.selection.later else None
        if not files:
            return Rows(spark, StructType([]), (), Splits((), as_handed_over, ()))
        sparks = FILE_FORMATS[given.format].only_spark(given.options)
        if given.format in TEXT_FORMATS:
            return open_text_files(
                spark,
                self.spec,
                table,
                given,
                s3,
                files=files,
                earlier=earlier,
                typed_by=typed_by,
            )
        if sparks is None:
            opened = TypedTable(
                spark, self.spec, table, given, files, s3, self.unreadable, typed_by=typed_by
            )
            return open_typed_files(opened, earlier)
        return open_files(
            spark,
            given,
            table,
            self.spec.on_bad_value_of(table),
            only_spark=f"the reader option `{sparks}` is Spark's",
            s3=s3,
            files=files,
        )
