"""Plans of tables: the load and its schema changes. Reads only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from lakeload.config.document import quoted
from lakeload.formats.inspection import InspectionRequest, TableState
from lakeload.formats.round_costs import RoundsPlan, plan_rounds
from lakeload.formats.shared_files import shared_files
from lakeload.launch.outcome import ResultProblem, read_result
from lakeload.launch.run import Ended, Launcher, run_job
from lakeload.launch.run_folder import RunFolder
from lakeload.sources.base import InputFound, Numbering
from lakeload.sources.registry import facts_of, source_of
from lakeload.sources.report import CursorPlan, IncrementalPlan
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import (
    ExitCode,
    Interrupted,
    LakeloadError,
    LoadFailed,
    MachineNotReady,
    Refused,
    worst_exit,
)
from lakeload_jobs.contract.plan import CatalogPlan, ExistingColumns, PlanResult, TableColumns
from lakeload_jobs.contract.result import ErrorInfo
from lakeload_jobs.contract.spec import CommitAt, DestinationSpec, JobSpec, RoundLimit, TableSpec
from lakeload_jobs.core.names import REJECTED_SUFFIX
from lakeload_jobs.sources.readers import SourceReaders

Action = Literal["LOAD", "NO_OP", "BLOCKED", "FAIL"]


@dataclass(frozen=True)
class Recovery:
    """An unfinished job that the sync would bring to an end first."""

    job_id: str
    pipeline: str
    rows: int
    files: int
    action: str


@dataclass(frozen=True)
class BranchLeft:
    """A staging branch of an earlier attempt. `drops`: old enough to be taken away."""

    name: str
    created_at: str
    drops: bool


@dataclass(frozen=True)
class IcebergPlan:
    """An Iceberg table as it is; where there is none, as the load would make it.

    `location` None: the catalog chooses it. `rows` are those of the branch's head. `needs_java` is
    why a load needs Iceberg's Java code, as far as is known.
    """

    catalog: str
    branch: str
    exists: bool
    location: str | None
    format_version: int
    partition_by: tuple[str, ...]
    identifiers: tuple[str, ...]
    snapshot_id: int | None = None
    rows: int = 0
    branches: tuple[BranchLeft, ...] = ()
    already: int | None = None
    """The snapshot of this very job, which is in."""
    needs_java: str | None = None


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
    rows_read: int | None = None
    """So many of the first rows the types come from; None: from all that the load reads."""
    warnings: tuple[str, ...] = ()
    error: ErrorInfo | None = None


@dataclass(frozen=True)
class DeletesPlan:
    """What `detect_deletes` would read: the key of every row of the source, as the database
    estimates them, and of every row of the table. None: not known before."""

    source_rows: int | None
    max_deleted: str
    table_rows: int | None = None
    jobs: int | None = None
    """Of a table of Parquet files: the jobs whose files are read."""


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
    sample: tuple[dict[str, str | None], ...] | None = None
    """The first rows of the source, by its columns; None: not asked for, or read by Spark alone."""
    writer: str | None = None
    """`direct` (lakeload's own tasks) or `spark`, which would write the data files of an Iceberg
    table; None where the job has not said so."""
    side_table: str | None = None
    """Where records that cannot be read would be set aside; None where they would not."""
    max_rejected: str | None = None
    estimated_rows: int | None = None
    """The rows that a load would read, by the statistics of the database."""
    key: tuple[str, ...] = ()
    """The source columns that identify a row; none: all columns together do."""
    key_from: Literal["document", "database"] | None = None
    """What says the key of a table of a database; None for any other source."""
    cursor: CursorPlan | None = None
    detect_deletes: DeletesPlan | None = None
    """None: keys are not compared."""
    round_limit: RoundLimit | None = None
    """How much one job loads of what is new; None: all."""
    commit_at: CommitAt | None = None
    """How long new data waits with an interval; None: it does not."""
    rounds: RoundsPlan | None = None
    """What loads at an interval cost; None without an interval."""


def exit_code_of(plans: Sequence[TablePlan]) -> ExitCode:
    """Return 2 when documents or flags must change first, 3 when the lake or the input refuses."""
    errors = [error for plan in plans for error in (plan.error, plan.schema and plan.schema.error)]
    invalid = ExitCode.INVALID
    codes = {error.exit_code for error in errors if error}
    return worst_exit(invalid if code == invalid else ExitCode.REFUSED for code in codes)


def plan_table(state: TableState, request: InspectionRequest, *, local: bool) -> TablePlan:
    """Return what is planned for a table of any format; with a `local` master its input files are
    counted. The format adds what it alone knows."""
    table = state.table
    found = _input(state) if local else InputFound()
    error = state.result.error if state.error else None
    facts = facts_of(table.input, request.reader)
    small = found.files == 1 and found.bytes <= facts.one_partition
    numbering: Numbering = "one partition" if small else facts.numbering
    rounds = plan_rounds(state, request.interval, request.destination.table_format)
    action: Action = "BLOCKED" if error else "NO_OP" if state.idle else "LOAD"
    if action == "LOAD" and found.missing:
        action, error = "FAIL", _nothing_there(found)
    return TablePlan(
        table=table.source,
        target=table.target,
        action=action,
        mode=table.mode,
        reader=facts.reader,
        index="sparse" if numbering == "not counted" else "dense",
        numbering=numbering,
        example="",
        first_run=state.first_run,
        files=found.files,
        bytes=found.bytes,
        missing=found.missing,
        error=error,
        warnings=(
            *state.warnings,
            *state.report.warnings,
            *(rounds.warnings if rounds else ()),
        ),
        cursor=_cursor(state),
        estimated_rows=state.report.rows,
        key=table.primary_key,
        key_from=_key_from(table),
        incremental=state.report.incremental,
        detect_deletes=_detect_deletes(state),
        round_limit=table.round_limit,
        commit_at=table.commit_at,
        rounds=rounds,
    )


def with_shared_files(
    plans: Sequence[TablePlan],
    states: Sequence[TableState],
    request: InspectionRequest,
    *,
    local: bool,
) -> tuple[TablePlan, ...]:
    """Return the plans with a warning at tables that read the same files."""
    found = shared_files(states, request, local=local)
    return tuple(
        replace(plan, warnings=(*plan.warnings, *found.get(plan.table, ()))) for plan in plans
    )


def _key_from(table: TableSpec) -> Literal["document", "database"] | None:
    read = facts_of(table.input).database
    if read is None:
        return None
    return "document" if read.key is None else "database"


def _detect_deletes(state: TableState) -> DeletesPlan | None:
    limit = state.table.max_deleted
    if limit is None:
        return None
    return DeletesPlan(state.report.all_rows, str(limit))


def _input(state: TableState) -> InputFound:
    report = state.report
    if report.listed is not None:
        return InputFound(len(report.listed), sum(file.size for file in report.listed))
    if report.bytes is not None:
        return InputFound(bytes=report.bytes)
    return source_of(state.table.input).count_files(state.table.input)


def _cursor(state: TableState) -> CursorPlan | None:
    """Return how far a table was loaded, None for one that is not loaded by a cursor."""
    table = state.table
    if table.cursor is None or not source_of(table.input).cursor_reads:
        return None
    return state.report.cursor or CursorPlan(table.cursor)


def _nothing_there(found: InputFound) -> ErrorInfo:
    """Return the error of a load whose input is not there, in the words of the load."""
    message = found.why.message if found.why else f"no input files at {quoted(found.missing)}"
    hint = found.why.hint if found.why else None
    more = len(found.missing) - 1
    message += f" (nor at {more} other paths)" if more > 0 else ""
    start = "relative paths start at the folder of the pipeline's file"
    return ErrorInfo("MissingInput", message, int(ExitCode.REFUSED), hint or start, "open")


Judge = Callable[[TableColumns, ExistingColumns, JobSpec, TableSpec], SchemaFound]
"""Returns what becomes of the columns of a table. Raises `LakeloadError` for a change that is
refused."""


WITHOUT = "`--no-schema` shows the rest of the plan without Spark"


def find_columns(spec: JobSpec, folder: RunFolder, launcher: Launcher) -> tuple[TableColumns, ...]:
    """Open the source of every table of `spec` in a Spark job, and return their columns.

    Raises as `run_job` does, and what kept the job from telling any: `Interrupted`, `Refused`,
    `MachineNotReady`, `LoadFailed`.
    """
    ended = run_job(spec, folder, launcher)
    return read_columns(ended, read_result(PlanResult, folder.result, spec.attempt_id))


def read_columns(ended: Ended, result: PlanResult | ResultProblem) -> tuple[TableColumns, ...]:
    """Return the columns of a job that ended well; else raise why there are none."""
    ending = ended.ending
    if ending.stopped_by is not None:
        raise Interrupted(f"stopped by {ending.stopped_by.name}: nothing was written")
    if isinstance(result, ResultProblem):
        if result.missing or ending.exit_status != 0:
            cause = ended.cause
            raise _error_of(cause.exit_code)(
                f"reading the columns: the Spark job crashed: {cause.message}",
                hint=cause.hint or WITHOUT,
            )
        raise LoadFailed(f"reading the columns: {result.message}", hint=result.hint or WITHOUT)
    if result.error is not None:
        kind = _error_of(result.error.exit_code)
        raise kind(result.error.message, hint=result.error.hint or WITHOUT)
    return result.tables


def with_schema(
    plans: Sequence[TablePlan],
    found: Sequence[TableColumns],
    spec: JobSpec,
    tables: Sequence[TableSpec],
    judge: Judge,
) -> tuple[TablePlan, ...]:
    """Return the plans with the change of columns of each table that the job read."""
    known = {one.table: one for one in found}
    specs = {table.source: table for table in tables}
    return tuple(
        with_columns(
            replace(
                plan,
                reader=known[plan.table].reader,
                writer=known[plan.table].writer,
                iceberg=plan.iceberg
                and replace(
                    plan.iceberg,
                    needs_java=plan.iceberg.needs_java or known[plan.table].needs_java,
                ),
            ),
            _judged(judge, known[plan.table], spec, specs[plan.table]),
        )
        if plan.table in known
        else plan
        for plan in plans
    )


def with_columns(plan: TablePlan, schema: SchemaFound) -> TablePlan:
    """Return the plan with the change of columns: one that is refused refuses the load, and a
    source that cannot be read fails it."""
    if schema.error is None:
        return replace(plan, schema=schema)
    return replace(plan, schema=schema, action="BLOCKED" if schema.columns else "FAIL")


def with_side_tables(plans: Sequence[TablePlan], spec: JobSpec) -> tuple[TablePlan, ...]:
    """Return the plans with where each table's rejected records would go."""
    specs = {table.source: table for table in spec.tables}

    def with_side_table(plan: TablePlan) -> TablePlan:
        table = specs[plan.table]
        if spec.on_bad_value_of(table) != "QUARANTINE":
            return plan
        limit = str(spec.max_rejected_of(table))
        return replace(plan, side_table=plan.target + REJECTED_SUFFIX, max_rejected=limit)

    return tuple(with_side_table(plan) for plan in plans)


def with_samples(
    plans: Sequence[TablePlan],
    tables: Sequence[TableSpec],
    destination: DestinationSpec,
    session: AwsSession,
) -> tuple[TablePlan, ...]:
    """Return the plans with the first rows of each table that would be loaded."""
    readers = SourceReaders(destination, session)
    specs = {table.source: table for table in tables}

    def sampled(plan: TablePlan) -> TablePlan:
        if plan.action not in ("LOAD", "BLOCKED") or plan.error is not None:
            return plan
        read = specs[plan.table].input
        try:
            found = source_of(read).read_sample(read, readers)
        except LakeloadError as error:
            return replace(
                plan, warnings=(*plan.warnings, f"no rows can be shown: {error.message}")
            )
        if found is None:
            return plan
        rows = tuple(dict(zip(found.columns, row, strict=True)) for row in found.rows)
        return replace(plan, sample=rows)

    return tuple(map(sampled, plans))


def _judged(judge: Judge, found: TableColumns, spec: JobSpec, table: TableSpec) -> SchemaFound:
    base = SchemaFound(found.columns, warnings=found.warnings, error=found.error)
    if found.error is not None or not found.columns:
        return base
    if found.existing is None:
        return replace(base, creates=True)
    try:
        judged = judge(found, found.existing, spec, table)
    except LakeloadError as error:
        return replace(base, error=ErrorInfo.of(error, "schema"))
    return replace(judged, columns=found.columns, warnings=found.warnings)


def _error_of(code: int) -> type[LakeloadError]:
    kinds: dict[int, type[LakeloadError]] = {
        ExitCode.REFUSED: Refused,
        ExitCode.MACHINE: MachineNotReady,
        ExitCode.INTERRUPTED: Interrupted,
    }
    return kinds.get(code, LoadFailed)
