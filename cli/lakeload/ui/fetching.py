"""How a fetch of jars goes, on stderr: a bar on a terminal, one line a jar elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from lakeload.config.secret_names import printable
from lakeload.formats.amounts import counted
from lakeload.machine.jars.pins import Jar
from lakeload_jobs.core.sizes import format_size


class FetchProgress:
    """Listens to `machine.jars.fetch`; says nothing as long as nothing is lacking."""

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self._console = console
        self._quiet = quiet
        self._lock = threading.Lock()
        self._done: dict[str, int] = {}
        self._ended = 0
        self._jars = 0
        self._bar: Progress | None = None
        self._task = TaskID(0)

    def __enter__(self) -> Self:
        """Begin; the bar appears with the first jar."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the bar away."""
        if self._bar:
            self._bar.stop()

    def begin(self, jars: Sequence[Jar], where: str) -> None:
        """Say what is lacking and where it comes from."""
        self._jars = len(jars)
        size = sum(jar.size for jar in jars)
        self._line(f"fetching {counted(len(jars), 'jar')} ({format_size(size)}) from {where}")
        terminal = self._console.is_terminal and not self._console.is_dumb_terminal
        if terminal and not self._quiet:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=None),
                DownloadColumn(binary_units=True),
                TimeRemainingColumn(compact=True),
                console=self._console,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._task = self._bar.add_task(self._description(), total=size)
            self._bar.start()

    def at(self, jar: Jar, done: int) -> None:
        """Move the bar."""
        with self._lock:
            self._done[jar.file_name] = done
            if self._bar:
                self._bar.update(self._task, completed=sum(self._done.values()))

    def end(self, jar: Jar, how: str) -> None:
        """Count the jar; without a bar, tell of it."""
        self.at(jar, jar.size)
        with self._lock:
            self._ended += 1
            if self._bar:
                self._bar.update(self._task, description=self._description())
            else:
                self._line(f"{jar.file_name}  {format_size(jar.size)}  {how}")

    def say(self, text: str) -> None:
        """Tell what a user should know, above the bar."""
        self._line(text)

    def _description(self) -> str:
        return f"{self._ended}/{self._jars} jars"

    def _line(self, text: str) -> None:
        if not self._quiet:
            self._console.print(Text(printable(text)), soft_wrap=True, highlight=False)
