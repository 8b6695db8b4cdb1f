"""Bad values that a JDBC driver has read, in one table for all batches."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest

from lakeload_jobs.sources.base import BadValuesFound
from lakeload_jobs.sources.databases.engines.driver.source import ReadRows

OLD, NEW = date(1, 1, 1), date(2024, 2, 29)


def _batches(*days: date) -> list[pa.RecordBatch]:
    """Return rows in batches of four, each with the count of all rows at its end."""
    rows = [{"id": n, "day": day, "count": len(days)} for n, day in enumerate(days)]
    return [pa.RecordBatch.from_pylist(rows[at : at + 4]) for at in range(0, len(rows), 4)]


def test_bad_values_of_all_batches_are_one_table() -> None:
    read = ReadRows("PUBLIC.ORDERS", ("id", "day"), "FAIL", ("id",), None)
    batches = _batches(NEW, NEW, NEW, NEW, OLD, *[OLD, NEW] * 11)
    loaded: list[pa.RecordBatch] = []

    with pytest.raises(BadValuesFound) as raised:
        loaded.extend(read(iter(batches)))

    lines = raised.value.message.splitlines()
    assert lines[:2] == ["12 values or records cannot be loaded:", "  reading `PUBLIC.ORDERS`:"]
    assert lines[2].startswith("    row with id = 4: column `day`: the value `0001-01-01` cannot")
    assert (len(lines), lines[-1]) == (13, "  and 2 more")
    assert [batch.to_pydict() for batch in loaded] == [{"id": [0, 1, 2, 3], "day": [NEW] * 4}]
    assert raised.value.hint == "set `on_bad_value: 'NULL'`"


def test_bad_values_of_all_batches_are_null_where_they_may_be() -> None:
    read = ReadRows("PUBLIC.ORDERS", ("id", "day"), "NULL", ("id",), None)

    rows = [
        row for batch in read(iter(_batches(NEW, *[OLD, NEW] * 3))) for row in batch.to_pylist()
    ]

    assert [row["day"] for row in rows] == [NEW, None, NEW, None, NEW, None, NEW]
