"""Bad values that a JDBC driver has read, in one table for all batches."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest

from lakeload_jobs.sources.base import BadValuesFound
from lakeload_jobs.sources.databases.columns import bad_value
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


def test_a_bad_value_is_told_with_the_key_of_its_row() -> None:
    assert str(bad_value("web.t", (("id", 7), ("at", "x")), "n", "12e9", "it is too large")) == (
        "reading `web.t`, row with id = 7, at = x: column `n`: the value `12e9` cannot be loaded: "
        "it is too large"
    )


def test_a_long_bad_value_of_a_row_without_a_key_is_cut() -> None:
    said = str(bad_value("web.t", (), "n", "9" * 61, "it is too large"))

    assert said.startswith(f"reading `web.t`: column `n`: the value `{'9' * 60}` cannot be loaded")
