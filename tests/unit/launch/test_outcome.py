"""Exit codes of finished tables, and what is said of those that no result tells about."""

from __future__ import annotations

import signal

import pytest

from lakeload.launch.outcome import (
    NOTHING_COMMITTED,
    Cause,
    Ending,
    Observed,
    ResultProblem,
    decide,
    exit_code_of,
    native_end,
)
from lakeload_jobs.contract.errors import ExitCode
from lakeload_jobs.contract.events import Event
from lakeload_jobs.contract.result import ErrorInfo, RunResult, TableResult, TableStatus
from lakeload_jobs.contract.traits import FORMATS
from tests.unit.launch.specs import SYNCED, table


def result(status: TableStatus, code: int | None = None) -> TableResult:
    error = None if code is None else ErrorInfo("SomeError", "it failed", code)
    return TableResult("orders", "shop.orders", status, error=error)


@pytest.mark.parametrize(
    ("tables", "code"),
    [
        ([], ExitCode.OK),
        ([result("LOADED"), result("NO_OP")], ExitCode.OK),
        ([result("LOADED"), result("LOADED_CATALOG_OUT_OF_DATE")], ExitCode.FOLLOW_UP_FAILED),
        ([result("LOADED"), result("FAILED", 1)], ExitCode.TABLE_FAILED),
        ([result("LOADED_CATALOG_OUT_OF_DATE"), result("FAILED", 1)], ExitCode.TABLE_FAILED),
        ([result("LOADED"), result("FAILED", 2)], ExitCode.INVALID),
        ([result("FAILED", 2), result("FAILED", 1)], ExitCode.TABLE_FAILED),
        ([result("FAILED", 3)], ExitCode.TABLE_FAILED),
        ([result("FAILED", 4)], ExitCode.MACHINE),
        ([result("FAILED", 70)], ExitCode.BUG),
        ([result("FAILED", 70), result("FAILED", 1)], ExitCode.TABLE_FAILED),
        ([result("SKIPPED")], ExitCode.TABLE_FAILED),
        ([result("LOADED"), result("INTERRUPTED", 130)], ExitCode.INTERRUPTED),
    ],
)
def test_the_tables_decide_the_exit_code(tables: list[TableResult], code: ExitCode) -> None:
    assert exit_code_of(tables) == code


def test_interrupted_iceberg_commit_reports_committed_or_not() -> None:
    observed = Observed(opened=True, stages={"orders": "commit"}, committing={"orders"})
    maybe = FORMATS["ICEBERG"].commit_unknown
    outcome = decide(
        Ending(143, signal.SIGTERM),
        ResultProblem("no result", missing=True),
        observed,
        [table("orders"), table("customers")],
        Cause("stopped", None, ExitCode.TABLE_FAILED),
        maybe=maybe,
    )
    assert outcome.exit_code == ExitCode.INTERRUPTED
    assert outcome.error is not None
    assert outcome.error.message == f"stopped by SIGTERM: `orders` is {maybe}"
    said = [one.error.message for one in outcome.tables if one.error]
    assert said == [maybe, NOTHING_COMMITTED]


NO_CAUSE = Cause("stopped", None, ExitCode.TABLE_FAILED)


@pytest.mark.parametrize(
    ("status", "code"), [("LOADED", 0), ("NO_OP", 0), ("LOADED_CATALOG_OUT_OF_DATE", 5)]
)
def test_stop_after_the_result_leaves_a_finished_load_as_it_is(
    status: TableStatus, code: int
) -> None:
    done = RunResult(1, "j", "a", "SUCCEEDED", SYNCED, SYNCED, (result(status),))
    # The signal that reaches the job ends the JVM, whose status is that of spark-submit.
    ending = Ending(143, signal.SIGTERM)
    outcome = decide(ending, done, Observed(), [table("orders")], NO_CAUSE, maybe="maybe")
    assert (outcome.kind, outcome.exit_code, outcome.error) == ("LOADED", code, None)


def test_stopped_commit_whose_result_was_lost_is_not_called_uncommitted() -> None:
    observed = Observed()
    observed.note(Event("stage", SYNCED, table="orders", stage="commit"))
    message = "stopped during the commit: the next sync or `recover` finishes it"
    observed.note(Event("table", SYNCED, table="orders", name="INTERRUPTED", message=message))
    lost, ending = ResultProblem("no result", missing=True), Ending(-9, signal.SIGTERM, killed=True)
    outcome = decide(ending, lost, observed, [table("orders")], NO_CAUSE, maybe="maybe")
    assert [one.error.message for one in outcome.tables if one.error] == [message]
    assert outcome.error is not None
    assert outcome.error.message.endswith("`orders` is maybe")


def test_stop_during_a_commit_that_failed_is_not_called_uncommitted() -> None:
    error = ErrorInfo("JavaGone", "Spark's Java process ended during the commit", 4, stage="commit")
    failed = TableResult("orders", "shop.orders", "FAILED", error=error)
    done = RunResult(1, "j", "a", "FAILED", SYNCED, SYNCED, (failed,))
    ending = Ending(143, signal.SIGTERM)
    outcome = decide(ending, done, Observed(), [table("orders")], NO_CAUSE, maybe="maybe")
    assert outcome.error is not None
    assert NOTHING_COMMITTED not in outcome.error.message


@pytest.mark.parametrize("status", [134, -6, 139, -11])
def test_driver_that_native_code_ends_is_told_with_its_file(status: int) -> None:
    cause = native_end(status, True, ("/data/a.parquet",))

    assert cause is not None
    assert "while it read `/data/a.parquet`" in cause.message
    assert native_end(status, False, ()) is None
    assert native_end(1, True, ()) is None
    assert native_end(-9, True, ()) is None
