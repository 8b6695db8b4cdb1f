"""Progress of a running load on stderr: live on a terminal, one line a stage elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from lakeload.config.secret_names import printable
from lakeload.launch.timings import Phase
from lakeload.ui.console import MANY_TABLES
from lakeload.ui.display import LINE_SECONDS, Display, clock
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

PHASES: Mapping[Phase, str] = {
    "documents": "reading the configuration",
    "machine": "finding Java and Spark",
    "connection": "checking role and bucket",
    "inspection": "inspecting tables and their input",
    "preparation": "preparing Spark",
}
"""What is shown of the phases before Spark."""
READING_ROWS = "reading its rows"
"""The words for the stage `open` of rows that can be read only once: they are stored first."""
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
        rows = f"{self.rows:,} rows"
        if self.of_rows:
            share = min(100, 100 * self.rows // self.of_rows)
            rows = f"{self.rows:,} of {self.of_rows:,} rows ({share}%)"
        # The first bytes of a file are known when its first rows are encoded.
        return f"{doing}: {rows}" + (f", {format_size(self.bytes)}" if self.bytes else "")


class ProgressView(Display):
    """Shows events as they come. Everything in them may come from a file, so nothing is markup."""

    def __init__(
        self,
        console: Console,
        tables: Sequence[str],
        *,
        quiet: bool = False,
        doing: str = "loading",
        first: str = "starting Spark",
    ) -> None:
        self._doing = doing
        self._rows = {table: _Row() for table in tables}
        self._stage = first
        self._tasks = (0, 0)
        super().__init__(console, quiet=quiet)

    def start(self) -> None:
        """Begin to show it, unless it is shown."""
        super().start()
        self._line(self._stage, live=False)

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

    def _words(self) -> str:
        at_work = [
            f"{name}: {row.words}"
            for name, row in list(self._rows.items())
            if row.since and not row.ended
        ]
        done, total = self._tasks
        tasks = [f"{done:,} of {total:,} tasks"] if total else []
        return ", ".join([f"{self._stage}{self._tables()}", *at_work[:1], *tasks])

    def _tables(self) -> str:
        """Return how many of several tables have ended."""
        ended = sum(row.ended is not None for row in list(self._rows.values()))
        total = len(self._rows)
        return f": {ended:,} of {total:,} tables" if total > 1 and ended else ""

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
        foot = f"{self._stage}{self._tables()}{tasks}{hidden} · {self._clock()}"
        self._spinner.update(text=Text(foot, overflow="ellipsis"))
        return Group(grid, self._spinner)

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
            return Text(row.ended, STYLES.get(row.ended, "")), Text(clock(row.seconds))
        if not row.since:
            return Text(row.stage, "dim"), Text("")
        return Text(row.words), Text(clock(time.monotonic() - row.since))
