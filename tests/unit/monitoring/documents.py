"""Documents of `sync --output json`, made as the command makes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from lakeload.launch.outcome import Outcome, OutcomeKind, exit_code_of
from lakeload.launch.timings import Share, TableTime, WallTime
from lakeload.ui.summary import Summary, to_document
from lakeload_jobs.contract.errors import ExitCode, Refused
from lakeload_jobs.contract.result import ErrorInfo, TableResult
from lakeload_jobs.contract.usage import Usage

AT = datetime(2026, 11, 27, 12, tzinfo=UTC)
ERROR = ErrorInfo("LoadFailed", "reading `a.csv`, row 2: bad", 1, "correct it", "stage")
LOADED = TableResult("orders", "lake.orders", "LOADED", 3, 90, 1.5, file_count=2)
IDLE = TableResult("orders", "lake.orders", "NO_OP")
FAILED = TableResult("orders", "lake.orders", "FAILED", error=ERROR)
USAGE = Usage(2.5, 1 << 20, {"s3.GetObject": 4})
TIMES = WallTime(
    4.0,
    (Share("start", 0.5), Share("tables", 3.5)),
    (TableTime("orders", 3.0, (Share("count", 1.0), Share("stage", 2.0))),),
)


def document(
    *tables: TableResult,
    at: datetime = AT,
    job: str = "job-1",
    times: WallTime = TIMES,
    refused: Refused | None = None,
) -> dict[str, Any]:
    """Return the document of a job of four seconds."""
    code = exit_code_of(tables) if refused is None else refused.exit_code
    error = None if refused is None else ErrorInfo.of(refused)
    kind: OutcomeKind = "FAILED"
    if code in (ExitCode.OK, ExitCode.INTERRUPTED):
        kind = "LOADED" if code == ExitCode.OK else "INTERRUPTED"
    outcome = Outcome(kind, code, tables, error)
    made = to_document(
        Summary(
            job, f"{job}-a", "shop", "bucket", at, 4.0, outcome, Path("/runs/spark.log"), times,
            USAGE,
        )
    )  # fmt: skip
    return dict(made)


def later(minutes: float) -> datetime:
    """Return a time after `AT`."""
    return AT + timedelta(minutes=minutes)
