"""Interface of a table format in the job.

A `TableFormat` connects once in a run; its `FormatSession` opens tables. An `OpenTable` says what
it keeps and how columns are to come, takes rows into a `TableWriter`, and what that has staged is a
`StagedLoad`: invisible until it is committed. `load_table` calls them in this order, and nothing
else does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.events import Stage, Step
from lakeload_jobs.contract.maintain import MaintainSpec, StepResult
from lakeload_jobs.contract.plan import TableColumns
from lakeload_jobs.contract.result import IndexKind, SameKey, TableResult
from lakeload_jobs.contract.spec import DestinationSpec, JobSpec, TableSpec
from lakeload_jobs.contract.state import Bookmark, Evidence, StateChange
from lakeload_jobs.core.comments import Comments
from lakeload_jobs.core.type_conflicts import Misfits, split_variants
from lakeload_jobs.formats.data_files.parts import ReadWritten, TableParts, of_frame
from lakeload_jobs.rows.balance import Balance
from lakeload_jobs.rows.columns import ColumnMapping
from lakeload_jobs.rows.counting import Counted, RowsReport
from lakeload_jobs.sources.base import EarlierColumns, Reader, Rows, Slice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType


ROUNDS = 10
"""How often one attempt loads a table, at most: it begins anew where commits of others ask for
it."""
Writer = Literal["direct", "spark"]
"""Who writes data files: lakeload's own tasks, or Spark."""


class RetryLoad(Exception):
    """The load has to begin anew, for this reason: nothing of it is in."""


@dataclass(frozen=True)
class MaintenanceStep:
    """One step of the maintenance of a table. `act` takes it, and raises `CommitConflict`."""

    name: Step
    act: Callable[[], StepResult]


class Reporter:
    """Told how the load of one table goes on; this one tells nobody, and stops nothing."""

    def on_stage(self, stage: Stage, rows: int | None = None) -> None:
        """Note the step that begins, and of how many rows it is, where that is known. Raises
        `Interrupted` when the run is to stop."""

    def on_message(self, text: str) -> None:
        """Note what takes long, in a sentence."""

    def check(self) -> None:
        """Raise `Interrupted` when the run is to stop."""


@dataclass(frozen=True)
class ExpectedColumns:
    """How a table wants its columns, from what earlier loads made of them.

    `earlier` are the Spark types of source columns, `recorded` their target names; `lower` says
    that new names are in lower case. `types` are the Spark types of the table's columns, where
    Spark has them, and `takes` says whether the column of a name takes values of a type; None:
    there is no table yet, or its columns are replaced. `names` are the columns that the table has,
    as others may have named them. `adds_fields`: rows are to come with the fields that structs of
    the table have, and the new ones behind them. `nested_types` are types of columns that are not
    in `types`, for messages alone.
    """

    earlier: Mapping[str, str] = field(default_factory=dict)
    recorded: Mapping[str, str] = field(default_factory=dict)
    lower: bool = False
    types: Mapping[str, str] = field(default_factory=dict)
    takes: Callable[[str, DataType], bool] | None = None
    adds_fields: bool = False
    nested_types: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()

    @property
    def known(self) -> EarlierColumns:
        """Return what a source is to know of them."""
        return EarlierColumns(self.earlier, split_variants(self.recorded)[0])


@dataclass(frozen=True)
class PreparedRows:
    """Rows under their target names and in the types that are written, with helper columns: those
    of `schema`. `misfits` tells of the columns whose type the table's column cannot take.
    """

    rows: Rows
    mapping: ColumnMapping
    schema: StructType
    parts: TableParts
    misfits: Misfits = field(default_factory=dict)
    read: str = ""
    """What of the source they are, for people; '' for all of it."""
    more: bool = False
    """Whether new rows are left for a later load, which then compares the keys of the source."""

    @classmethod
    def of(
        cls,
        rows: Rows,
        mapping: ColumnMapping,
        frame: DataFrame,
        counts: tuple[int, ...] | None = None,
    ) -> PreparedRows:
        """Return rows that Spark's SQL has made. `counts` are those of each partition, where they
        are known without reading it."""
        return cls(rows, mapping, frame.schema, of_frame(frame, counts))

    @classmethod
    def none(cls, rows: Rows) -> PreparedRows:
        """Return no rows, of a source without columns."""
        parts = TableParts((), ReadWritten(rows.splits.read, (), pa.schema([])))
        return cls(rows, ColumnMapping((), ()), StructType([]), parts)

    @property
    def frame(self) -> DataFrame:
        """The rows for Spark's SQL."""
        return self.parts.to_frame(self.rows.spark, self.schema)

    def in_sql(self, frame: DataFrame) -> PreparedRows:
        """Return the same rows as SQL has made them of `frame`."""
        return replace(self, schema=frame.schema, parts=of_frame(frame, self.parts.counts))

    def renamed(self, names: Mapping[str, str]) -> PreparedRows:
        """Return the same rows with other names of columns."""
        own = [names.get(name, name) for name in self.schema.names]
        fields = [
            StructField(name, field.dataType, field.nullable, field.metadata)
            for name, field in zip(own, self.schema.fields, strict=True)
        ]
        return replace(self, schema=StructType(fields), parts=self.parts.renamed(own))

    @property
    def is_empty(self) -> bool:
        """Whether there is no row; rows are read where nobody has counted them."""
        counts = self.parts.counts
        return self.frame.isEmpty() if counts is None else not any(counts)

    @property
    def comments(self) -> Comments:
        """The comments of the source, by target names."""
        return self.rows.comments.renamed({one.source: one.target for one in self.mapping.columns})

    @property
    def index(self) -> IndexKind:
        """Whether `_supa_index` has no gaps: rows of one partition, and those that can be counted
        first, have none."""
        one_partition = self.rows.counts is not None and len(self.rows.counts) == 1
        return "dense" if self.rows.repeatable or one_partition else "sparse"


class TableFormat(Protocol):
    """One format of tables."""

    def uses_own_identity(self, destination: DestinationSpec) -> bool:
        """Whether data files are written by the destination's own identity, and not by keys that
        a catalog lends."""

    def connect(self, spark: SparkSession, spec: JobSpec, aws: AwsSession) -> FormatSession:
        """Connect to where the tables of a job are.

        Raises `InvalidInput` for a missing secret, `AwsError`, and `Refused` for what the catalog
        refuses.
        """


class FormatSession(Protocol):
    """The tables of one run: identity, clients, catalog. Thread-safe: tables share it."""

    def open(self, table: TableSpec, reporter: Reporter, *, incremental: bool) -> OpenTable:
        """Open a table for a load, and bring to an end what earlier loads have left.

        `incremental`: the load goes on from the table's bookmark.

        Raises `LakeloadError` where this job may not load it.
        """

    def inspect(self, table: TableSpec) -> TableView:
        """Return what a load would find; changes nothing."""

    def maintenance(self, table: TableSpec, wanted: MaintainSpec) -> Iterator[MaintenanceStep]:
        """Yield the steps of `wanted` for a table; none where there is no table."""

    def retry_reason(self, table: TableSpec, error: Exception) -> str | None:
        """Return why a load that ended with `error` is to begin anew; None where it is not."""

    def of_job(self, spec: JobSpec) -> FormatSession:
        """Return the tables of another run into the same destination, through the same connection.

        It is closed with this one.
        """

    def close(self, *, jvm_stays: bool = False) -> None:
        """End what the session has started; what ends with the JVM only where that stays."""


class TableView(Protocol):
    """A table as it is now."""

    @property
    def spark(self) -> SparkSession:
        """The session in which the rows for this table are read."""

    @property
    def bookmark(self) -> Bookmark:
        """What the table keeps of this pipeline's loads."""

    def expected(self) -> ExpectedColumns:
        """Return how the columns are to come. Asked before the source is read; raises
        `LakeloadError` where it is known by then that they cannot be taken."""

    def describe(self, prepared: PreparedRows) -> TableColumns:
        """Return the columns that a load of these rows would have, beside those that are there.

        Raises `LakeloadError` as `OpenTable.check` does.
        """


class OpenTable(TableView, Protocol):
    """A table that this job may load, or has loaded already."""

    @property
    def already(self) -> TableResult | None:
        """The result, where this very job is in: nothing is left to do."""

    @property
    def replaces(self) -> bool:
        """Whether every row is replaced: then a load without new rows is one, too."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is allowed and may not be meant."""

    def keep(self, found: Slice) -> TableResult:
        """Return the result of a load with nothing new, after a commit without rows where `found`
        asks for one."""

    def check(self, prepared: PreparedRows) -> TableWriter | None:
        """Make the table ready for these rows: create it, or bring its columns into step.

        None when there is neither a table nor a column to make one of. Raises `RetryLoad`, and
        `LakeloadError` for what `schema_changes` or the catalog forbids.
        """


class TableWriter(Protocol):
    """Takes the rows of one load."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the rows lack."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the table for them."""

    @property
    def reader(self) -> Reader:
        """Who reads the rows."""

    @property
    def writer(self) -> Writer:
        """Who writes the data files."""

    def count(self) -> Counted | None:
        """Count the rows before they are written; None where nothing needs their number.

        Not called for rows that are not repeatable.
        """

    def stage(self, counted: Counted | None) -> StagedLoad:
        """Write the rows where no reader sees them. What fails here leaves nothing behind.

        Raises `LoadFailed` when they are not the rows that were counted.
        """


class StagedLoad(Protocol):
    """Rows that are written and not visible yet."""

    @property
    def report(self) -> RowsReport:
        """What was found in the rows that were read."""

    @property
    def balance(self) -> Balance:
        """Row counts of the load, compared before its commit."""

    @property
    def same_key(self) -> SameKey | None:
        """The rows that later rows of this load replaced."""

    @property
    def deleted(self) -> int:
        """How many rows the source no longer has."""

    def note(self, evidence: Evidence) -> None:
        """Take what was read into account of, so that the commit can name it. Raises `AwsError`."""

    def commit(self, change: StateChange | None) -> TableResult:
        """Make the rows visible and move the pipeline's state, both or neither.

        Called once, after `on_stage("commit")`, and owner of the rest from there: unless the load
        is in, or nobody can know, nothing of it is left. The status is NO_OP when another attempt
        at this job came first. Raises `RetryLoad`, and `LakeloadError` when it may not be
        committed.
        """

    def abandon(self) -> None:
        """Remove what is staged. Raises nothing: the load has failed already, and says why."""
