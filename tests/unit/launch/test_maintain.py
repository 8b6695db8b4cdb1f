"""What became of a maintenance, from how Spark ended and what the job wrote."""

from __future__ import annotations

import signal
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lakeload.commands.maintain import maintained_tables
from lakeload.launch.outcome import Cause, Ending, Observed, ResultProblem
from lakeload.launch.run import Ended, decide_maintenance, exit_code_of
from lakeload_jobs.contract.errors import ExitCode
from lakeload_jobs.contract.maintain import (
    MaintainResult,
    MaintainSpec,
    StepResult,
    StepStatus,
    TableMaintenance,
)
from lakeload_jobs.contract.result import ErrorInfo, RunStatus
from lakeload_jobs.contract.spec import DestinationSpec, IcebergSpec, OnBadValue
from tests.unit.launch import specs

AT = datetime(2026, 11, 21, tzinfo=UTC)


def table(*steps: tuple[StepStatus, int | None], code: int | None = None) -> TableMaintenance:
    """Return a table whose steps ended so, each with the exit code of its error."""
    results = tuple(
        StepResult("compact", status, error=None if number is None else error(number))
        for status, number in steps
    )
    return TableMaintenance(
        "orders", "shop.orders", results, error=None if code is None else error(code)
    )


def error(code: int) -> ErrorInfo:
    return ErrorInfo("SomeError", "it failed", code)


@pytest.mark.parametrize(
    ("tables", "code"),
    [
        ([], ExitCode.OK),
        ([table(("DONE", None), ("NOTHING_TO_DO", None))], ExitCode.OK),
        ([table(("WOULD_DO", None), ("UNSUPPORTED", None))], ExitCode.OK),
        ([table(("DONE", None), ("CONFLICT", 5))], ExitCode.FOLLOW_UP_FAILED),
        ([table(("CONFLICT", 5)), table(("FAILED", 1))], ExitCode.TABLE_FAILED),
        ([table(("FAILED", 3)), table(code=3)], ExitCode.REFUSED),
        ([table(("FAILED", 2)), table(code=3)], ExitCode.TABLE_FAILED),
        ([table(("DONE", None), ("FAILED", 4))], ExitCode.MACHINE),
    ],
)
def test_the_steps_decide_the_exit_code(tables: list[TableMaintenance], code: ExitCode) -> None:
    assert exit_code_of(tables) == code


def result(status: RunStatus = "SUCCEEDED", code: int | None = None) -> MaintainResult:
    done = (table(("DONE", None)),)
    return MaintainResult(1, "j", "a", status, AT, AT, done, None if code is None else error(code))


def ended(status: int, stopped_by: signal.Signals | None = None) -> Ended:
    cause = Cause("Java ran out of memory", "more", ExitCode.MACHINE)
    return Ended(Ending(status, stopped_by), Observed(opened=True), cause)


NO_RESULT = ResultProblem("Spark finished but reported no result", missing=True)


@pytest.mark.parametrize(
    ("end", "wrote", "code", "status"),
    [
        (ended(0), result(), ExitCode.OK, "SUCCEEDED"),
        (ended(0, signal.SIGINT), result(), ExitCode.OK, "SUCCEEDED"),
        (ended(143, signal.SIGTERM), result(), ExitCode.OK, "SUCCEEDED"),
        (ended(130, signal.SIGINT), result("FAILED", 130), ExitCode.INTERRUPTED, "INTERRUPTED"),
        (ended(-9, signal.SIGTERM), NO_RESULT, ExitCode.INTERRUPTED, "INTERRUPTED"),
        (ended(3), result("FAILED", 3), ExitCode.REFUSED, "FAILED"),
        (ended(0), NO_RESULT, ExitCode.TABLE_FAILED, "FAILED"),
        (ended(1), NO_RESULT, ExitCode.MACHINE, "FAILED"),
        (ended(1), result(), ExitCode.FOLLOW_UP_FAILED, "FAILED"),
    ],
)
def test_success_takes_two_signals_that_agree(
    end: Ended, wrote: MaintainResult | ResultProblem, code: ExitCode, status: str
) -> None:
    found = decide_maintenance(end, wrote)
    assert (found.exit_code, found.status) == (code, status)
    assert found.tables == (wrote.tables if isinstance(wrote, MaintainResult) else ())
    assert (found.error is None) == (status == "SUCCEEDED")


def test_side_tables_are_maintained_with_their_tables() -> None:
    destination, wanted = DestinationSpec("lake", "us-east-1"), MaintainSpec(())

    def names(on_bad_value: OnBadValue, wanted: MaintainSpec, branch: str = "main") -> list[str]:
        place = replace(destination, iceberg=IcebergSpec(branch=branch))
        found = maintained_tables([specs.table("orders")], on_bad_value, place, wanted)
        return [one.target for one in found]

    assert names("QUARANTINE", wanted) == ["shop.orders", "shop.orders_rejected"]
    assert names("FAIL", wanted) == ["shop.orders"]
    assert names("QUARANTINE", MaintainSpec((), where="id > 1")) == ["shop.orders"]
    assert names("QUARANTINE", wanted, "audit") == ["shop.orders"]


@pytest.mark.parametrize(
    ("pipeline", "own", "side"), [("FAIL", "QUARANTINE", True), ("QUARANTINE", "NULL", False)]
)
def test_the_own_setting_of_a_table_says_whether_it_has_a_side_table(
    pipeline: OnBadValue, own: OnBadValue, side: bool
) -> None:
    table = replace(specs.table("orders"), on_bad_value=own)

    found = maintained_tables([table], pipeline, DestinationSpec("lake", "r"), MaintainSpec(()))

    assert [one.target for one in found] == ["shop.orders", "shop.orders_rejected"][: 1 + side]
