"""A plan as a value: what a sync would do with each table of either format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from lakeload.sources.base import Numbering
from lakeload_jobs.contract.errors import ExitCode, worst_exit
from lakeload_jobs.contract.result import ErrorInfo

Action = Literal["LOAD", "NO_OP", "REFUSED", "FAIL"]


@dataclass(frozen=True)
class Recovery:
    """An unfinished job that the sync would bring to an end first."""

    job_id: str
    pipeline: str
    rows: int
    files: int
    action: str


@dataclass(frozen=True)
class IncrementalPlan:
    """What an incremental table would load: new files, their bytes, and how many are known.

    `loaded` counts the versions of files ever loaded, `changed` new versions among the new files,
    `state_bytes` the JSON of the state that the record would carry.
    """

    new_files: int
    new_bytes: int
    known_files: int
    loaded: int
    changed: int
    state_bytes: int
    reload: bool


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
class BranchLeft:
    """A staging branch of an earlier attempt. `drops`: old enough to be taken away."""

    name: str
    created_at: str
    drops: bool


@dataclass(frozen=True)
class IcebergPlan:
    """An Iceberg table as it is; where there is none, as the load would make it.

    `exists` None: only Spark has a client for the catalog, and nothing is known. `location` None:
    the catalog chooses it. `rows` are those of the branch's head.
    """

    catalog: str
    branch: str
    exists: bool | None
    location: str | None
    format_version: int
    partition_by: tuple[str, ...]
    identifiers: tuple[str, ...]
    snapshot_id: int | None = None
    rows: int = 0
    branches: tuple[BranchLeft, ...] = ()
    already: int | None = None
    """The snapshot of this very job, which is in."""


@dataclass(frozen=True)
class ColumnChange:
    """A column whose type changes."""

    name: str
    type: str
    was: str


@dataclass(frozen=True)
class SchemaFound:
    """The columns that the load would bring, and what they change in the table that is there.

    Types are Iceberg's of an Iceberg table, Spark's of a Parquet table. `changes` are all of it in
    sentences. `error`: the change that the load would refuse, or why the source cannot be read.
    """

    columns: dict[str, str]
    creates: bool = False
    """There is no table yet: nothing to compare with."""
    changes: tuple[str, ...] = ()
    adds: dict[str, str] = field(default_factory=dict)
    widens: tuple[ColumnChange, ...] = ()
    optional: tuple[str, ...] = ()
    """Columns that lose NOT NULL."""
    identifiers: tuple[str, ...] | None = None
    """The identifier fields that are set; None leaves those of the table."""
    removed: tuple[str, ...] = ()
    """Columns that stay, and are null in new rows."""
    replaces: bool = False
    """The definition of the table is replaced, as its rows are."""
    partition_by: tuple[str, ...] | None = None
    """The partition spec that new files get; None leaves that of the table."""
    warnings: tuple[str, ...] = ()
    error: ErrorInfo | None = None


@dataclass(frozen=True)
class TablePlan:
    """What would become of one table. `reader` is jvm or direct, None where only a look into the
    files tells. `numbering` says how `_supa_index` gets its numbers.

    `example` is the URL of the first Parquet file; Iceberg names its files itself.
    """

    table: str
    target: str
    action: Action
    mode: str
    reader: str | None
    index: str
    numbering: Numbering
    example: str
    first_run: bool
    files: int
    bytes: int
    missing: tuple[str, ...]
    recovery: tuple[Recovery, ...] = ()
    error: ErrorInfo | None = None
    incremental: IncrementalPlan | None = None
    catalog: CatalogPlan | None = None
    warnings: tuple[str, ...] = ()
    iceberg: IcebergPlan | None = None
    schema: SchemaFound | None = None
    why_jvm: str = ""
    """Why only Spark can read the rows, where the job that looked at them said so."""


def exit_code_of(plans: Sequence[TablePlan]) -> ExitCode:
    """Return 2 when documents or flags must change first, 3 when the lake or the input refuses."""
    errors = [error for plan in plans for error in (plan.error, plan.schema and plan.schema.error)]
    invalid = ExitCode.INVALID
    codes = {error.exit_code for error in errors if error}
    return worst_exit(invalid if code == invalid else ExitCode.REFUSED for code in codes)
