"""Result of the job behind `plan`: the columns that a load would write."""

from __future__ import annotations

from dataclasses import dataclass, field

from lakeload_jobs.contract.result import ErrorInfo, JobResult
from lakeload_jobs.contract.spec import PartitionField


@dataclass(frozen=True)
class ExistingColumns:
    """The columns that a table has, name → type; all else of Iceberg alone.

    `empty`: no row is in it. `partitions`: its partition spec, as `partition_by` writes it.
    """

    columns: dict[str, str]
    required: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    empty: bool = False
    partitions: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableColumns:
    """One table: the columns of its source as the load would write them, tracking columns too.

    Types are Iceberg's of an Iceberg table, else Spark's. `keys` is the primary key in target
    names; `required` are the columns that are never null.
    """

    table: str
    target: str
    columns: dict[str, str] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    partition_by: tuple[PartitionField, ...] | None = None
    """In target names; None: not given."""
    existing: ExistingColumns | None = None
    """None: there is no table yet."""
    reader: str | None = None
    """Who would read the rows: direct (lakeload or Arrow) or jvm (Spark)."""
    writer: str | None = None
    """Who would write the data files: direct (lakeload's own tasks) or spark."""
    warnings: tuple[str, ...] = ()
    error: ErrorInfo | None = None
    """Why the source cannot be read, or, of a Parquet table, the change that the load refuses."""
    needs_java: str | None = None
    """Why a load needs the jars of the format, as a clause. With `error`, its columns are not known
    without them either."""


@dataclass(frozen=True)
class CatalogPlan:
    """A table in Glue and what the load would change there, as far as its columns are known.

    `unasked` says why Glue could not be asked, which stops no load.
    """

    database: str
    table: str
    creates_database: bool = False
    creates_table: bool = False
    adds_columns: tuple[str, ...] = ()
    unasked: ErrorInfo | None = None


@dataclass(frozen=True)
class PlanResult(JobResult):
    """The columns that a load would bring. `error` is set when the job failed outside any table."""

    tables: tuple[TableColumns, ...] = ()
    error: ErrorInfo | None = None
