"""The two streams: `out` for the answer, `err` for everything else, and how much is said."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from lakeload.ui.names import Name
from lakeload_jobs.contract.errors import InvalidInput

_LOGGERS = ("lakeload", "lakeload_jobs")
_LOG_LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"


_ANY_WIDTH = 100_000


class Stream(Console):
    """A stream whose reader may leave, as `| head` does, or whose terminal may be closed: what
    follows goes nowhere, quietly.

    rich would end the program with exit code 1 and silence stdout, in the middle of a load and
    whichever stream had lost its reader.
    """

    def on_broken_pipe(self) -> None:
        """Send the rest to the null device, so that the interpreter's last flush succeeds too."""
        self.quiet = True
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.file.fileno())
            os.close(nowhere)

    def print(self, *objects: Any, **settings: Any) -> None:
        """Print; a table that no terminal shows has no blanks at the ends of its lines, and one of
        tables is not folded: whoever reads a pipe looks for their names."""
        tables = [one for one in objects if isinstance(one, Table)]
        if self.is_terminal or not tables:
            return super().print(*objects, **settings)
        named = [
            table
            for table in tables
            if any(isinstance(cell, Name) for column in table.columns for cell in column.cells)
        ]
        unlimited = self.options.update(width=_ANY_WIDTH)
        widths = [Measurement.get(self, unlimited, table).maximum for table in named]
        with self.at_least(max(widths, default=0)), self.capture() as captured:
            super().print(*objects, **settings)
        lines = captured.get().splitlines()
        return super().print("\n".join(line.rstrip() for line in lines), soft_wrap=True)

    @contextlib.contextmanager
    def at_least(self, width: int) -> Iterator[None]:
        """Be at least so wide within the block."""
        # Not `self.width`: one that was set would stay when the terminal's changes.
        before, self._width = self._width, max(self.width, width)
        try:
            yield
        finally:
            self._width = before

    def __exit__(self, *exception: Any) -> None:
        """Write what was printed inside of the block."""
        try:
            super().__exit__(*exception)
        except OSError as failure:
            # What a terminal answers after it was closed.
            if failure.errno != errno.EIO:
                raise
            self.on_broken_pipe()


# Markup and emoji codes are off: a table may be called `[red]` or `:smile:`.
out = Stream(markup=False, emoji=False, highlight=False)
err = Stream(stderr=True, markup=False, emoji=False, highlight=False)


MANY_TABLES = 10
"""More tables than these are shown in a line each; JSON always has everything."""


class OutputFormat(StrEnum):
    """Output formats of a command."""

    TEXT = "text"
    JSON = "json"


@dataclass
class _Said:
    """What the flags of the running command ask for."""

    quiet: bool = False
    verbose: bool = False
    output: OutputFormat | None = None


_said = _Said()


def configure(
    *,
    verbose: int = 0,
    quiet: bool = False,
    log_file: Path | None = None,
    output: OutputFormat | None = None,
) -> None:
    """Apply the options every command has. Raises `InvalidInput` for an unusable log file.

    Only lakeload's own loggers speak: botocore's debug lines would show credentials.
    """
    _said.quiet, _said.verbose, _said.output = quiet, verbose > 0, output
    handlers: list[logging.Handler] = []
    if verbose:
        shown: logging.Handler = logging.StreamHandler(sys.stderr)
        shown.setLevel(logging.INFO if verbose == 1 else logging.DEBUG)
        handlers.append(shown)
    if log_file is not None:
        handlers.append(_file_handler(log_file))
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        for old in logger.handlers[:]:
            logger.removeHandler(old)
            old.close()
        logger.setLevel(logging.DEBUG if handlers else logging.WARNING)
        logger.propagate = False
        for handler in handlers or [logging.NullHandler()]:
            handler.setFormatter(logging.Formatter(_LOG_LINE))
            logger.addHandler(handler)


def survive_any_terminal() -> None:
    """Let characters a stream cannot encode appear as escapes instead of raising."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def quiet() -> bool:
    """Tell whether only errors and the answer are wanted."""
    return _said.quiet


def silent() -> bool:
    """Tell whether nothing is shown of what a command is doing."""
    return quiet() or json_wanted()


def verbose() -> bool:
    """Tell whether the answer may be longer than usual."""
    return _said.verbose


def json_wanted() -> bool:
    """Tell whether the running command answers in JSON."""
    return _said.output is OutputFormat.JSON


def answer(text: str | Text) -> None:
    """Print a part of the answer on stdout, lines as they are."""
    out.print(text, soft_wrap=True)


def show_json(document: Any) -> None:
    """Print one JSON document on stdout; ASCII, so that any terminal and pipe carries it."""
    _write(json.dumps(document, indent=2))


def show_json_line(document: Any) -> None:
    """Print one of many JSON documents on stdout, each a line."""
    _write(json.dumps(document))


def _write(text: str) -> None:
    try:
        out.file.write(text + "\n")
        out.file.flush()
    except BrokenPipeError:
        out.on_broken_pipe()


def note(text: str | Text) -> None:
    """Say something on stderr that is not an error; silent with -q."""
    if not _said.quiet:
        err.print(text, soft_wrap=True)


def _file_handler(path: Path) -> logging.Handler:
    try:
        handler = logging.FileHandler(path, encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise InvalidInput(
            f"the log file `{path}` cannot be written: {reason}",
            hint="give `--log-file` a path in a folder that you can write to",
        ) from error
    handler.setLevel(logging.DEBUG)
    return handler
