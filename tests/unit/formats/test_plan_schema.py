"""What a load would change about the columns of its tables, from what the plan's job found."""

from __future__ import annotations

import io
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from lakeload.formats.plan import (
    ColumnChange,
    IcebergPlan,
    SchemaFound,
    TablePlan,
    exit_code_of,
    read_columns,
    with_schema,
)
from lakeload.formats.registry import commands_of
from lakeload.launch.outcome import Cause, Ending, Observed, ResultProblem
from lakeload.launch.run import Ended
from lakeload.launch.run_folder import create_run_folder
from lakeload.ui import plan as plan_ui
from lakeload_jobs.contract.errors import ExitCode, Interrupted, LakeloadError, MachineNotReady
from lakeload_jobs.contract.plan import ExistingColumns, PlanResult, TableColumns
from lakeload_jobs.contract.result import ErrorInfo
from lakeload_jobs.contract.spec import JobSpec, PartitionField, SchemaChanges
from tests.unit.launch.specs import ATTEMPT, SYNCED, job_spec

PLAN = TablePlan(
    table="orders",
    target="shop.orders",
    action="LOAD",
    mode="APPEND",
    reader="jvm",
    index="dense",
    numbering="one partition",
    example="",
    first_run=False,
    files=1,
    bytes=10,
    missing=(),
)
EXISTING = ExistingColumns({"id": "int", "name": "string", "old": "string"})


@pytest.fixture
def spec(tmp_path: Path) -> JobSpec:
    """A spec of one Iceberg table that may change."""
    made = job_spec(create_run_folder(tmp_path, SYNCED, ATTEMPT), ["orders"])
    destination = replace(made.destination, table_format="ICEBERG")
    return replace(made, destination=destination, schema_changes="EVOLVE")


def judged(
    spec: JobSpec,
    columns: dict[str, str],
    existing: ExistingColumns | None = EXISTING,
    error: ErrorInfo | None = None,
    partition_by: tuple[PartitionField, ...] | None = None,
) -> TablePlan:
    """Return the plan of `orders` for a source of these columns."""
    found = TableColumns(
        "orders",
        "shop.orders",
        columns,
        partition_by=partition_by,
        existing=existing,
        error=error,
    )
    judge = commands_of(spec.destination.table_format).judge
    (plan,) = with_schema([PLAN], [found], spec, spec.tables, judge)
    assert plan.schema is not None
    return plan


def shown(plan: TablePlan) -> tuple[list[str], list[str]]:
    """Return what is told of the columns on stdout, and stderr, 80 columns wide."""
    streams = [Console(file=io.StringIO(), width=80, markup=False, highlight=False) for _ in "ab"]
    plan_ui.show_text([plan], *streams)
    out, err = (stream.file.getvalue().splitlines() for stream in streams)  # type: ignore[attr-defined]
    # Between the name of the table and the last line, which is about its index.
    return [line.removeprefix("  ") for line in out[3:] if "_supa_index" not in line], err


def test_plan_lists_each_iceberg_schema_change(spec: JobSpec) -> None:
    plan = judged(spec, {"id": "long", "name": "string", "new": "decimal(12, 2)"})
    assert plan.schema is not None
    assert plan.schema.adds == {"new": "decimal(12, 2)"}
    assert plan.schema.widens == (ColumnChange("id", "long", "int"),)
    assert plan.schema.removed == ("old",)
    assert plan.schema.columns["id"] == "long"
    out, _ = shown(plan)
    assert out == [
        "the load",
        "  adds `new` as `decimal(12, 2)`",
        "  widens `id` from `int` to `long`",
        "  keeps `old`, which is null in new rows",
    ]
    assert exit_code_of([plan]) == ExitCode.OK


def test_plan_rejected_schema_change_is_shown_and_blocks(spec: JobSpec) -> None:
    plan = judged(spec, {"id": "date", "name": "string", "old": "string"})
    assert plan.schema is not None
    assert plan.schema.error is not None
    assert "`int`" in plan.schema.error.message
    assert "`date`" in plan.schema.error.message
    assert plan.action == "BLOCKED"
    out, err = shown(plan)
    assert out == ["the columns do not fit"]
    assert err[0].startswith("error: shop.orders: the columns of the load do not fit")
    assert exit_code_of([plan]) == ExitCode.REFUSED


def test_plan_partition_change_is_shown_or_rejected(spec: JobSpec) -> None:
    table = replace(EXISTING, partitions=("name",))
    wanted = (PartitionField("bucket", "id", 4),)
    plan = judged(spec, dict(EXISTING.columns), table, partition_by=wanted)
    assert plan.schema is not None
    assert plan.schema.partition_by == ("bucket(4, id)",)
    assert shown(plan)[0] == [
        "the load",
        "  partitions new files by `bucket(4, id)`, no longer by `name`",
    ]
    kept = judged(spec, dict(EXISTING.columns), table)
    assert shown(kept)[0] == ["columns stay as they are"]
    strict = replace(spec, schema_changes="ADD_COLUMNS")
    refused = judged(strict, dict(EXISTING.columns), table, partition_by=wanted)
    assert refused.action == "BLOCKED"
    assert "by `name`, but `partition_by` is `bucket(4, id)`" in " ".join(shown(refused)[1])


def test_a_new_table_shows_its_columns_and_an_unchanged_one_that(spec: JobSpec) -> None:
    new = judged(spec, {"id": "int", "name": "string"}, None)
    assert shown(new)[0] == ["2 columns", "  id    int", "  name  string"]
    assert shown(judged(spec, dict(EXISTING.columns)))[0] == ["columns stay as they are"]


@pytest.mark.parametrize(("policy", "refused"), [("ADD_COLUMNS", False), ("FAIL", True)])
def test_plan_parquet_schema_changes_follow_parquet_rules(
    spec: JobSpec, policy: SchemaChanges, refused: bool
) -> None:
    destination = replace(spec.destination, table_format="PARQUET")
    parquet = replace(spec, destination=destination, schema_changes=policy)
    found = judged(parquet, {"id": "int", "name": "string", "new": "date"}).schema
    assert found is not None
    assert (found.error is not None) is refused
    if not refused:
        assert found.changes == ("adds `new` as `date`", "keeps `old`, which is null in new rows")


def test_a_source_that_cannot_be_read_is_an_error_of_its_table(spec: JobSpec) -> None:
    error = ErrorInfo("LoadFailed", "the file is no CSV", int(ExitCode.TABLE_FAILED))
    plan = judged(spec, {}, error=error)
    assert (plan.schema, plan.action) == (SchemaFound({}, error=error), "FAIL")
    assert shown(plan)[1][0] == "error: shop.orders: the file is no CSV"
    assert exit_code_of([plan]) == ExitCode.REFUSED


def ended(status: int = 0, stopped_by: signal.Signals | None = None) -> Ended:
    """Return how spark-submit ended."""
    cause = Cause("no such jar", "fetch it", ExitCode.MACHINE)
    return Ended(Ending(status, stopped_by), Observed(), cause)


def test_plan_without_a_result_raises_the_error() -> None:
    nothing = ResultProblem("there is no result", missing=True)
    with pytest.raises(MachineNotReady, match="no such jar"):
        read_columns(ended(1), nothing)
    with pytest.raises(Interrupted):
        read_columns(ended(130, signal.SIGINT), nothing)
    error = ErrorInfo("Refused", "the catalog said no", int(ExitCode.REFUSED))
    result = PlanResult(1, "job", ATTEMPT, "FAILED", SYNCED, SYNCED, error=error)
    with pytest.raises(LakeloadError) as caught:
        read_columns(ended(3), result)
    assert (caught.value.exit_code, caught.value.hint is not None) == (ExitCode.REFUSED, True)


def test_plan_shows_why_the_columns_need_the_jars_of_iceberg(spec: JobSpec) -> None:
    """What the settings and the table say comes first: the load asks for that before it reads."""
    known = IcebergPlan("GLUE", "main", False, None, 2, (), ())
    found = TableColumns(
        "orders", "shop.orders", {"id": "decimal(9, 2)"}, writer="spark", needs_java="of the type"
    )
    judge = commands_of("ICEBERG").judge

    def shown(of_table: str | None) -> str:
        plan = replace(PLAN, iceberg=replace(known, needs_java=of_table))
        (plan,) = with_schema([plan], [found], spec, spec.tables, judge)
        out = io.StringIO()
        console = Console(file=out, width=80, markup=False, highlight=False)
        plan_ui.show_text([plan], console, Console(file=io.StringIO()))
        return next(line for line in out.getvalue().splitlines() if "Iceberg's Java" in line)

    assert shown(None) == "  needs Iceberg's Java code: of the type"
    assert shown("rows are merged") == "  needs Iceberg's Java code: rows are merged"
