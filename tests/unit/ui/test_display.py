"""Signs of life: a display that moves at a terminal, lines elsewhere, nothing when silent."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from lakeload.ui.display import LINE_SECONDS, Phases


def phases(stream: io.StringIO, *, terminal: bool, quiet: bool = False) -> Phases:
    console = Console(file=stream, force_terminal=terminal, width=80, color_system=None)
    return Phases(console, "finding Java", quiet=quiet)


def test_phases_at_a_terminal_show_what_is_done_and_how_far_it_is() -> None:
    stream = io.StringIO()
    with phases(stream, terminal=True) as shown:
        assert "finding Java · 0:00" in stream.getvalue()
        shown.begin("inspecting files")
        shown.at(12, 25, "files")
        shown.stop()
        assert "inspecting files: 12 of 25 files · 0:00" in stream.getvalue()
        shown.begin("preparing Spark")
    assert "preparing Spark · 0:00" in stream.getvalue()


def test_phases_elsewhere_print_a_line_only_after_a_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    monkeypatch.setattr("lakeload.ui.display.time.monotonic", lambda: clock[0])
    stream = io.StringIO()
    with phases(stream, terminal=False) as shown:
        shown.beat()
        assert stream.getvalue() == ""
        shown.at(3, 14, "tables")
        for _ in range(2):
            clock[0] += LINE_SECONDS
            shown.beat()
    line = "finding Java: 3 of 14 tables"
    assert stream.getvalue().splitlines() == [f"[  25.0 s] {line}", f"[  50.0 s] {line}"]


@pytest.mark.parametrize("terminal", [True, False])
def test_phases_quiet_print_nothing(monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> None:
    stream = io.StringIO()
    with phases(stream, terminal=terminal, quiet=True) as shown:
        shown.begin("preparing Spark")
        monkeypatch.setattr("lakeload.ui.display.LINE_SECONDS", -1.0)
        shown.beat()
    assert stream.getvalue() == ""
