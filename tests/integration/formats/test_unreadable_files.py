"""Files that cannot be read at all, under QUARANTINE: they do not hold up the files behind them."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.contract.spec import (
    FileFormatName,
    FilesInput,
    RejectedInput,
    RejectLimit,
    RunOptions,
)
from tests.integration.formats.worlds import World

ONE = RejectLimit(rows=1)
APPEND = RunOptions(table_handling="APPEND")
Row = Mapping[str, Any]


def csv(rows: list[Row]) -> bytes:
    lines = ["id,text", *(f"{row['id']},{row['text']}" for row in rows)]
    return gzip.compress("\n".join(lines).encode(), mtime=0)


def parquet(rows: list[Row]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink, compression="zstd")
    return sink.getvalue()


def orc(rows: list[Row]) -> bytes:
    sink = io.BytesIO()
    pyarrow.orc.write_table(pa.Table.from_pylist(rows), sink, compression="ZLIB")
    return sink.getvalue()


def avro(rows: list[Row]) -> bytes:
    fields = [{"name": "id", "type": "long"}, {"name": "text", "type": "string"}]
    schema = fastavro.parse_schema({"type": "record", "name": "r", "fields": fields})
    sink = io.BytesIO()
    fastavro.writer(sink, schema, rows, codec="deflate")
    return sink.getvalue()


CONTENTS: dict[FileFormatName, Callable[[list[Row]], bytes]] = {
    "CSV": csv,
    "JSON": lambda rows: json.dumps(rows).encode(),
    "PARQUET": parquet,
    "ORC": orc,
    "AVRO": avro,
}


def rows_from(first: int) -> list[Row]:
    return [{"id": first + number, "text": f"row {number}" * 9} for number in range(200)]


def cut_off(data: bytes) -> bytes:
    return data[:-30]


def damaged_inside(data: bytes) -> bytes:
    """Return the file with other bytes where values lie: its header and footer are as they were."""
    middle = len(data) // 3
    return (
        data[:middle]
        + bytes(byte ^ 0x5A for byte in data[middle : middle + 60])
        + data[middle + 60 :]
    )


def load(world: World, name: FileFormatName, **changes: Any) -> TableResult:
    options = {"header": "true"} if name == "CSV" else {}
    policy = changes.pop("on_changed_file", None)
    given = FilesInput(name, (world.folder(),), options, incremental=True, on_changed_file=policy)
    settings = {
        "on_bad_value": "QUARANTINE",
        "max_rejected": ONE,
        "options": APPEND,
        **changes,
    }
    result = world.run(world.spec(replace(world.table(), input=given), **settings))
    return result.tables[0]


def ids(world: World) -> list[int]:
    return sorted(row["id"] for row in world.rows())


@pytest.mark.parametrize(
    ("world", "name", "damage"),
    [
        ("parquet", "CSV", cut_off),
        ("iceberg", "CSV", cut_off),
        ("parquet", "PARQUET", damaged_inside),
        # The rest is the source's: one table format shows it.
        ("parquet", "PARQUET", cut_off),
        ("parquet", "JSON", cut_off),
        ("parquet", "ORC", cut_off),
        ("parquet", "ORC", damaged_inside),
        ("parquet", "AVRO", damaged_inside),
    ],
    indirect=["world"],
)
def test_a_file_that_cannot_be_read_is_set_aside_and_loaded_when_it_is_replaced(
    world: World, name: FileFormatName, damage: Callable[[bytes], bytes]
) -> None:
    folder, content = Path(world.folder()), CONTENTS[name]
    folder.mkdir(exist_ok=True)
    suffix = ".csv.gz" if name == "CSV" else f".{name.lower()}"
    (folder / f"a{suffix}").write_bytes(content(rows_from(0)))
    poison = folder / f"b{suffix}"
    poison.write_bytes(damage(content(rows_from(1_000))))
    (folder / f"c{suffix}").write_bytes(content(rows_from(2_000)))

    failed = load(world, name, on_bad_value="FAIL")
    first = load(world, name)
    again = load(world, name)

    assert failed.error is not None
    assert f"reading `{poison}`: " in failed.error.message
    assert first.error is None, first.error
    assert (first.rows, first.rejected) == (400, 1)
    assert any(f"`{poison}` was set aside as a whole: " in text for text in first.warnings)
    (aside,) = world.rows("orders_rejected")
    assert aside["source_file"] == str(poison)
    assert aside["reason"]
    assert [aside["source_line"], aside["row_number"], aside["raw_record"]] == [None] * 3
    assert again.status == "NO_OP"

    # A file alone that cannot be read does not hold up the queue, either.
    lonely = folder / f"d{suffix}"
    lonely.write_bytes(damage(content(rows_from(3_000))))
    alone = load(world, name)
    poison.write_bytes(content(rows_from(1_000)))
    fixed = load(world, name)

    assert alone.error is None, alone.error
    assert (alone.rows, alone.rejected) == (0, 1)
    assert fixed.error is None, fixed.error
    assert (fixed.rows, fixed.rejected) == (200, 0)
    assert ids(world) == [first + n for first in (0, 1_000, 2_000) for n in range(200)]
    assert world.left() == []


def test_more_unreadable_files_than_allowed_fail_and_name_the_first(world: World) -> None:
    folder = Path(world.folder())
    folder.mkdir(exist_ok=True)
    (folder / "a.parquet").write_bytes(parquet(rows_from(0)))
    for name in ("b", "c"):
        (folder / f"{name}.parquet").write_bytes(cut_off(parquet(rows_from(0))))

    failed = load(world, "PARQUET")

    assert failed.error is not None
    assert failed.error.type == "TooManyRejected"
    assert "2 of 202 records" in failed.error.message
    assert f"reading `{folder}/b.parquet`: " in failed.error.message


def test_changed_file_with_rejected_records_fails_unless_on_changed_file_is_set(
    world: World,
) -> None:
    folder = Path(world.folder())
    folder.mkdir(exist_ok=True)
    (folder / "a.csv").write_text("id,text\n1,a\n")
    partly = folder / "b.csv"
    partly.write_text("id,text\n2,b\n3\n")
    first = load(world, "CSV")
    (folder / "a.csv").write_text("id,text\n1,a\n10,a\n")
    partly.write_text("id,text\n2,b\n3,c\n")

    failed = load(world, "CSV")
    skipped = load(world, "CSV", on_changed_file="SKIP")
    (folder / "a.csv").write_text("id,text\n1,a\n10,a\n11,a\n")
    other = load(world, "CSV")
    partly.write_text("id,text\n2,b\n3,c\n4,d\n")
    still = load(world, "CSV")
    loaded = load(world, "CSV", on_changed_file="LOAD")
    partly.write_text("id,text\n5,e\n")
    settled = load(world, "CSV")

    assert (first.rows, first.rejected) == (2, 1)
    assert failed.error is not None
    assert f"`{partly}` has changed since it was loaded, and records" in failed.error.message
    assert "`on_changed_file: LOAD`" in (failed.error.hint or "")
    assert (skipped.error, skipped.rows) == (None, 0)
    assert (other.error, other.rows) == (None, 3)
    assert still.error is not None
    assert f"`{partly}` has changed since it was loaded, and records" in still.error.message
    assert (loaded.error, loaded.rows) == (None, 3)
    assert (settled.error, settled.rows) == (None, 1)


def test_a_file_that_was_set_aside_is_not_read_by_a_retry(world: World) -> None:
    folder = Path(world.folder())
    folder.mkdir(exist_ok=True)
    (folder / "a.csv.gz").write_bytes(csv(rows_from(0)))
    (folder / "b.csv.gz").write_bytes(cut_off(csv(rows_from(1_000))))
    assert load(world, "CSV", job_id="first").rejected == 1
    given = FilesInput("CSV", (world.folder(),), {"header": "true"})
    table = replace(world.table(), input=RejectedInput("first", given), fingerprint="retry")

    result = world.run(world.spec(table, options=APPEND)).tables[0]

    assert (result.status, result.error) == ("NO_OP", None)
    assert result.notes == (
        "job `first` has set whole files of this table aside and no record: replace them, and the "
        "next load reads them",
    )
