"""Rows of databases come in batches of a few megabytes, and a value may be too large."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.sources import batch_sizes
from lakeload_jobs.sources.batch_sizes import BATCH_BYTES, BATCH_ROWS, bounded
from lakeload_jobs.sources.databases.engines.mysql.read import fetch_batch
from lakeload_jobs.sources.databases.engines.mysql.sql import quoted

MIB = 1 << 20


class Cursor:
    """A cursor that streams rows."""

    def __init__(self, rows: Iterator[tuple[Any, ...]]) -> None:
        self._rows = rows

    def fetchone(self) -> tuple[Any, ...] | None:
        return next(self._rows, None)


def test_narrow_then_wide_rows_of_mysql_stop_at_the_bytes_of_a_batch() -> None:
    wide = "x" * MIB
    rows = [(str(n), None, "") for n in range(100_000)] + [(str(n), wide, b"") for n in range(50)]
    cursor = Cursor(iter(rows))

    batches = list(iter(lambda: fetch_batch(cursor), []))

    assert [row for batch in batches for row in batch] == rows
    assert len(batches[0]) == BATCH_ROWS
    assert max(sum(row[1] is not None for row in batch) for batch in batches) == BATCH_BYTES // MIB


def test_a_batch_of_a_database_is_cut_by_its_bytes() -> None:
    batch = pa.record_batch({"n": list(range(40)), "t": ["x"] * 20 + ["y" * MIB] * 20})

    parts = list(bounded(batch, "shop.orders", quoted))

    assert pa.Table.from_batches(parts).to_pylist() == batch.to_pylist()
    assert max(part.nbytes for part in parts) <= BATCH_BYTES


def test_a_large_value_of_a_database_names_table_and_column(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batch_sizes, "MAX_VALUE_BYTES", 2 * MIB)
    batch = pa.record_batch({"n": [1, 2], "t": ["x", "y" * (3 * MIB)]})

    with pytest.raises(LoadFailed) as failed:
        list(bounded(batch, "shop.orders", quoted))

    assert failed.value.message == (
        "reading `shop.orders`: a value of column `t` is 4 MiB, and at most 2 MiB are read"
    )
    assert f"the condition ``octet_length(`t`) > {2 * MIB}`` finds" in str(failed.value.hint)
