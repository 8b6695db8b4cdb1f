"""Sample tables of the demo, and changes of them."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path

ORDERS = 5_000
VISITS = 400
PAYMENTS = 4_800

# `Größe` and `Grosse` become the same name once accents are spelled out, and so do the two first
# names; `Prix €` and `Bestellt am` hold characters that no catalog takes.
ORDER_HEADER = (
    "id", "Prénom", "prenom", "Größe", "Grosse", "Artikel", "Prix €", "Bestellt am", "Notiz",
)  # fmt: skip

_NAMES = ("Zoë", "José", "Łukasz", "Anaïs", "Bjørn", "Ngọc", "O'Neil", "Ольга", "美咲", "Ada")
_ARTICLES = ("Café crème", 'Sign 12" × 8"', "Söckchen, bunt", "Piñata", "Maßband 2 m", "Tea")
_NOTES = (
    "",
    "",
    "",
    "ring twice 🔔",
    "gift 🎁, no invoice",
    'says: "it\'s fine"',
    "call\tfirst",
    "très urgent",
)
_SIZES = ("S", "M", "L", "XL")
_CITIES = ("Zürich", "Malmö", "São Paulo", "Kraków", "Reykjavík", "東京")
_ZONES = (UTC, timezone(timedelta(hours=2)), timezone(timedelta(hours=5, minutes=30)))


@dataclass(frozen=True)
class Sample:
    """One file of the export and the rows in it."""

    table: str
    path: Path
    rows: int


def write_samples(folder: Path, day: date) -> tuple[Sample, ...]:
    """Write the export of one day into `folder`, over the one of the day before."""
    random_source = random.Random(day.toordinal())  # noqa: S311 - sample data
    folder.mkdir(parents=True, exist_ok=True)
    return (
        _write_orders(folder / "orders.csv", day, random_source),
        _write_visits(folder / "visits.ndjson", day, random_source),
        write_payments(folder / "payments.parquet", day, random_source),
    )


def order_rows(day: date, choose: random.Random) -> Iterator[tuple[object, ...]]:
    """Yield the orders of a day, a value for each column of `ORDER_HEADER`."""
    for number in range(ORDERS):
        name = choose.choice(_NAMES)
        yield (
            _first_order(day) + number,
            name,
            name.lower(),
            choose.choice(_SIZES),
            choose.choice(("yes", "no")),
            choose.choice(_ARTICLES),
            _amount(choose) if choose.random() > 0.02 else "",
            _instant(day, choose).astimezone(choose.choice(_ZONES)).isoformat(),
            choose.choice(_NOTES),
        )


def _write_orders(path: Path, day: date, choose: random.Random) -> Sample:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(ORDER_HEADER)
        writer.writerows(order_rows(day, choose))
    return Sample("orders", path, ORDERS)


def _write_visits(path: Path, day: date, choose: random.Random) -> Sample:
    with path.open("w", encoding="utf-8") as file:
        for visit in _visits(day, choose):
            file.write(json.dumps(visit, ensure_ascii=False) + "\n")
    return Sample("visits", path, VISITS)


def _visits(day: date, choose: random.Random) -> Iterator[dict[str, object]]:
    for number in range(VISITS):
        name = choose.choice(_NAMES)
        yield {
            "visit": number,
            "naïve name": name if choose.random() > 0.05 else None,
            "address": {
                "city": choose.choice(_CITIES),
                "geo": {"lat": round(choose.uniform(-60, 60), 4), "lon": None},
            },
            "tags": choose.sample(["vip", "b2b", "☕", "returns"], k=choose.randint(0, 3)),
            # Local time, as many applications write it: no zone.
            "seen": _instant(day, choose).replace(tzinfo=None).isoformat(sep=" "),
        }


def write_payments(path: Path, day: date, choose: random.Random, *, precision: int = 12) -> Sample:
    """Write a day's payments; amounts have `precision` digits, two of them after the point."""
    # Here, because importing pyarrow takes longer than all of `lakeload --help`.
    import pyarrow as pa
    import pyarrow.parquet as pq

    instants = [_instant(day, choose) for _ in range(PAYMENTS)]
    columns = {
        "order id": pa.array([_first_order(day) + i for i in range(PAYMENTS)], pa.int64()),
        "amount": pa.array([_amount(choose) for _ in range(PAYMENTS)], pa.decimal128(precision, 2)),
        "paid at": pa.array(instants, pa.timestamp("us", tz="UTC")),
        "booked": pa.array([i.replace(tzinfo=None) for i in instants], pa.timestamp("us")),
        "value date": pa.array([i.date() for i in instants], pa.date32()),
        "refunded": pa.array([choose.choice((True, False, None)) for _ in range(PAYMENTS)]),
        "receipt": pa.array([choose.randbytes(8) for _ in range(PAYMENTS)], pa.binary()),
    }
    # Two row groups, so that Spark reads the file with more than one task.
    pq.write_table(pa.table(columns), path, row_group_size=PAYMENTS // 2)
    return Sample("payments", path, PAYMENTS)


def _first_order(day: date) -> int:
    return int(day.strftime("%y%m%d")) * 10_000


def _amount(choose: random.Random) -> Decimal:
    return Decimal(choose.randint(1, 99_999_99)).scaleb(-2)


def _instant(day: date, choose: random.Random) -> datetime:
    midnight = datetime.combine(day, time(), UTC)
    return midnight + timedelta(microseconds=choose.randrange(86_400_000_000))


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
