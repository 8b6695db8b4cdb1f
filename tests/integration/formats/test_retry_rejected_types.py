"""`--retry-rejected` of Parquet, ORC and Avro: records are read again as their files had them."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.contract.spec import (
    ColumnsSpec,
    FileFormatName,
    FilesInput,
    RejectedInput,
    RejectLimit,
    RunOptions,
    TableSpec,
)
from tests.integration.formats.worlds import World

AT = 1_767_323_045_678_901_000
NANOS = [AT, AT + 1, AT, AT + 2]
PRICES = ["10.5", "2.25", "3,5", "4.0"]
RAW = [b"\x00\xff"] * 4


def parquet(path: Path) -> None:
    at = pa.array(NANOS, pa.timestamp("ns"))
    table = pa.table({"id": [1, 2, 3, 4], "at": at, "price": PRICES, "raw": RAW})
    pq.write_table(table, path, row_group_size=3)


def orc_file(path: Path) -> None:
    at = pa.array(NANOS, pa.timestamp("ns"))
    orc.write_table(pa.table({"id": [1, 2, 3, 4], "at": at, "price": PRICES, "raw": RAW}), path)


def avro(path: Path) -> None:
    nanos = {"type": "long", "logicalType": "local-timestamp-nanos"}
    types: dict[str, Any] = {"id": "long", "at": nanos, "price": "string", "raw": "bytes"}
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    rows = zip([1, 2, 3, 4], NANOS, PRICES, RAW, strict=True)
    sink = io.BytesIO()
    schema = {"type": "record", "name": "r", "fields": fields}
    fastavro.writer(sink, schema, [dict(zip(types, row, strict=True)) for row in rows])
    path.write_bytes(sink.getvalue())


WRITERS: dict[FileFormatName, Callable[[Path], None]] = {
    "PARQUET": parquet,
    "ORC": orc_file,
    "AVRO": avro,
}


def run(world: World, table: TableSpec, job: str, **changes: Any) -> TableResult:
    given = {
        "on_bad_value": "QUARANTINE",
        "options": RunOptions(table_handling="APPEND"),
        "max_rejected": RejectLimit(percent=100),
        **changes,
    }
    return world.run(world.spec(table, job_id=job, **given)).tables[0]


def again(table: TableSpec, job: str, **options: str) -> TableSpec:
    """Return the table as `--retry-rejected` has it, with other reader options."""
    given = table.input
    assert isinstance(given, FilesInput)
    mark = hashlib.sha256(f"{table.fingerprint} {job}".encode()).hexdigest()
    return replace(
        table, input=RejectedInput(job, replace(given, options=options)), fingerprint=mark
    )


def rejected(world: World, job: str) -> list[tuple[Any, ...]]:
    names = ("_supa_index", "row_group", "row_number", "column_name", "column_value")
    rows = [row for row in world.rows("orders_rejected") if row["_supa_job_id"] == job]
    return sorted(tuple(row[name] for name in names) for row in rows)


@pytest.mark.parametrize(
    ("world", "file_format"),
    # Which records are read again is the reader's: each is asked, for one format of tables.
    [*(("parquet", name) for name in WRITERS), ("iceberg", "PARQUET")],
    indirect=["world"],
)
def test_retry_rejected_typed_records_are_read_under_the_settings_of_now(
    world: World, file_format: FileFormatName
) -> None:
    """Two have values that the reader finds bad, and one a value that `columns.types` rejects."""
    folder = Path(world.folder()) / "day=2026-01-02"
    folder.mkdir(parents=True)
    file = folder / f"a.{file_format.lower()}"
    WRITERS[file_format](file)
    given = FilesInput(file_format, (world.folder(),), {})
    columns = ColumnsSpec(types={"price": "decimal(9,2)"})
    orders = replace(world.table(), input=given, columns=columns)
    first = run(world, orders, "first")
    file.unlink()

    digits = run(world, again(orders, "first", on_loss="TRUNCATE"), "second")
    null = run(world, again(orders, "second"), "third", on_bad_value="NULL")
    none = run(world, again(orders, "first"), "fourth")

    assert (first.error, first.rows, first.rejected) == (None, 1, 3)
    assert (digits.error, digits.rows, digits.rejected) == (None, 2, 1)
    assert digits.notes[0] == "3 records read again: the rejected records of job `first`"
    assert (null.error, null.rows) == (None, 1)
    assert none.status == "NO_OP"
    rows = sorted(world.rows(), key=lambda row: row["id"])
    assert {(row["at"], row["raw"], row["day"]) for row in rows} == {
        (datetime(2026, 1, 2, 3, 4, 5, 678901), b"\x00\xff", date(2026, 1, 2))
    }
    assert [(row["id"], str(row["price"])) for row in rows] == [
        (1, "10.50"),
        (2, "2.25"),
        (3, "None"),
        (4, "4.00"),
    ]
    group, last = (1, (2, 1)) if file_format == "PARQUET" else (None, (None, 4))
    assert [(*row[:4], row[4][-3:]) for row in rejected(world, "first")] == [
        (2, group, 2, "at", "001"),
        (3, group, 3, "price", "3,5"),
        (4, *last, "at", "002"),
    ]
    assert rejected(world, "second") == [(2, group, 3, "price", "3,5")]
    assert world.left() == []


@pytest.mark.parametrize("world", ["parquet"], indirect=True)
def test_retry_rejected_records_that_spark_has_read_are_loaded(world: World) -> None:
    file = Path(world.folder(), "a.parquet")
    file.parent.mkdir(parents=True)
    table = pa.table({"id": [1, 2], "price": ["1.5", "2,5"], "raw": RAW[:2]})
    pq.write_table(table, file)
    orders = world.table(str(file), columns=ColumnsSpec(types={"price": "decimal(9,2)"}))
    first = run(world, orders, "first", reader="JVM")
    file.unlink()

    as_text = replace(orders, columns=ColumnsSpec(exclude=("price",)))
    second = run(world, again(as_text, "first"), "second", reader="JVM")

    assert (first.error, first.rows, first.rejected) == (None, 1, 1)
    assert (second.error, second.rows) == (None, 1)
    rows = sorted(world.rows(), key=lambda row: row["id"])
    assert [(row["id"], row.get("price") and str(row["price"]), row["raw"]) for row in rows] == [
        (1, "1.50", b"\x00\xff"),
        (2, None, b"\x00\xff"),
    ]
