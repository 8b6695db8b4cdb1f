"""Plans as values: what is decided from logs and files."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from lakeload.commands.plan_once import destination_warnings, query_command
from lakeload.formats.iceberg.inspect import IcebergState
from lakeload.formats.inspection import InspectionRequest, inspect_each, outcome_without_spark
from lakeload.formats.parquet.inspect import ParquetState
from lakeload.formats.parquet.plan import plan_states
from lakeload.formats.plan import TablePlan, exit_code_of
from lakeload.lake.server import Lake
from lakeload.launch.spec import Attempt
from lakeload.sources.files.report import report_of_selection
from lakeload.sources.report import IncrementalPlan, SourceReport
from lakeload.ui.plan import to_document
from lakeload_jobs.contract.errors import ExitCode, InvalidInput, LakeloadError, LoadFailed
from lakeload_jobs.contract.spec import (
    NO_OPTIONS,
    DestinationSpec,
    FileFormatName,
    FilesInput,
    ParquetSpec,
    RejectLimit,
    TableSpec,
)
from lakeload_jobs.contract.state import Evidence, StateChange
from lakeload_jobs.formats.iceberg.rules.admission import Start
from lakeload_jobs.formats.parquet.load.outcome import table_result
from lakeload_jobs.formats.parquet.log.records import LoadRecord, Target
from lakeload_jobs.formats.parquet.log.roll_forward import Pending
from lakeload_jobs.formats.parquet.log.table_log import OpenedLog
from lakeload_jobs.sources.files.selection import Selection
from lakeload_jobs.sources.paths.file_state import FileState
from tests.unit.launch.specs import ATTEMPT, SYNCED, table

HERE = Attempt("job-1", ATTEMPT, SYNCED)
LEFT = Pending(3, "shop", "job-0", rows=10, files=2, action="publish")


def opened(already: LoadRecord | None = None, settled: tuple[Pending, ...] = ()) -> OpenedLog:
    return OpenedLog(1, already, first_run=True, column_map={}, columns=(), settled=settled)


def record() -> LoadRecord:
    return LoadRecord(
        *("test", "shop", "orders", "job-1", "attempt-0", SYNCED, SYNCED, SYNCED),
        *("APPEND", "FAIL", "f00", Target("", "shop", "orders"), "HOUR", "{uuid}", ""),
        *((), {}, "dense", 7, ()),
    )


def planned(
    paths: tuple[Path, ...] = (),
    file_format: FileFormatName = "CSV",
    options: dict[str, str] | None = None,
    found: OpenedLog | LakeloadError | None = None,
) -> TablePlan:
    given = FilesInput(file_format, tuple(map(str, paths)), options or {})
    spec = dataclasses.replace(table("orders"), input=given)
    seen = found or opened()
    if isinstance(seen, LakeloadError):
        foreseen = ParquetState(spec, error=seen)
    else:
        foreseen = ParquetState(spec, seen)
    destination = DestinationSpec("lake", "us-east-1", parquet=ParquetSpec("DAY", "{date}-{uuid}"))
    (plan,) = plan_states(
        [foreseen], InspectionRequest(destination, "shop", HERE, NO_OPTIONS), local=True
    )
    return plan


def test_plan_names_a_query_only_where_it_finds_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKELOAD_LAKE_DIR", str(tmp_path))
    (tmp_path / "lake.json").write_text('{"port": 18310}')
    lake = Lake(tmp_path).destination("PARQUET")
    plans = [planned()]

    expected = "lakeload lake query 'SELECT * FROM shop.orders LIMIT 10'"
    assert query_command(lake, plans) == expected
    assert query_command(dataclasses.replace(lake, prefix="big"), plans) is None
    assert query_command(DestinationSpec("lake", "us-east-1"), plans) is None


def test_the_first_key_is_that_of_the_jobs_instant() -> None:
    url = "s3://lake/shop/orders/2026/11/21/2026-11-21-00000000-0000-4000-8000-000000000000"
    assert planned().example == f"{url}.gzip.parquet"


@pytest.mark.parametrize(
    ("names", "size", "file_format", "options", "numbering"),
    [
        (("a.parquet",), 9, "PARQUET", {}, "footers"),
        (("a.csv",), 9, "CSV", {}, "counting pass"),
        (("a.ndjson",), 9, "NDJSON", {}, "counting pass"),
        (("a.json",), 9, "JSON", {}, "counting pass"),
        (("a.orc",), 9, "ORC", {}, "footers"),
        (("a.avro",), 9, "AVRO", {}, "footers"),
        (("a.avro",), 9, "AVRO", {"avroSchema": "{}"}, "one partition"),
        (("a.avro",), 5 * 1024 * 1024, "AVRO", {"avroSchema": "{}"}, "counting pass"),
        (("a.avro", "b.avro"), 9, "AVRO", {"avroSchema": "{}"}, "counting pass"),
    ],
)
def test_the_plan_says_how_rows_get_their_numbers(
    tmp_path: Path,
    names: tuple[str, ...],
    size: int,
    file_format: FileFormatName,
    options: dict[str, str],
    numbering: str,
) -> None:
    for name in names:
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)
    plan = planned(tuple(tmp_path / name for name in names), file_format, options)
    assert plan.numbering == numbering
    assert plan.bytes == size * len(names)


def test_plan_lists_remains_of_another_job_with_the_action() -> None:
    (job,) = planned(found=opened(settled=(LEFT,))).recovery
    assert (job.job_id, job.rows, job.files, job.action) == ("job-0", 10, 2, "publish")


def test_plan_of_a_committed_job_is_a_no_op() -> None:
    assert planned(found=opened(record())).action == "NO_OP"


@pytest.mark.parametrize(
    ("errors", "code"),
    [
        ([None], ExitCode.OK),
        ([LoadFailed("occupied")], ExitCode.REFUSED),
        ([None, LoadFailed("occupied"), InvalidInput("spent")], ExitCode.INVALID),
    ],
)
def test_the_tables_decide_the_exit_code(
    errors: list[LakeloadError | None], code: ExitCode
) -> None:
    assert exit_code_of([planned(found=error) for error in errors]) == code


def test_sync_skips_spark_only_when_no_table_is_left() -> None:
    orders = table("orders")
    lake = DestinationSpec("lake", "us-east-1")
    url = f"s3://lake/{orders.schema}/{orders.table}"
    done = ParquetState(orders, opened(record()), location=url)
    refused = ParquetState(orders, error=LoadFailed("occupied"))
    unfinished = ParquetState(orders, opened(record(), settled=(LEFT,)))
    assert outcome_without_spark([done, ParquetState(orders, opened())]) is None
    assert outcome_without_spark([unfinished]) is None
    outcome = outcome_without_spark([done])
    assert outcome is not None
    assert outcome.exit_code == 0
    # As the job itself tells of a record that is in: nothing was read, by nobody.
    assert outcome.tables == (table_result(lake, orders, "NO_OP", record(), None),)
    assert outcome.tables[0].rows == 7
    failed = outcome_without_spark([done, refused])
    assert failed is not None
    assert [table.status for table in failed.tables] == ["NO_OP", "FAILED"]
    assert failed.exit_code == ExitCode.TABLE_FAILED


def chosen(*files: FileState, moves_state: bool = False) -> SourceReport:
    change = StateChange(None, {"n": 1})
    selection = Selection(files, 3, 4, (), change, Evidence(), moves_state)
    return report_of_selection(files, selection, reload=False)


def test_sync_skips_spark_without_new_files_unless_the_state_changes() -> None:
    orders = table("orders")
    idle = ParquetState(orders, opened(), report=chosen())
    outcome = outcome_without_spark([idle, ParquetState(orders, opened(record()))])
    assert outcome is not None
    assert outcome.tables[0].notes == ("no new files (3 known)",)
    new = FileState("/in/a.csv", 5, 1)
    assert outcome_without_spark([ParquetState(orders, opened(), report=chosen(new))]) is None
    moving = ParquetState(orders, opened(), report=chosen(moves_state=True))
    assert outcome_without_spark([moving]) is None
    left = ParquetState(orders, opened(settled=(LEFT,)), report=chosen())
    assert outcome_without_spark([left]) is None


def test_the_plan_of_an_incremental_table_counts_new_and_known_files() -> None:
    destination = DestinationSpec("lake", "us-east-1")
    two = chosen(FileState("/in/a.csv", 5, 1), FileState("/in/b.csv", 6, 1))
    seen = [
        ParquetState(table("orders"), opened(), report=two),
        ParquetState(table("orders"), opened(), report=chosen()),
    ]
    new, idle = plan_states(
        seen, InspectionRequest(destination, "shop", HERE, NO_OPTIONS), local=True
    )
    assert new.action == "LOAD"
    assert new.incremental == IncrementalPlan(2, 11, 3, 4, 0, len('{"n": 1}'), reload=False)
    assert idle.action == "NO_OP"


@pytest.mark.parametrize(
    ("prefix", "glue", "warned"),
    [("", True, True), (" ", True, True), ("supaflow", True, False), ("", False, False)],
)
def test_glue_without_a_database_prefix_warns_once(prefix: str, glue: bool, warned: bool) -> None:
    destination = DestinationSpec(
        "lake",
        "us-east-1",
        glue_database_prefix=prefix,
        parquet=ParquetSpec(update_glue_catalog=glue),
    )
    warnings = destination_warnings(destination)
    assert len(warnings) == warned
    assert all("`glue_database_prefix`" in warning for warning in warnings)
    assert to_document("shop", HERE, [], warnings)["warnings"] == list(warnings)


def test_a_table_without_new_rows_needs_spark_where_deleted_ones_are_looked_for() -> None:
    report = SourceReport(sentence="no new rows", idle=True)
    plain = table("orders")
    compared = dataclasses.replace(plain, max_deleted=RejectLimit(rows=1))
    start = Start(None, 0, None, first_run=False)

    for spec, idle in ((plain, True), (compared, False)):
        assert ParquetState(spec, opened(), report=report).idle is idle
        assert IcebergState(spec, start=start, report=report).idle is idle


def test_inspect_each_reports_each_table() -> None:
    reports: list[tuple[int, int]] = []
    tables = [table("orders"), table("lines")]

    def fail(spec: TableSpec) -> ParquetState:
        raise LoadFailed(spec.source)

    states = inspect_each(
        tables,
        fail,
        lambda spec, error: ParquetState(spec, error=error),
        lambda *at: reports.append(at),
    )
    assert [state.table.source for state in states] == ["orders", "lines"]
    assert reports == [(0, 2), (1, 2), (2, 2)]


def test_plan_of_a_table_with_a_leading_underscore_names_another_name() -> None:
    spec = dataclasses.replace(table("orders"), table="_04_sp500")
    request = InspectionRequest(
        DestinationSpec("my-data-lake", "eu-central-1"), "shop", HERE, NO_OPTIONS
    )
    (plan,) = plan_states([ParquetState(spec, opened())], request, local=False)
    (warning,) = plan.warnings
    assert "begins with `_`" in warning
    assert "set `name: t_04_sp500`" in warning
