"""Ages, exit codes and the order of jobs: what the commands decide without asking anybody."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakeload.commands.options import parse_age
from lakeload.formats.parquet import recover as void_accept
from lakeload.formats.parquet.recover import recovered
from lakeload.formats.parquet.runs import table_run
from lakeload.formats.parquet.tables import ParquetTables
from lakeload.formats.reports import Resolution, RunsReport, TableError, by_job
from lakeload.formats.tables import TableRef
from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import (
    ExitCode,
    FollowUpFailed,
    InvalidInput,
    LoadFailed,
    Refused,
)
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log.recovery import Damaged, TableRecovery
from lakeload_jobs.formats.parquet.log.roll_forward import Pending, Settler
from lakeload_jobs.storage.backoff import Waits
from lakeload_jobs.storage.objects import Objects
from tests.unit.formats.parquet.runs import make_run

LOCATION = TableLocation("lake", "shop", "orders")
AT = datetime(2026, 11, 21, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", timedelta(0)),
        ("45s", timedelta(seconds=45)),
        ("90m", timedelta(minutes=90)),
        ("24h", timedelta(days=1)),
        (" 2d ", timedelta(days=2)),
    ],
)
def test_an_age_is_a_number_and_a_unit(text: str, expected: timedelta) -> None:
    assert parse_age("--abort-older-than", text) == expected


@pytest.mark.parametrize("text", ["", "24", "-1h", "1.5h", "1w", "PT24H", "٣h", "9999999d"])
def test_invalid_age_is_rejected(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_age("--abort-older-than", text)
    assert "--abort-older-than" in caught.value.message
    assert "24h" in (caught.value.hint or "")


@given(st.integers(0, 999_999), st.sampled_from("smhd"))
def test_every_number_of_units_is_an_age(number: int, unit: str) -> None:
    assert parse_age("--abort-older-than", f"{number}{unit}") >= timedelta(0)


DAMAGED = (Damaged(1, "shop", "job-1", 3, ("a",), 1),)
PENDING = (Pending(1, "shop", "job-1", 3, 1, "publish"),)
DENIED = AwsError("listing the open uploads", code="AccessDenied", status=403)


@pytest.mark.parametrize(
    ("found", "status", "code"),
    [
        (TableRecovery(LOCATION), "UP_TO_DATE", ExitCode.OK),
        (TableRecovery(LOCATION, PENDING), "RECOVERED", ExitCode.OK),
        (TableRecovery(LOCATION, damaged=DAMAGED), "DAMAGED", ExitCode.TABLE_FAILED),
        (TableRecovery(LOCATION, error=Refused("denied")), "FAILED", ExitCode.REFUSED),
        (TableRecovery(LOCATION, error=LoadFailed("gap")), "FAILED", ExitCode.TABLE_FAILED),
        (TableRecovery(LOCATION, uploads_error=Refused("no answer")), "FAILED", ExitCode.REFUSED),
        (TableRecovery(LOCATION, uploads_error=DENIED), "UP_TO_DATE", ExitCode.OK),
        (TableRecovery(LOCATION, PENDING, uploads_error=DENIED), "RECOVERED", ExitCode.OK),
        (
            TableRecovery(LOCATION, PENDING, catalog_error=LoadFailed("another table")),
            "CATALOG_OUT_OF_DATE",
            ExitCode.FOLLOW_UP_FAILED,
        ),
        (
            TableRecovery(LOCATION, damaged=DAMAGED, uploads_error=Refused("denied")),
            "DAMAGED",
            ExitCode.TABLE_FAILED,
        ),
    ],
)
def test_status_of_a_table_is_its_worst(found: TableRecovery, status: str, code: ExitCode) -> None:
    recovery = recovered("shop.orders", found)
    assert (recovery.status, recovery.exit_code) == (status, code)
    assert recovery.warnings == ((DENIED,) if found.uploads_error is DENIED else ())
    assert DENIED not in recovery.errors


def test_recover_dry_run_reports_unfinished_work() -> None:
    found = TableRecovery(LOCATION, PENDING)
    assert recovered("shop.orders", found, dry_run=True).status == "UNFINISHED"


@pytest.mark.parametrize(
    ("errors", "code"),
    [
        ([], ExitCode.OK),
        ([Refused("denied")], ExitCode.REFUSED),
        ([Refused("denied"), LoadFailed("gap")], ExitCode.TABLE_FAILED),
        ([FollowUpFailed("odd")], ExitCode.FOLLOW_UP_FAILED),
    ],
)
def test_a_history_that_cannot_be_read_says_why(
    errors: list[Refused | LoadFailed], code: ExitCode
) -> None:
    troubles = tuple(TableError("shop.orders", error) for error in errors)
    assert RunsReport((), troubles).exit_code is code


def test_jobs_are_grouped_by_pipeline_and_id_and_ordered_by_their_newest_table() -> None:
    first = make_run("monday", AT)
    again = make_run("monday", AT + timedelta(hours=3))
    other = make_run("monday", AT + timedelta(hours=1), pipeline="other")
    later = make_run("tuesday", AT + timedelta(hours=2))
    found = by_job(
        [
            table_run("shop.orders", first),
            table_run("shop.visits", other),
            table_run("shop.orders", later),
            table_run("shop.items", again),
        ]
    )
    assert [(job.pipeline, job.job_id) for job in found] == [
        ("shop", "monday"),
        ("shop", "tuesday"),
        ("other", "monday"),
    ]
    assert [table.target for table in found[0].tables] == ["shop.items", "shop.orders"]
    assert found[0].committed_at == AT + timedelta(hours=3)


def test_within_one_second_of_s3_the_authors_clock_orders_jobs() -> None:
    early = make_run("early", AT, created_at=AT - timedelta(milliseconds=9))
    late = make_run("late", AT, created_at=AT - timedelta(milliseconds=1))
    found = by_job([table_run("shop.zebras", early), table_run("shop.apes", late)])
    assert [job.job_id for job in found] == ["late", "early"]


def test_slow_operation_is_reported_with_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow:
        def __init__(self, settler: Settler, *_: object) -> None:
            self.settler = settler

        def void(self) -> str:
            self.settler.notify("checking again in 15 min")
            return "void"

    monkeypatch.setattr(void_accept, "ManualResolution", Slow)
    told: list[str] = []
    lake = ParquetTables(cast("Objects", SimpleNamespace(waits=Waits())), None, 1, told.append)
    cases = [
        Resolution(TableRef(name, LOCATION), 1, "shop", "job-1", (), ())
        for name in ("shop.orders", "shop.visits")
    ]
    assert [case.outcome for case in void_accept.decide(lake, cases, "void")] == ["void", "void"]
    assert sorted(told) == [
        f"shop.{name}: checking again in 15 min" for name in ("orders", "visits")
    ]
