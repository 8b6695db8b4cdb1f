"""Jobs of the history, on the screen."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lakeload.config.secret_names import printable
from lakeload.history.day import HistoryJob, JobTable
from lakeload.ui.names import Name
from lakeload.ui.progress import STYLES
from lakeload_jobs.contract.errors import ExitCode
from lakeload_jobs.core.sizes import counted, minute

SHOWN_TABLES = 20
"""Tables of a job that are shown; JSON has all that are recorded."""


def show_job(job: HistoryJob, out: Console) -> None:
    """Write what became of a job and of its tables."""
    took = (job.ended_at - job.started_at).total_seconds()
    style = "green" if job.exit_code == ExitCode.OK else "red"
    code = f" with exit code {job.exit_code}" if job.failed else ""
    line = Text.assemble(
        (minute(job.ended_at), "bold"),
        f"  job {printable(job.job_id)}  pipeline {printable(job.pipeline)}  ",
        (f"{job.status}{code} after {took:.1f} s", style),
    )
    out.print(line, soft_wrap=True)
    if job.error is not None:
        out.print(Text(f"  {printable(job.error.message)}"), soft_wrap=True)
    grid = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    grid.add_column(width=0)
    grid.add_column(overflow="fold")
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for table in job.tables[:SHOWN_TABLES]:
        status = Text(table.status, STYLES.get(table.status, ""))
        grid.add_row("", Name(table.target), status, Text(_about(table)))
    if job.tables:
        out.print(grid)
    if left := len(job.tables[SHOWN_TABLES:]) + job.others:
        out.print(Text(f"  and {counted(left, 'other table')}", "dim"), soft_wrap=True)


def _about(table: JobTable) -> str:
    if table.error is not None:
        return printable(table.error.message)
    parts = [counted(table.rows, "row")] if table.rows else []
    parts += [f"{table.rejected:,} rejected"] if table.rejected else []
    parts += [f"{table.deleted:,} deleted"] if table.deleted else []
    return ", ".join(parts)
