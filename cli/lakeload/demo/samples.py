"""The exports that the demo loads: queries of `samples.sql`, written by DuckDB."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from importlib.resources import files
from pathlib import Path

from lakeload.policy.templates import text

ORDERS, VISITS, PAYMENTS = 5_000, 400, 4_800
CHANGED, CANCELLED, NEW = 300, 100, 1_000
CHANGE_NOTE = "changed on Tuesday"
"""What the note of a changed order says."""

_FORMATS = {
    ".csv": "format csv, header",
    ".ndjson": "format json",
    # Two row groups, so that Spark reads the file with more than one task.
    ".parquet": f"format parquet, row_group_size {PAYMENTS // 2}",
}


@dataclass(frozen=True)
class Sample:
    """One file of the export and the rows in it."""

    table: str
    path: Path
    rows: int
    columns: tuple[str, ...]


def write_export(folder: Path, day: date) -> tuple[Sample, ...]:
    """Write the whole export of one day into `folder`, over the one of the day before."""
    queries = {
        "orders.csv": f"from orders($day, {ORDERS})",
        "visits.ndjson": f"from visits($day, {VISITS})",
        "payments.parquet": f"from payments($day, {PAYMENTS})",
    }
    return _write(folder, day, queries)


def write_first_day(folder: Path, day: date) -> tuple[Sample, ...]:
    """Write the export of the first day of tables that change."""
    queries = {
        "orders.csv": f"from first_orders($day, {ORDERS})",
        "payments.parquet": f"from payments($day, {PAYMENTS})",
    }
    return _write(folder, day, queries)


def write_second_day(folder: Path, day: date) -> tuple[Sample, ...]:
    """Write what has changed since the export that is in `folder`, over it."""
    counts = f"{CHANGED}, {CANCELLED}, {NEW}"
    queries = {
        "orders.csv": f"from changed_orders($orders, $day, {counts}, {text(CHANGE_NOTE)})",
        "payments.parquet": f"from larger_payments($day, {PAYMENTS})",
    }
    return _write(folder, day, queries)


def _write(folder: Path, day: date, queries: Mapping[str, str]) -> tuple[Sample, ...]:
    import duckdb  # only here: it takes longer to import than the rest of the command line

    folder.mkdir(parents=True, exist_ok=True)
    samples = []
    with duckdb.connect() as connection:
        connection.execute((files(__package__) / "samples.sql").read_text(encoding="utf-8"))
        connection.execute("select setseed(?)", [day.day / 31])
        for name, query in queries.items():
            path = folder / name
            values = {"$day": f"date '{day}'", "$orders": text(str(path))}
            for placeholder, value in values.items():
                query = query.replace(placeholder, value)
            connection.execute(f"create table {path.stem} as {query}")
            options = f"({_FORMATS[path.suffix]})"
            connection.execute(f"copy {path.stem} to {text(str(path))} {options}")
            made = connection.table(path.stem)
            samples.append(Sample(path.stem, path, len(made), tuple(made.columns)))
    return tuple(samples)
