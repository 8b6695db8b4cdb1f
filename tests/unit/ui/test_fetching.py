"""What a fetch of jars says: a bar on a terminal, lines elsewhere, nothing with -q."""

from __future__ import annotations

import io

from rich.console import Console

from lakeload.machine.jars.pins import Jar
from lakeload.ui.jars import FetchProgress

JARS = [Jar("g", "a", "1", "", 3 << 20), Jar("g", "[b]", "2", "", 1 << 20)]


def fetched(*, terminal: bool = False, quiet: bool = False) -> str:
    stream = io.StringIO()
    console = Console(
        file=stream, force_terminal=terminal, width=80, markup=False, _environ={"TERM": "xterm"}
    )
    with FetchProgress(console, quiet=quiet) as progress:
        progress.begin(JARS, "https://repo.example.com")
        progress.at(JARS[0], 1 << 20)
        progress.end(JARS[0], "downloaded")
        progress.say("another process is fetching `[b]-2.jar`: waiting for it")
        progress.end(JARS[1], "fetched by another process")
    return stream.getvalue()


def test_without_a_terminal_there_is_a_line_for_each_jar() -> None:
    assert fetched().splitlines() == [
        "fetching 2 jars (4.0 MiB) from https://repo.example.com",
        "a-1.jar  3.0 MiB  downloaded",
        "another process is fetching `[b]-2.jar`: waiting for it",
        "[b]-2.jar  1.0 MiB  fetched by another process",
    ]


def test_on_a_terminal_there_is_a_bar_that_goes_away() -> None:
    text = fetched(terminal=True)
    assert "2/2 jars" in text
    assert "4.0/4.0 MiB" in text
    assert "a-1.jar" not in text
    assert text.endswith("\x1b[2K")


def test_quiet_is_silent() -> None:
    assert fetched(quiet=True) == fetched(terminal=True, quiet=True) == ""


def test_fetch_progress_without_missing_jars_is_silent() -> None:
    stream = io.StringIO()
    with FetchProgress(Console(file=stream)):
        pass
    assert stream.getvalue() == ""
