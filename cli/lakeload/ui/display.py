"""Signs of life on stderr: a live display on a terminal, elsewhere a line before it gets long."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from lakeload.config.secret_names import printable

LINE_SECONDS = 25.0
"""Without a live display there is a line at least this often."""


class Display(ABC):
    """A live display of what a command is doing. Nothing in it is markup."""

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self._console = console
        self._quiet = quiet
        self._started = self._shown = time.monotonic()
        self._spinner = Spinner("dots")
        self._ended: threading.Event | None = None
        terminal = console.is_terminal and not console.is_dumb_terminal
        self._live = (
            Live(
                console=console,
                get_renderable=self._screen,
                refresh_per_second=5,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            if terminal and not quiet
            else None
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin to show it, unless it is shown."""
        if self._quiet or self._ended is not None:
            return
        self._ended = threading.Event()
        self._started = self._shown = time.monotonic()
        if self._live:
            self._live.start(refresh=True)
        else:
            threading.Thread(
                target=self._watch, args=(self._ended,), name="display", daemon=True
            ).start()

    def stop(self) -> None:
        """Remove the live display, and print no more lines."""
        if self._ended is not None:
            self._ended.set()
            self._ended = None
            if self._live:
                self._live.stop()

    def beat(self) -> None:
        """Print a line where none was printed for `LINE_SECONDS`."""
        if time.monotonic() - self._shown >= LINE_SECONDS:
            self._line(self._words())

    def _watch(self, ended: threading.Event) -> None:
        while not ended.wait(1.0):
            self.beat()

    @abstractmethod
    def _words(self) -> str:
        """Return what is being done, and how far it is."""

    def _screen(self) -> RenderableType:
        """Return the live display."""
        self._spinner.update(text=Text(f"{printable(self._words())} · {self._clock()}"))
        return self._spinner

    def _clock(self) -> str:
        return clock(time.monotonic() - self._started)

    def _line(self, text: str, *, live: bool = True) -> None:
        """Print one line; with `live` False only where there is no live display."""
        if self._quiet or (self._live and not live):
            return
        self._shown = time.monotonic()
        seconds = self._shown - self._started
        self._console.print(
            Text(f"[{seconds:6.1f} s] {printable(text)}"), soft_wrap=True, highlight=False
        )


class Phases(Display):
    """The phases of a command before its result, such as `inspecting tables: 3 of 14 tables`."""

    def __init__(self, console: Console, phase: str, *, quiet: bool = False) -> None:
        self._phase = phase
        self._count = ""
        super().__init__(console, quiet=quiet)

    def begin(self, phase: str) -> None:
        """Begin a phase."""
        self._phase, self._count = phase, ""
        self.start()

    def at(self, done: int, total: int, what: str) -> None:
        """Show how far the phase is, where there is more than one thing to do."""
        self._count = f": {done:,} of {total:,} {what}" if total > 1 else ""

    def _words(self) -> str:
        return self._phase + self._count


def no_phases() -> Phases:
    """Return phases that are not shown."""
    return Phases(Console(), "", quiet=True)


def clock(seconds: float) -> str:
    """Return a duration as a clock shows it."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
