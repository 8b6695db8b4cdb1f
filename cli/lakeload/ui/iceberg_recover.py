"""What a recovery of Iceberg tables did or would do: on the screen, or as one JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lakeload.config.secret_names import printable
from lakeload.formats.iceberg.recover import BranchRecovery
from lakeload.ui.amounts import minute
from lakeload.ui.errors import error_json
from lakeload.ui.recover import STYLES
from lakeload.ui.troubles import say, show_trouble
from lakeload_jobs.contract.codec import format_instant
from lakeload_jobs.contract.errors import ExitCode
from lakeload_jobs.formats.iceberg.orphan_branches import LeftBranch


def to_document(
    found: Sequence[BranchRecovery], code: ExitCode, *, dry_run: bool
) -> dict[str, Any]:
    """Return the JSON document of `recover --output json`; keys are only ever added."""
    return {
        "exit_code": int(code),
        "dry_run": dry_run,
        "tables": [
            {
                "target": table.target,
                "status": table.status,
                "exists": table.exists,
                "branches": [_branch(left) for left in table.dropped],
                "younger_branches": [_branch(left) for left in table.younger],
                "errors": [error_json(table.error)] if table.error else [],
                "warnings": [],
            }
            for table in found
        ],
    }


def show_text(
    found: Sequence[BranchRecovery], out: Console, err: Console, *, dry_run: bool
) -> None:
    """Write each table with what was done to stdout, what went wrong to stderr."""
    grid = Table(box=None, pad_edge=False, header_style="bold")
    grid.add_column("table", overflow="fold")
    grid.add_column("status", no_wrap=True)
    grid.add_column("what would be done" if dry_run else "what was done", overflow="fold")
    for table in found:
        grid.add_row(
            Text(printable(table.target)),
            Text(table.status, STYLES[table.status]),
            Text(_action(table)),
        )
    out.print(grid)
    for table in found:
        for left in table.dropped:
            _show_branch(table, left, "would go" if dry_run else "gone", out)
        for left in table.younger:
            _show_branch(table, left, "stays: too young", out)
        if table.error is not None:
            show_trouble(err, table.target, table.error)
    say(err, "note", "an Iceberg table shows a whole job or none: only branches can be left")
    if dry_run:
        say(err, "note", "nothing was written")


def _action(table: BranchRecovery) -> str:
    if table.error is not None:
        return "could not be recovered"
    if not table.exists:
        return "there is no such table yet"
    if not table.dropped:
        return "nothing to do"
    branches = f"{len(table.dropped):,} branch" + "es" * (len(table.dropped) != 1)
    return f"{'would drop' if table.dry_run else 'dropped'} {branches} of dead runs"


def _show_branch(table: BranchRecovery, left: LeftBranch, what: str, out: Console) -> None:
    for text in (
        f"{table.target}: branch of {minute(left.created_at)}: {what}",
        f"  attempt {left.attempt}",
    ):
        out.print(Text(printable(text), "dim"), soft_wrap=True)


def _branch(left: LeftBranch) -> dict[str, Any]:
    return {
        "name": left.name,
        "attempt_id": left.attempt,
        "created_at": format_instant(left.created_at),
        "snapshot_id": left.snapshot_id,
    }
