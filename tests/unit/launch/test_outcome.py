"""Exit codes of finished tables."""

from __future__ import annotations

import pytest

from lakeload.launch.outcome import exit_code_of
from lakeload_jobs.contract.errors import ExitCode
from lakeload_jobs.contract.result import ErrorInfo, TableResult, TableStatus


def result(status: TableStatus, code: int | None = None) -> TableResult:
    error = None if code is None else ErrorInfo("SomeError", "it failed", code)
    return TableResult("orders", "shop.orders", status, error=error)


@pytest.mark.parametrize(
    ("tables", "code"),
    [
        ([], ExitCode.OK),
        ([result("LOADED"), result("NO_OP")], ExitCode.OK),
        ([result("LOADED"), result("LOADED_CATALOG_STALE")], ExitCode.FOLLOW_UP_FAILED),
        ([result("LOADED"), result("FAILED", 1)], ExitCode.TABLE_FAILED),
        ([result("LOADED_CATALOG_STALE"), result("FAILED", 1)], ExitCode.TABLE_FAILED),
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
