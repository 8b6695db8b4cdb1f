"""What terminals and pipes get: whole words within the width, and no blanks at ends of lines."""

from __future__ import annotations

import io
import re
from types import SimpleNamespace

import pytest
from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from lakeload.ui import console
from lakeload.ui.console import Stream
from lakeload.ui.errors import show_error, show_trouble
from lakeload.ui.names import Name
from lakeload_jobs.contract.errors import Refused

LONG = Refused(
    "listing `s3://lake/shop/`: access denied (`AccessDenied`, HTTP 403): "
    + "the identity is not authorized to perform it " * 4,
    hint="give\n  --bucket NAME  "
    + "a line to be copied stays as long as it is " * 3
    + "\nand allow it "
    + "in the policy of the role or user " * 4,
)


def stream(kind: type[Console], *, terminal: bool) -> Console:
    return kind(
        file=io.StringIO(),
        width=80,
        force_terminal=terminal,
        color_system=None,
        markup=False,
        highlight=False,
    )


def lines(shown: Console) -> list[str]:
    assert isinstance(shown.file, io.StringIO)
    return shown.file.getvalue().splitlines()


def test_a_terminal_gets_an_error_in_lines_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    err = stream(Stream, terminal=True)
    monkeypatch.setattr(console, "err", err)
    show_error(LONG)
    shown = lines(err)

    copied = [line for line in shown if "--bucket" in line]
    assert len(copied) == 1
    assert all(len(line) <= 80 for line in shown if line not in copied)
    assert shown[1].startswith("       ")
    words = re.findall(r"\S+", f"error: {LONG.message} hint: {LONG.hint}")
    assert re.findall(r"\S+", " ".join(shown)) == words


def test_a_pipe_gets_an_error_as_one_line() -> None:
    err = stream(Stream, terminal=False)
    show_trouble(err, "shop.orders", Refused(LONG.message))
    assert lines(err) == [f"error: shop.orders: {LONG.message}"]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_table_in_a_pipe_has_no_blanks_at_the_ends_of_lines(terminal: bool) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("table")
    table.add_column("status")
    table.add_row("orders", "LOADED_CATALOG_OUT_OF_DATE")
    table.add_row("visits", "OK")
    out = stream(Stream, terminal=terminal)
    out.print(table)
    assert [line.rstrip() for line in lines(out)] == [
        "table   status",
        "orders  LOADED_CATALOG_OUT_OF_DATE",
        "visits  OK",
    ]
    assert terminal or lines(out)[2] == "visits  OK"


@pytest.mark.parametrize("terminal", [False, True])
def test_names_of_tables_are_whole_in_a_pipe(terminal: bool) -> None:
    out = stream(Stream, terminal=terminal)
    grid = Table("table", "what", box=None, pad_edge=False)
    grid.add_row(Name("shop.Grosshandel_Preise_2024_" * 3), Text("some more words " * 5))

    out.print(grid)

    whole = any("shop.Grosshandel_Preise_2024_" * 3 in line for line in lines(out))
    assert whole is not terminal
    assert (max(map(len, lines(out))) <= 80) is terminal


def test_tables_in_a_pipe_are_measured_once_however_many_names_they_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured: list[object] = []

    def measure(shown: Console, options: ConsoleOptions, table: Table) -> Measurement:
        measured.append(table)
        return Measurement.get(shown, options, table)

    monkeypatch.setattr(console, "Measurement", SimpleNamespace(get=measure))
    grids = [Table("table", box=None) for _ in range(2)]
    for grid in grids:
        for number in range(5):
            grid.add_row(Name(f"shop.orders_{number}"))

    stream(Stream, terminal=False).print(*grids)

    assert measured == grids


def test_a_table_does_not_settle_the_width_of_what_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = Stream(file=io.StringIO())
    monkeypatch.setattr(out, "_environ", {"COLUMNS": "120"})
    out.print(Table("table"))
    monkeypatch.setattr(out, "_environ", {"COLUMNS": "60"})

    assert out.width == 60


def test_the_colour_of_an_error_ends_with_its_label() -> None:
    err = Console(file=io.StringIO(), force_terminal=True, color_system="standard")
    show_trouble(err, "", Refused("no", hint="do"))
    assert lines(err) == ["\x1b[1;31merror:\x1b[0m \x1b[1mno\x1b[0m", "\x1b[32m hint:\x1b[0m do"]
