"""What the Iceberg demo shows of files whose names nobody reads, and the days it is made of."""

from __future__ import annotations

import csv
from datetime import date
from pathlib import Path

from rich.console import Console

from lakeload.demo.samples import (
    CANCELLED,
    CHANGE_NOTE,
    CHANGED,
    NEW,
    write_first_day,
    write_second_day,
)
from lakeload.ui.demo import TreeLeaf, gathered, show_tree

MONDAY, TUESDAY = date(2026, 3, 2), date(2026, 3, 3)


def test_files_of_a_kind_are_one_line_and_the_new_ones_another() -> None:
    folder = "demo/shop/orders"
    leaves = [
        TreeLeaf(f"{folder}/data/a-1.parquet", 10, new=False),
        TreeLeaf(f"{folder}/data/b-2.parquet", 20, new=False),
        TreeLeaf(f"{folder}/data/c-3.parquet", 40, new=True),
        TreeLeaf(f"{folder}/metadata/0-x.metadata.json", 4, new=False),
        TreeLeaf(f"{folder}/metadata/1-y.metadata.json", 5, new=True),
        TreeLeaf(f"{folder}/metadata/snap-1.avro", 5, new=True),
    ]
    console = Console(width=80)
    with console.capture() as captured:
        show_tree(console, "s3://lake/", gathered(leaves))
    lines = [line.strip("│├└─ ") for line in captured.get().splitlines()]
    assert lines == [
        "s3://lake/",
        "demo/shop/orders/",
        "data/",
        "*.parquet × 2  30 B",
        "*.parquet × 1  40 B  new",
        "metadata/",
        "*.avro × 1  5 B  new",
        "*.metadata.json × 1  4 B",
        "*.metadata.json × 1  5 B  new",
    ]


def test_demo_second_day_changes_the_documented_rows(tmp_path: Path) -> None:
    first = _by_id(write_first_day(tmp_path, MONDAY)[0].path)
    second = _by_id(write_second_day(tmp_path, TUESDAY)[0].path)
    known = {number: row for number, row in second.items() if number in first}
    cancelled = [row for row in known.values() if row["storniert"] == "true"]
    changed = {n: row for n, row in known.items() if row["storniert"] == "false"}
    assert (len(changed), len(cancelled), len(second) - len(known)) == (CHANGED, CANCELLED, NEW)
    for number, row in changed.items():
        kept = {name: row[name] for name in first[number]} | {"Notiz": first[number]["Notiz"]}
        assert (kept, row["Notiz"]) == (first[number], CHANGE_NOTE)
    assert {row["storniert"] for row in first.values()} == {"false"}


def _by_id(path: Path) -> dict[str, dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}
