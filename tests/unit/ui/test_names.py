"""Names that are too long for their column end their lines at a separator."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from lakeload.formats.plan import TablePlan
from lakeload.ui.names import Name
from lakeload.ui.plan import show_text


@pytest.mark.parametrize(
    ("name", "width", "lines"),
    [
        ("orders", 10, ["orders"]),
        ("sales_invoice_positions", 14, ["sales_invoice_", "positions"]),
        ("public.customer_addresses", 12, ["public.", "customer_", "addresses"]),
        ("abcdefghijkl_m", 5, ["abcde", "fghij", "kl_m"]),
        ("北京北京_x", 5, ["北京", "北京_", "x"]),
        ("", 5, [""]),
    ],
)
def test_name_is_folded_behind_a_separator(name: str, width: int, lines: list[str]) -> None:
    assert list(Name(name).lines(width)) == lines


def test_plan_at_80_columns_breaks_no_name_within_a_word() -> None:
    name = "customer_relationship_management_opportunity_line_items"
    plan = TablePlan(
        name, f"warehouse.{name}", "LOAD", "APPEND", None, "1", "footers", "", True, 1, 4096, ()
    )
    stream = io.StringIO()
    show_text([plan], Console(file=stream, width=80), Console(file=io.StringIO()))
    words = {word for line in stream.getvalue().splitlines() for word in line.split()}
    parts = {part for word in words for part in word.replace(".", "_").split("_")}
    assert {*name.split("_"), "warehouse"} <= parts
