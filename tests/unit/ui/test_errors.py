"""Errors on the terminal."""

from __future__ import annotations

import io

from rich.console import Console

from lakeload.ui.errors import show_trouble
from lakeload_jobs.contract.errors import LoadFailed


def test_the_lines_of_an_error_stay_lines_and_control_characters_are_escaped() -> None:
    out = io.StringIO()
    message = "2 values or records cannot be loaded:\n  reading `a\x1b.csv`:\n    line 2: x"
    show_trouble(Console(file=out, width=40), "orders", LoadFailed(message))
    assert out.getvalue().splitlines() == [
        "error: orders: 2 values or records cannot be loaded:",
        "  reading `a\\x1b.csv`:",
        "    line 2: x",
    ]
