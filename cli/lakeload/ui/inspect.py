"""Report of `inspect`, as text or as one JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lakeload.config.secret_names import printable
from lakeload.init.table_settings import TableFiles, shared_source, source_lines, table_lines
from lakeload.ui.errors import error_json, say, show_trouble
from lakeload.ui.guesses import CONFIDENCE, TableGuess, guess_document, plain, say_guesses
from lakeload.ui.json_documents import InspectDocument, InspectedDocument
from lakeload_jobs.core.sizes import counted, format_size

if TYPE_CHECKING:
    from lakeload.sources.files.formats.base import Guess, OptionValue
    from lakeload.sources.files.inspected_tables import InspectedTable

_COLUMNS_SHOWN = 60
_VALUE_WIDTH = 40
_PATHS_SHOWN = 3


def to_document(tables: Sequence[InspectedTable]) -> InspectDocument:
    """Return the JSON document of `inspect --output json`; keys are only ever added."""
    return {"tables": [_table_document(table) for table in tables]}


def _table_document(table: InspectedTable) -> InspectedDocument:
    first = table.first
    return {
        "table": table.name,
        "paths": list(table.paths),
        "files": table.files,
        "bytes": table.bytes,
        "format": table.format,
        "compression": first.compression,
        "encoding": first.encoding,
        "layout": first.layout,
        "options": {name: plain(value) for name, value in table.options.items()},
        "guesses": [guess_document(guess) for guess in table.guesses],
        "rename": table.rename,
        "columns": [{"name": name, "type": kind} for name, kind in table.columns.items()],
        "rows": list(table.rows),
        "rows_read": table.rows_read,
        "complete": table.complete,
        "warnings": list(table.warnings),
        "error": None if table.error is None else error_json(table.error),
    }


def show_text(
    tables: Sequence[InspectedTable], out: Console, err: Console, *, quiet: bool = False
) -> None:
    """Write what was found to stdout, and the errors of a load to stderr."""
    for place, table in enumerate(tables):
        if place:
            out.print()
        out.print(Text(_title(table), "bold"), soft_wrap=True)
        for line in _summary(table):
            out.print(Text(f"  {printable(line)}"), soft_wrap=True)
        if table.guesses:
            out.print(_guesses(table.guesses))
        if table.columns:
            out.print()
            out.print(_columns(table, out))
            if (more := len(table.columns) - _COLUMNS_SHOWN) > 0:
                out.print(Text(f"  … and {more:,} more columns"), soft_wrap=True)
        for warning in table.warnings:
            say(err, "warning", f"{table.name}: {warning}")
        if table.error is not None:
            show_trouble(err, "", table.error)
    good = [table for table in tables if table.error is None]
    if good and not quiet:
        out.print()
        out.print(Text("in a pipeline:", "bold"))
        for line in pipeline_lines(good):
            out.print(Text(line), soft_wrap=True)
    say_guesses([TableGuess(table.name, guess) for table in good for guess in table.guesses], err)


def _title(table: InspectedTable) -> str:
    shown = ", ".join(printable(path) for path in table.paths[:_PATHS_SHOWN])
    more = len(table.paths) - _PATHS_SHOWN
    return shown + (f" and {more:,} more" if more > 0 else "")


def _summary(table: InspectedTable) -> Iterator[str]:
    first = table.first
    facts: list[str] = [table.format or "no known format"]
    facts += [first.compression] if first.compression else []
    facts += [first.encoding] if first.encoding and first.encoding != "UTF-8" else []
    if table.files > 1:
        facts.append(counted(table.files, "file"))
    facts.append(format_size(table.bytes))
    if table.error is None and table.columns:
        facts.append(counted(len(table.columns), "column"))
    if table.rows_read and table.complete:
        facts.append(counted(table.rows_read, "row"))
    yield ", ".join(facts)
    if first.layout:
        yield first.layout
    if table.rows_read and not table.complete:
        where = "" if table.files == 1 else f" of {counted(len(table.inspected), 'file')}"
        yield f"types come from the first {counted(table.rows_read, 'row')}{where}"


def _guesses(guesses: Sequence[Guess]) -> Table:
    grid = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold", style="dim")
    for guess in guesses:
        sure = CONFIDENCE[guess.confidence]
        reason = f"{sure}: {guess.reason}" if sure else guess.reason
        shown = _option_text(guess.value)
        grid.add_row(f"  {guess.option}", Text(printable(shown)), Text(printable(reason)))
    return grid


def _option_text(value: OptionValue) -> str:
    if isinstance(value, str) and (not value or not value.replace("\\", "")[:1].isalnum()):
        return f'"{value}"'
    if isinstance(value, tuple):
        return ", ".join(map(_option_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _columns(table: InspectedTable, out: Console) -> Table:
    """Return columns, types and the first values, a column on each line."""
    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    grid.add_column("  column", no_wrap=True, overflow="ellipsis", max_width=28)
    grid.add_column("type", no_wrap=True, overflow="ellipsis", max_width=24)
    rows = table.rows
    shown = list(table.columns.items())[:_COLUMNS_SHOWN]
    taken = min(28, max(len(name) for name, _ in shown) + 2) + 2
    taken += min(24, max(len(kind) for _, kind in shown)) + 2
    width = max(6, min(_VALUE_WIDTH, (out.width - taken) // max(len(rows), 1) - 2))
    for number in range(1, len(rows) + 1):
        grid.add_column(f"row {number}", no_wrap=True, overflow="ellipsis", max_width=width)
    for name, kind in shown:
        grid.add_row(
            Text(f"  {printable(name)}"),
            Text(printable(kind)),
            *[_value(row.get(name)) for row in rows],
        )
    return grid


def _value(value: str | None) -> Text:
    if value is None:
        return Text("null", "dim")
    if value.startswith(("{", "[")):
        value = " ".join(value.split())
    return Text(printable(value if len(value) <= _VALUE_WIDTH else f"{value[:_VALUE_WIDTH]}…"))


def pipeline_lines(tables: Sequence[InspectedTable]) -> Iterator[str]:
    """Yield `source` and `tables` of a pipeline that loads the tables."""
    settings = [
        TableFiles(
            table.name,
            table.paths,
            table.format or "",
            table.options,
            rename=table.rename,
            dates=table.dates,
        )
        for table in tables
    ]
    shared = shared_source(settings)
    yield from source_lines(shared)
    yield "tables:"
    for table in settings:
        yield from table_lines(table, shared)
