"""The Iceberg demo's source: a second day that changes the first one, and its columns.

Tuesday's orders are changes of Monday's, cancellations and new ones, with a column more; Tuesday's
payments have a wider amount.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

from lakeload.demo.samples import (
    ORDER_HEADER,
    Sample,
    order_rows,
    write_payments,
)

CHANGED, CANCELLED, NEW = 300, 100, 1_000
CHANGE_NOTE = "changed on Tuesday"
"""What the note of a changed order says."""

_CANCELLED, _COUPON = "storniert", "Gutschein"
_NOTE = ORDER_HEADER.index("Notiz")


def write_first_day(folder: Path, day: date) -> tuple[Sample, ...]:
    """Write the export of the first day: whole tables."""
    choose = _seeded(day)
    orders = [(*row, "false") for row in order_rows(day, choose)]
    path = folder / "orders.csv"
    folder.mkdir(parents=True, exist_ok=True)
    _write(path, (*ORDER_HEADER, _CANCELLED), orders)
    payments = write_payments(folder / "payments.parquet", day, choose)
    return Sample("orders", path, len(orders)), payments


def write_second_day(folder: Path, day: date, before: date) -> tuple[Sample, ...]:
    """Write the export of a day after: what has changed since, over the one of `before`."""
    choose = _seeded(day)
    orders = [*_changes(before), *_new(day, choose)]
    path = folder / "orders.csv"
    _write(path, (*ORDER_HEADER, _CANCELLED, _COUPON), orders)
    payments = write_payments(folder / "payments.parquet", day, choose, precision=14)
    return Sample("orders", path, len(orders)), payments


def _changes(before: date) -> Iterator[tuple[object, ...]]:
    for number, row in enumerate(order_rows(before, _seeded(before))):
        if number < CHANGED:
            yield (*row[:_NOTE], CHANGE_NOTE, *row[_NOTE + 1 :], "false", "")
        elif number < CHANGED + CANCELLED:
            yield (*row, "true", "")


def _new(day: date, choose: random.Random) -> Iterator[tuple[object, ...]]:
    for number, row in enumerate(order_rows(day, choose)):
        if number < NEW:
            yield (*row, "false", choose.choice(("", "", "FRÜHLING", "🎁-10")))


def _seeded(day: date) -> random.Random:
    return random.Random(day.toordinal())  # noqa: S311 - sample data


def _write(path: Path, header: Sequence[str], rows: Sequence[tuple[object, ...]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
