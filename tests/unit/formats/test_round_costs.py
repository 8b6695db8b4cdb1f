"""What rounds cost in a day: tables that are read whole, and files that are not compacted."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from lakeload.formats.iceberg.inspect import IcebergState
from lakeload.formats.inspection import InspectionRequest
from lakeload.formats.parquet.inspect import ParquetState
from lakeload.formats.plan import DeletesPlan, plan_table
from lakeload.formats.round_costs import plan_rounds
from lakeload.launch.spec import Attempt
from lakeload.sources.report import SourceReport
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import (
    NO_OPTIONS,
    DestinationSpec,
    FilesInput,
    JdbcInput,
    RejectLimit,
    TableSpec,
)
from tests.unit.launch.specs import ATTEMPT, SYNCED, table

HERE = Attempt("job-1", ATTEMPT, SYNCED)
MINUTE = timedelta(minutes=1)
GIB = 1 << 30


def of_database(*, incremental: bool, **changes: object) -> TableSpec:
    read = JdbcInput("POSTGRESQL", "db", 5432, "shop", "public", "orders", incremental=incremental)
    return replace(table("orders"), input=read, **changes)  # type: ignore[arg-type]


def test_table_that_is_replaced_each_minute_costs_its_size_1440_times() -> None:
    report = SourceReport(all_rows=1_000_000, all_bytes=GIB)
    state = IcebergState(of_database(incremental=False, mode="OVERWRITE"), report=report)
    costs = plan_rounds(state, MINUTE, "ICEBERG")

    assert costs is not None
    assert costs.warnings == (
        "`mode: OVERWRITE` without `cursor` reads the whole table in each round: 1.0 GiB, "
        "1,440 times a day, are 1.4 TiB a day; a longer interval costs less",
    )
    assert costs.notes == ()


@pytest.mark.parametrize(("size", "warned"), [(7 << 20, False), (8 << 20, True)])
def test_small_tables_may_be_read_whole(size: int, *, warned: bool) -> None:
    report = SourceReport(all_bytes=size)
    state = IcebergState(of_database(incremental=False, mode="UPSERT"), report=report)
    costs = plan_rounds(state, MINUTE, "ICEBERG")

    assert costs is not None
    assert bool(costs.warnings) is warned


def test_comparing_keys_reads_all_of_a_table_of_which_little_is_new() -> None:
    compared = of_database(incremental=True, max_deleted=RejectLimit(rows=5), cursor="id")
    report = SourceReport(rows=1, bytes=100, all_rows=9, all_bytes=GIB)
    state = IcebergState(compared, report=report)
    costs = plan_rounds(state, MINUTE, "ICEBERG")

    assert costs is not None
    assert costs.warnings[0].startswith("`detect_deletes` reads the whole table in each round: 1.0")
    request = InspectionRequest(
        DestinationSpec("my-data-lake", "us-east-1", table_format="ICEBERG"),
        "shop",
        HERE,
        NO_OPTIONS,
    )
    planned = plan_table(state, request, local=True)
    assert planned.estimated_rows == 1
    assert planned.detect_deletes == DeletesPlan(source_rows=9, max_deleted="5")


def test_files_that_are_not_compacted_are_warned_of_below_five_minutes() -> None:
    read = FilesInput("CSV", ("a.csv",), {}, incremental=True)
    state = ParquetState(replace(table("orders"), input=read))
    often, seldom = plan_rounds(state, MINUTE, "PARQUET"), plan_rounds(state, 5 * MINUTE, "PARQUET")

    assert often is not None
    assert "1,440 data files and 1,440 commit records a day" in often.warnings[0]
    assert seldom is not None
    assert seldom.warnings == ()
    assert seldom.notes == (
        "rounds may leave 288 data files and 288 commit records a day, which are not compacted",
    )


def test_nothing_is_said_without_an_interval_or_of_a_table_that_cannot_be_loaded() -> None:
    state = IcebergState(of_database(incremental=False, mode="OVERWRITE"))

    assert plan_rounds(state, None, "ICEBERG") is None
    assert plan_rounds(replace(state, error=LoadFailed("no table")), MINUTE, "ICEBERG") is None
