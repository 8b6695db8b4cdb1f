"""Progress of a running load on stderr: live on a terminal, one line a stage elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from lakeload.config.secret_names import printable
from lakeload.ui.console import MANY_TABLES
from lakeload_jobs.contract.events import Event, Stage
from lakeload_jobs.core.sizes import format_size

STAGES: Mapping[Stage, str] = {
    "session": "starting the Spark session",
    "open": "reading its history and schema",
    "count": "counting rows",
    "stage": "writing",
    "commit": "committing",
    "branches": "dropping branches",
    "compact": "compacting",
    "deletes": "rewriting deletes",
    "manifests": "rewriting manifests",
    "expire": "expiring snapshots",
    "orphans": "finding orphan files",
}

READING_ROWS = "reading its rows"
"""The words for the stage `open` of rows that can be read only once: they are stored first."""
LINE_SECONDS = 30.0
"""So often a line says how far a stage is, where there is no live display."""

STYLES = {
    "LOADED": "green",
    "NO_OP": "green",
    "LOADED_CATALOG_OUT_OF_DATE": "yellow",
    "FAILED": "red",
    "SKIPPED": "yellow",
    "INTERRUPTED": "yellow",
    "DONE": "green",
}


@dataclass
class _Row:
    stage: str = "waiting"
    since: float = 0.0
    ended: str | None = None
    seconds: float = 0.0
    rows: int = 0
    """Rows and bytes of this stage so far, and of how many rows it is; None: not known."""
    bytes: int = 0
    of_rows: int | None = None
    told: float = 0.0
    """When a line was last printed of it, or its stage began."""

    @property
    def words(self) -> str:
        """What the table is doing, and how far it is."""
        if not self.rows:
            return self.stage
        doing = READING_ROWS if self.stage == STAGES["open"] else self.stage
        rows = f"{self.rows:,}" if self.of_rows is None else f"{self.rows:,} of {self.of_rows:,}"
        return f"{doing}: {rows} rows, {format_size(self.bytes)}"


class ProgressView:
    """Shows events as they come. Everything in them may come from a file, so nothing is markup."""

    def __init__(
        self,
        console: Console,
        tables: Sequence[str],
        *,
        quiet: bool = False,
        doing: str = "loading",
    ) -> None:
        self._console = console
        self._quiet = quiet
        self._doing = doing
        self._started = time.monotonic()
        self._rows = {table: _Row() for table in tables}
        self._stage = "starting Spark"
        self._tasks = (0, 0)
        live = console.is_terminal and not console.is_dumb_terminal and not quiet
        self._live = (
            Live(
                console=console,
                get_renderable=self._screen,
                refresh_per_second=5,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            if live
            else None
        )

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        elif not self._quiet:
            self._line(self._stage)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live:
            self._live.stop()

    def show(self, event: Event) -> None:
        """Take in one event."""
        now = time.monotonic()
        if event.kind == "stage" and event.stage:
            words = STAGES.get(event.stage, event.stage)
            if event.table is None:
                self._stage = words
            else:
                row = self._rows.setdefault(event.table, _Row())
                self._stage = self._doing
                row.since = row.since or now
                row.stage = words
                row.rows, row.bytes, row.of_rows, row.told = 0, 0, event.rows, now
            if event.table is None or len(self._rows) <= MANY_TABLES:
                self._line(f"{event.table}: {words}" if event.table else words, live=False)
        elif event.kind == "progress" and event.table:
            row = self._rows.setdefault(event.table, _Row())
            row.rows, row.bytes = event.rows or 0, event.bytes or 0
            if now - row.told >= LINE_SECONDS:
                row.told = now
                self._line(f"{event.table}: {row.words}", live=False)
        elif event.kind == "progress":
            self._tasks = (event.done or 0, event.total or 0)
        elif event.kind == "table" and event.table and event.name:
            row = self._rows.setdefault(event.table, _Row())
            row.ended = event.name
            row.seconds = now - row.since if row.since else 0.0
            # Why a table failed comes with the summary.
            self._line(f"{event.table}: {event.name}", live=False)
        elif event.kind == "note" and event.message and event.level != "warning":
            # Warnings come again with the result, and the summary shows them.
            about = f"{event.table}: " if event.table else ""
            self._line(f"{about}{event.message}")

    def _line(self, text: str, *, live: bool = True) -> None:
        """Print one line; with `live` False only where there is no live display."""
        if self._quiet or (self._live and not live):
            return
        seconds = time.monotonic() - self._started
        self._console.print(
            Text(f"[{seconds:6.1f} s] {printable(text)}"), soft_wrap=True, highlight=False
        )

    def _screen(self) -> RenderableType:
        shown = self._visible()
        grid = Table.grid(padding=(0, 2))
        grid.add_column(overflow="ellipsis", no_wrap=True, max_width=40)
        grid.add_column(overflow="ellipsis", no_wrap=True)
        grid.add_column(justify="right", no_wrap=True)
        for name, row in shown:
            grid.add_row(Text(printable(name)), *self._cells(row))
        rest = len(self._rows) - len(shown)
        hidden = f" · {rest} more tables" if rest else ""
        done, total = self._tasks
        tasks = f" · {done}/{total} tasks" if total else ""
        elapsed = _clock(time.monotonic() - self._started)
        foot = Spinner(
            "dots", Text(f"{self._stage}{tasks}{hidden} · {elapsed}", overflow="ellipsis")
        )
        return Group(grid, foot)

    def _visible(self) -> list[tuple[str, _Row]]:
        """Tables that are at work first, then those that wait, then the ended, as many as fit."""
        room = max(1, self._console.size.height - 4)
        if len(self._rows) <= room:
            return list(self._rows.items())
        order = sorted(
            self._rows.items(), key=lambda item: (item[1].ended is not None, item[1].since == 0)
        )
        return order[:room]

    def _cells(self, row: _Row) -> tuple[Text, Text]:
        if row.ended:
            return Text(row.ended, STYLES.get(row.ended, "")), Text(_clock(row.seconds))
        if not row.since:
            return Text(row.stage, "dim"), Text("")
        return Text(row.words), Text(_clock(time.monotonic() - row.since))


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
