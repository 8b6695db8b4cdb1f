"""Report of a reset or its dry run, as text or as one JSON document."""

from __future__ import annotations

from typing import cast

from rich.console import Console
from rich.text import Text

from lakeload.config.secret_names import printable
from lakeload.formats.reports import ResetReport, ResetTable
from lakeload.ui.errors import error_json, say, show_trouble
from lakeload.ui.json_documents import ResetDocument, ResetTableDocument
from lakeload_jobs.contract.codec import to_json


def to_document(report: ResetReport) -> ResetDocument:
    """Return the JSON document of `reset --output json`; keys are only ever added."""
    return {
        "exit_code": int(report.exit_code),
        "done": report.done,
        "tables": [_table_document(table) for table in report.tables],
    }


def _table_document(table: ResetTable) -> ResetTableDocument:
    document = {
        "target": table.target,
        **to_json(table.document),
        "error": error_json(table.error) if table.error else None,
    }
    return cast(ResetTableDocument, document)


def show_text(report: ResetReport, command: str, out: Console, err: Console) -> None:
    """Write what goes and what stays to stdout; errors, and how to go on, to stderr."""
    for table in report.tables:
        if table.lines:
            out.print(Text(printable(table.target), "bold"), soft_wrap=True)
        for line in table.lines:
            out.print(Text(f"  {printable(line)}"), soft_wrap=True)
        for line in table.kept:
            out.print(Text(f"  {printable(line)}", "dim"), soft_wrap=True)
    for table in report.tables:
        if table.error is not None:
            show_trouble(err, table.target, table.error)
    if not report.done and any(table.pending for table in report.tables):
        say(err, "note", f"nothing was removed; to apply: `{command}`")
