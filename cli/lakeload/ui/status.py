"""The status of a pipeline's tables, as text or as one JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lakeload.config.secret_names import printable
from lakeload.documents.durations import format_duration
from lakeload.history.day import PipelineHealth
from lakeload.history.status import TableStatus
from lakeload.ui.json_documents import StatusDocument
from lakeload.ui.names import Name
from lakeload_jobs.contract.codec import format_instant, to_json
from lakeload_jobs.contract.errors import ExitCode
from lakeload_jobs.core.sizes import counted, minute

_STYLES = {"FRESH": "green", "NOT_LOADED": "dim", "STALE": "yellow", "FAILED": "red"}
_ORDER = tuple(reversed(_STYLES))


def to_document(
    pipeline: str,
    tables: Sequence[TableStatus],
    health: PipelineHealth | None,
    code: ExitCode,
    now: datetime,
) -> StatusDocument:
    """Return the JSON document of `status --output json`; keys are only ever added."""
    worst = next((word for word in _ORDER if any(one.status == word for one in tables)), "FRESH")
    return {
        "pipeline": pipeline,
        "status": worst,
        "exit_code": int(code),
        "checked_at": format_instant(now),
        "job": to_json(health),
        "tables": [
            {
                "target": one.target,
                "status": one.status,
                "freshness_seconds": int(one.freshness.total_seconds()) if one.freshness else None,
                "lag_seconds": round(one.lag.total_seconds(), 3) if one.lag is not None else None,
                "last": to_json(one.last),
            }
            for one in tables
        ],
    }


def show_text(tables: Sequence[TableStatus], out: Console, now: datetime) -> None:
    """Write a line for each table, the worst first."""
    grid = Table(box=None, pad_edge=False, header_style="bold", expand=False)
    grid.add_column("table", overflow="fold")
    for name in ("status", "last job", "lag"):
        grid.add_column(name, no_wrap=True)
    grid.add_column("")
    for one in sorted(tables, key=lambda one: _ORDER.index(one.status)):
        grid.add_row(
            Name(one.target),
            Text(one.status, _STYLES[one.status]),
            minute(one.last.ended_at) if one.last else "",
            _rounded(one.lag),
            Text(_about(one)),
        )
    out.print(grid)


def _rounded(lag: timedelta | None) -> str:
    """Return a lag to the minute, from a minute on."""
    if lag is None:
        return ""
    seconds = max(0.0, lag.total_seconds())
    return format_duration(timedelta(seconds=seconds if seconds < 60 else seconds // 60 * 60))


def _about(one: TableStatus) -> str:
    if one.last is None:
        return ""
    parts = [counted(one.last.failures, "failure")] if one.last.failures else []
    parts += [printable(one.last.error.message)] if one.last.error else []
    return ": ".join(parts)
