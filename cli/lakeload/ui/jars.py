"""The cache of jars: on the screen, or as one JSON document; and the progress of a fetch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
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
from rich.table import Table
from rich.text import Text

from lakeload.config.secret_names import printable
from lakeload.machine.appcds import Archive, ArchiveState
from lakeload.machine.cache_state import CacheState
from lakeload.machine.jars.fetch import Listener
from lakeload.machine.jars.pins import JARS, Jar, JarState
from lakeload.ui.json_documents import ArchiveDocument, JarDocument, JarsDocument
from lakeload_jobs.core.sizes import counted, format_size

STYLES = {
    "present": "green",
    "missing": "yellow",
    "broken": "bold red",
    "usable": "green",
    "outdated": "yellow",
}


def to_document(state: CacheState, exit_code: int = 0) -> JarsDocument:
    """Return the JSON document of every `jars … --output json`; keys are only ever added."""
    return {
        "exit_code": exit_code,
        "cache": str(state.folder),
        "jars": [_jar_document(item) for item in state.jars],
        "archives": [_archive_document(item) for item in state.archives],
        "archives_unknown": state.unknown,
    }


def show_list(state: CacheState, out: Console) -> None:
    """Write every jar with what lies in the cache under its name, and the archives."""
    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("set", "jar", "version"):
        grid.add_column(heading, overflow="fold")
    grid.add_column("size", justify="right", no_wrap=True)
    grid.add_column("state", no_wrap=True)
    for item in state.jars:
        jar = item.jar
        grid.add_row(
            jar.feature,
            jar.artifact,
            jar.version,
            format_size(jar.size),
            Text(item.state, STYLES[item.state]),
        )
    if state.jars:
        out.print(grid)
    show_archives(state, out)
    out.print(Text(printable(f"cache: {state.folder}"), "dim"), soft_wrap=True)


def show_archives(state: CacheState, out: Console) -> None:
    """Write a line about each AppCDS archive, and how to come by one where there is none."""
    for item in state.archives:
        out.print(_archive_line(item), soft_wrap=True)
    if state.unknown:
        out.print(Text(printable(f"AppCDS archives: {state.unknown}"), "dim"), soft_wrap=True)
    elif not state.archives:
        text = "no AppCDS archive: `lakeload jars fetch` makes one, and loads start faster"
        out.print(Text(text, "dim"), soft_wrap=True)


def show_verified(state: CacheState, out: Console, *, quiet: bool) -> None:
    """Write what is not as it should be, with both checksums, and a summary."""
    for item in state.jars:
        if item.state == "broken":
            found = f"has the SHA-256 {item.found}" if item.found else "cannot be read"
            line = f"{item.path}: {found}, and {item.jar.sha256} is expected"
            out.print(Text(printable(line), STYLES["broken"]), soft_wrap=True)
        elif item.state == "missing" and not quiet:
            line = f"{item.jar.file_name}: missing"
            out.print(Text(printable(line), STYLES["missing"]), soft_wrap=True)
    for archive in state.archives:
        if archive.state != "usable":
            out.print(_archive_line(archive), soft_wrap=True)
    if not quiet and state.jars:
        out.print(Text(_summary(state), "bold"), soft_wrap=True)


def show_fetched(state: CacheState, made: Archive | None, already: bool, out: Console) -> None:
    """Write what the cache now has."""
    jars = [item.jar for item in state.jars]
    size = format_size(sum(jar.size for jar in jars))
    text = f"{counted(len(jars), 'jar')} ({size}) in {state.folder / JARS}"
    if not jars:
        text = "no jars are needed beside Spark's own"
    out.print(Text(printable(text), "green"), soft_wrap=True)
    if made:
        what = "is there" if already else "made"
        text = f"AppCDS archive ({format_size(made.size)}) {what}: {made.path}"
        out.print(Text(printable(text), "green"), soft_wrap=True)


def _summary(state: CacheState) -> str:
    counts = [
        f"{sum(item.state == wanted for item in state.jars)} {wanted}"
        for wanted in ("present", "missing", "broken")
    ]
    return f"{counted(len(state.jars), 'jar')}: {', '.join(counts)}"


def _archive_line(item: ArchiveState) -> Text:
    size = format_size(item.archive.size)
    why = f": {item.why}" if item.why else ""
    text = f"AppCDS archive {_purpose(item.archive.features)} ({size})  {item.state}{why}"
    return Text(printable(text), STYLES[item.state])


def _purpose(features: Sequence[str]) -> str:
    return f"for loads with {' and '.join(features)}" if features else "for loads without jars"


def _jar_document(item: JarState) -> JarDocument:
    jar = item.jar
    return {
        "set": jar.feature,
        "coordinates": jar.coordinates,
        "file": str(item.path),
        "size": jar.size,
        "sha256": jar.sha256,
        "found_sha256": item.found,
        "state": item.state,
    }


def _archive_document(item: ArchiveState) -> ArchiveDocument:
    archive = item.archive
    return {
        "file": str(archive.path),
        "sets": list(archive.features),
        "size": archive.size,
        "state": item.state,
        "why": item.why,
    }


class FetchProgress(Listener):
    """Listens to `machine.jars.fetch`; says nothing as long as nothing is lacking."""

    def __init__(
        self,
        console: Console,
        *,
        quiet: bool = False,
        on_begin: Callable[[], None] = lambda: None,
    ) -> None:
        self._console = console
        self._quiet = quiet
        self._on_begin = on_begin
        self._lock = threading.Lock()
        self._done: dict[str, int] = {}
        self._ended = 0
        self._jars = 0
        self._bar: Progress | None = None
        self._task = TaskID(0)

    def __enter__(self) -> Self:
        """Begin; the bar appears with the first jar."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Take the bar away."""
        if self._bar:
            self._bar.stop()

    def begin(self, jars: Sequence[Jar], where: str) -> None:
        """Say what is lacking and where it comes from."""
        self._on_begin()
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
