"""Progress: lines without a terminal, a live display on one, and nothing that could be markup."""

from __future__ import annotations

import errno
import io
import os
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from lakeload.ui.console import Stream
from lakeload.ui.display import LINE_SECONDS
from lakeload.ui.progress import ProgressView
from lakeload_jobs.contract.events import Event, EventKind

EVIL = "[red]e\x1b[2J\nvil"


def event(kind: EventKind, **fields: Any) -> Event:
    return Event(kind, datetime.now(UTC), **fields)


EVENTS = (
    event("opened", message="4.1.4", pid=1),
    event("stage", stage="session"),
    event("stage", stage="open", table="orders"),
    event("progress", done=3, total=9),
    event("progress", table="orders", rows=1_234_567, bytes=5 << 20),
    event("note", level="warning", message="2 values became null", table="orders"),
    event("note", level="info", message="finishing a job", table="orders"),
    event("stage", stage="commit", table=EVIL),
    event("table", name="FAILED", table=EVIL, message="why"),
    event("table", name="LOADED", table="orders"),
)


def shown(*, terminal: bool, quiet: bool = False, height: int = 24) -> str:
    stream = io.StringIO()
    console = Console(
        file=stream,
        force_terminal=terminal,
        width=80,
        height=height,
        markup=False,
        color_system=None,
    )
    with ProgressView(console, ["orders", EVIL, "later"], quiet=quiet) as progress:
        for each in EVENTS:
            progress.show(each)
            if progress._live:
                progress._live.refresh()
    return stream.getvalue()


def test_without_a_terminal_there_is_one_line_for_each_stage() -> None:
    lines = [re.sub(r"^\[ *\d+\.\d s\] ", "", line) for line in shown(terminal=False).splitlines()]
    assert lines == [
        "starting Spark",
        "starting the Spark session",
        "orders: reading its history and schema",
        "orders: finishing a job",
        "[red]e\\x1b[2J\\nvil: committing",
        "[red]e\\x1b[2J\\nvil: FAILED",
        "orders: LOADED",
    ]


def test_the_rows_of_a_stage_are_a_line_every_half_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("lakeload.ui.progress.time.monotonic", lambda: clock[0])
    stream = io.StringIO()
    with ProgressView(Console(file=stream, width=80), ["orders"]) as progress:
        for each in (
            event("stage", stage="open", table="orders"),
            event("progress", table="orders", rows=5, bytes=10),
            event("progress", table="orders", rows=7_000, bytes=2048),
            event("stage", stage="stage", table="orders", rows=10_000),
            event("progress", table="orders", rows=1, bytes=1),
            event("progress", table="orders", rows=9_999, bytes=3 << 20),
        ):
            progress.show(each)
            clock[0] += 15
    lines = [re.sub(r"^\[ *\d+\.\d s\] ", "", line) for line in stream.getvalue().splitlines()]
    assert lines == [
        "starting Spark",
        "orders: reading its history and schema",
        "orders: reading its rows: 7,000 rows, 2.0 KiB",
        "orders: writing",
        "orders: writing: 9,999 of 10,000 rows (99%), 3.0 MiB",
    ]


def test_beat_of_many_tables_counts_those_that_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1.0]
    monkeypatch.setattr("lakeload.ui.display.time.monotonic", lambda: clock[0])
    stream = io.StringIO()
    tables = [f"table_{number}" for number in range(14)]
    with ProgressView(Console(file=stream, width=80), tables) as progress:
        for each in (
            event("stage", stage="open", table="table_0"),
            event("table", name="LOADED", table="table_0"),
            event("stage", stage="stage", table="table_1", rows=400),
            event("progress", table="table_1", rows=100, bytes=0),
            event("progress", done=3, total=9),
        ):
            progress.show(each)
        progress.beat()
        clock[0] += LINE_SECONDS
        progress.beat()
        progress.beat()
    assert stream.getvalue().splitlines()[1:] == [
        "[   0.0 s] table_0: LOADED",
        "[  25.0 s] loading: 1 of 14 tables, table_1: writing: 100 of 400 rows (25%), 3 of 9 tasks",
    ]


def test_a_terminal_shows_every_table_with_its_stage_and_spark_s_tasks() -> None:
    text = shown(terminal=True)
    assert "reading its history and schema" in text
    assert "reading its rows: 1,234,567 rows, 5.0 MiB" in text
    assert "3/9 tasks" in text
    assert "waiting" in text
    assert "e\\x1b[2J\\nvil" in text
    assert "\x1b[2Jn" not in text


def test_more_tables_than_lines_are_counted() -> None:
    assert "2 more tables" in shown(terminal=True, height=5)


def test_progress_quiet_prints_nothing() -> None:
    assert shown(terminal=False, quiet=True) == ""
    assert shown(terminal=True, quiet=True) == ""


def test_progress_closed_pipe_does_not_stop_the_load() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", buffering=1) as broken:
        with ProgressView(Stream(file=broken, force_terminal=False), ["orders"]) as progress:
            for each in EVENTS:
                progress.show(each)
        broken.write("the last flush goes nowhere")


def test_progress_closed_terminal_does_not_stop_the_load() -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.EIO, "Input/output error")

    for terminal in (False, True):
        console = Stream(file=Closed(), force_terminal=terminal)
        with ProgressView(console, ["orders"]) as progress:
            for each in EVENTS:
                progress.show(each)
