"""What a reset of Iceberg tables removes or would remove: on the screen, or as one document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from lakeload.config.secret_names import printable
from lakeload.formats.iceberg.reset import TableDrop
from lakeload.ui.amounts import counted
from lakeload.ui.errors import error_json
from lakeload.ui.troubles import say, show_trouble
from lakeload_jobs.contract.errors import ExitCode
from lakeload_jobs.core.sizes import format_size

SHOWN = 10


def to_document(found: Sequence[TableDrop], code: ExitCode, *, done: bool) -> dict[str, Any]:
    """Return the JSON document of `reset --output json`; keys are only ever added."""
    return {
        "exit_code": int(code),
        "done": done,
        "tables": [_document(table) for table in found],
    }


def show_text(
    found: Sequence[TableDrop], command: str, out: Console, err: Console, *, done: bool
) -> None:
    """Write what goes and what stays to stdout; errors, and how to go on, to stderr."""
    for table in found:
        if table.files is not None or table.error is None:
            out.print(Text(printable(table.target), "bold"), soft_wrap=True)
            for line in _lines(table):
                out.print(Text(f"  {printable(line)}"), soft_wrap=True)
    for table in found:
        if table.error is not None:
            show_trouble(err, table.target, table.error)
    if not done and any(table.files is not None for table in found):
        say(err, "note", f"nothing was removed; to do it: `{command}`")


def _lines(table: TableDrop) -> list[str]:
    files = table.files
    if files is None:
        return ["there is no such table"]
    holds = f"{counted(table.rows, 'row')} in {counted(table.snapshots, 'snapshot')}"
    if table.removal is None:
        amount = f"{counted(len(files.data), 'file')} of rows, {format_size(files.bytes)}"
        lines = [
            f"would drop the table from the catalog: {holds}",
            f"would remove {amount}, and {counted(len(files.metadata), 'file')} of metadata",
        ]
        if table.ledger:
            lines.append(f"would remove {counted(len(table.ledger), 'list')} of loaded files")
    else:
        lines = [
            f"dropped the table from the catalog: {holds}",
            f"removed {counted(table.removal.removed, 'file')}: {format_size(files.bytes)} of "
            "rows, and metadata",
        ]
    if files.elsewhere:
        many = counted(len(files.elsewhere), "file")
        lines.append(f"left alone, as it is not below `{table.location}`: {many}")
        lines += [f"  {place}" for place in files.elsewhere[:SHOWN]]
    return lines


def _document(table: TableDrop) -> dict[str, Any]:
    files, removal = table.files, table.removal
    return {
        "target": table.target,
        "location": table.location or None,
        "snapshots": table.snapshots,
        "rows": table.rows,
        "plan": None
        if files is None
        else {
            "data_files": list(files.data),
            "bytes": files.bytes,
            "metadata_files": list(files.metadata),
            "left": list(files.elsewhere),
            "ledger": list(table.ledger),
        },
        "dropped": table.dropped,
        "removed": None
        if removal is None
        else {"files": removal.removed, "left": list(removal.left)},
        "error": error_json(table.error) if table.error else None,
    }
