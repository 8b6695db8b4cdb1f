"""The encoder: what it writes reads back the same, in parts that keep memory flat."""

from __future__ import annotations

import io
import itertools
import random
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeload_jobs.formats.data_files import encode
from lakeload_jobs.formats.data_files.encode import (
    BLOOM_FILTER_FPP,
    Encoding,
    FileTail,
    dictionary_columns,
    encode_file,
    footer_rows,
)


class Memory:
    """A sink that keeps everything."""

    def __init__(self) -> None:
        self.size = 0
        self.chunks: list[bytes] = []

    def write(self, data: bytes, /) -> int:
        self.chunks.append(data)
        self.size += len(data)
        return len(data)

    @property
    def file(self) -> pq.ParquetFile:
        return pq.ParquetFile(io.BytesIO(b"".join(self.chunks)))


ROWS: list[dict[str, Any]] = [
    {
        "byte": 1,
        "long": -(1 << 62),
        "zoned": datetime(2026, 11, 21, 10, 30, 0, 123456, tzinfo=UTC),
        "plain": datetime(1, 1, 1, 0, 0, 0, 1),
        "day": date(1582, 10, 4),
        "small": Decimal("1234567.89"),
        "wide": Decimal("12345678901234567890.123456789012345678"),
        "text": "naïve “日本” 🚀",
        "raw": b"\x00\xff",
        "flag": True,
        "nested": {"a": 1, "items": ["x", None]},
    },
    dict.fromkeys(
        ("byte", "long", "zoned", "plain", "day", "small", "wide", "text", "raw", "flag", "nested")
    ),
]
FIELDS: list[tuple[str, Any]] = [
    ("byte", pa.int8()),
    ("long", pa.int64()),
    ("zoned", pa.timestamp("us", "UTC")),
    ("plain", pa.timestamp("us")),
    ("day", pa.date32()),
    ("small", pa.decimal128(9, 2)),
    ("wide", pa.decimal128(38, 18)),
    ("text", pa.string()),
    ("raw", pa.binary()),
    ("flag", pa.bool_()),
    (
        "nested",
        pa.struct([("a", pa.int32()), ("items", pa.list_(pa.field("element", pa.string())))]),
    ),
]
SCHEMA = pa.schema(FIELDS)


def encoded(*batches: pa.RecordBatch, target_size: int = 1 << 30) -> Memory:
    sink = Memory()
    encode_file(batches[0], iter(batches[1:]), sink, target_size=target_size)
    return sink


def test_every_type_reads_back_as_it_was() -> None:
    batch = pa.RecordBatch.from_pylist(ROWS, schema=SCHEMA)

    file = encoded(batch).file

    assert file.schema_arrow == SCHEMA
    assert file.read().to_pylist() == ROWS


def test_types_are_stored_portably() -> None:
    schema = encoded(pa.RecordBatch.from_pylist(ROWS, schema=SCHEMA)).file.schema

    columns = {schema.column(i).name: schema.column(i) for i in range(len(schema.names))}
    assert (columns["zoned"].physical_type, columns["plain"].physical_type) == ("INT64", "INT64")
    assert '"isAdjustedToUTC": true' in columns["zoned"].logical_type.to_json().replace(
        '"isAdjustedToUTC":true', '"isAdjustedToUTC": true'
    )
    assert "isAdjustedToUTC=false" in str(columns["plain"].logical_type)
    assert "microseconds" in str(columns["plain"].logical_type)
    assert str(columns["small"].logical_type) == "Decimal(precision=9, scale=2)"
    assert str(columns["wide"].logical_type) == "Decimal(precision=38, scale=18)"


def test_only_encodings_of_the_first_format_version_are_used() -> None:
    batch = pa.RecordBatch.from_pylist(ROWS * 500, schema=SCHEMA)

    group = encoded(batch).file.metadata.row_group(0)

    for index in range(group.num_columns):
        column = group.column(index)
        assert column.compression == "GZIP"
        assert set(column.encodings) <= {"PLAIN", "RLE", "RLE_DICTIONARY", "PLAIN_DICTIONARY"}


def test_duckdb_reads_the_same_values() -> None:
    batch = pa.RecordBatch.from_pylist(ROWS, schema=SCHEMA)
    path = io.BytesIO(b"".join(encoded(batch).chunks))

    with duckdb.connect() as connection:
        found = connection.from_arrow(pq.read_table(path)).filter("text is not null")
        rows = found.select("small", "wide", "text", "raw").fetchall()

    assert rows == [(ROWS[0]["small"], ROWS[0]["wide"], ROWS[0]["text"], ROWS[0]["raw"])]


def test_maps_have_the_group_name_of_the_specification() -> None:
    kind = pa.map_(pa.string(), pa.int64())
    batch = pa.RecordBatch.from_pydict(
        {"m": pa.array([[("a", 1)], None, []], kind), "n": pa.array([1, 2, 3])}
    )

    file = encoded(batch, batch).file

    assert "key_value" in str(file.schema)
    assert file.read().to_pylist() == batch.to_pylist() * 2
    assert file.metadata.row_group(0).column(0).compression == "GZIP"


def test_a_file_ends_after_the_batch_that_fills_it() -> None:
    batches = [
        pa.RecordBatch.from_pydict({"t": [f"{i}-{j}-{i * j}" for j in range(5000)]})
        for i in range(40)
    ]
    rest = iter(batches[1:])
    sink = Memory()

    rows = encode_file(batches[0], rest, sink, target_size=100_000)

    left = sum(batch.num_rows for batch in rest)
    assert 0 < left < 195_000
    assert rows + left == 200_000
    assert sink.file.metadata.num_rows == rows
    assert 100_000 <= sink.size < 250_000


@pytest.mark.parametrize("target", [1 << 20, 4 << 20])
def test_file_size_is_close_to_the_target(target: int) -> None:
    choose = random.Random(1)  # noqa: S311 - data, no secret
    rows = 2000
    batches = (
        pa.RecordBatch.from_pydict(
            {
                "id": list(range(i * rows, (i + 1) * rows)),
                "x": [choose.random() for _ in range(rows)],
                "t": [f"name-{choose.randrange(50_000)}" for _ in range(rows)],
            }
        )
        for i in range(400)
    )
    sink = Memory()

    encode_file(next(batches), batches, sink, target_size=target)

    assert 0.95 * target < sink.size < 1.05 * target


def test_batches_are_pulled_only_as_the_encoder_needs_them() -> None:
    pulled = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal pulled
        for _ in range(1000):
            pulled += 1
            yield batch

    batch = pa.RecordBatch.from_pydict({"t": [str(i * i) for i in range(2000)]})
    encode_file(batch, batches(), Memory(), target_size=50_000)

    assert pulled < 100


def test_a_row_group_that_outgrows_its_budget_ends_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(encode, "ROW_GROUP_BYTES", 100_000)
    narrow = pa.RecordBatch.from_pydict({"t": ["x"] * 1000})
    wide = pa.RecordBatch.from_pydict({"t": ["y" * 10_000] * 100})
    rest = iter([wide] * 10)

    rows = encode_file(narrow, rest, Memory(), target_size=1 << 30)

    assert rows < 2000
    assert next(rest, None) is not None


def test_encoder_raises_errors_of_the_source_unchanged() -> None:
    batch = pa.RecordBatch.from_pydict({"a": [1]})

    def failing() -> Iterator[pa.RecordBatch]:
        yield batch
        raise LookupError("the source broke")

    with pytest.raises(LookupError, match="the source broke"):
        encode_file(batch, failing(), Memory(), target_size=1 << 30)


@pytest.mark.parametrize("kind", [pa.int64(), pa.map_(pa.string(), pa.int64())], ids=str)
def test_encoder_raises_errors_of_the_sink_unchanged(kind: Any) -> None:
    class Broken(Memory):
        def write(self, data: bytes, /) -> int:
            raise PermissionError("denied")

    batch = pa.RecordBatch.from_arrays([pa.nulls(3, kind)], names=["a"])
    with pytest.raises(PermissionError, match="denied"):
        encode_file(batch, iter([]), Broken(), target_size=1 << 30)


def test_a_dictionary_is_used_where_values_repeat() -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "unique": [f"id-{i}" for i in range(1000)],
            "repeated": ["a", "b"] * 500,
            "constant": ["c"] * 1000,
            "empty": pa.nulls(1000, pa.string()),
            "nested": [{"k": i % 3, "u": i} for i in range(1000)],
        }
    )

    assert dictionary_columns(batch) == {
        ("unique",): False,
        ("repeated",): True,
        ("constant",): True,
        ("empty",): False,
        ("nested", "k"): True,
        ("nested", "u"): False,
    }


@pytest.mark.parametrize("filters", [(), ("id", "name")])
def test_bloom_filters_of_named_columns_find_what_is_there(
    filters: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encode, "ROW_GROUP_BYTES", 1 << 18)
    rows = 20_000
    whole = pa.table(
        {
            "id": pa.array([n * 3 for n in range(rows)], pa.int64()),
            "name": [f"customer {n * 3}" for n in range(rows)],
            "other": pa.array([n * 3 for n in range(rows)], pa.int32()),
        }
    )
    batches = whole.to_batches(max_chunksize=1000)
    sink = Memory()
    encode_file(
        batches[0],
        iter(batches[1:]),
        sink,
        target_size=1 << 30,
        encoding=Encoding(
            bloom_filters=dict.fromkeys((*filters, "not in this file"), BLOOM_FILTER_FPP)
        ),
    )
    path = tmp_path / "file.parquet"
    path.write_bytes(b"".join(sink.chunks))
    connection = duckdb.connect()
    columns = connection.execute(
        f"SELECT row_group_id, path_in_schema, bloom_filter_length FROM parquet_metadata('{path}')"
    ).fetchall()
    groups = 1 + max(group for group, *_ in columns)

    assert sink.file.read().equals(whole)
    assert groups >= 2
    assert {name for _, name, length in columns if length} == set(filters)
    # As large as the rows of a group need, not as a million do.
    assert all((length or 0) < 40_000 for *_, length in columns)
    for name in filters:
        literal = {"id": "{}::BIGINT", "name": "'customer {}'"}[name]
        groups_left = partial(_groups_left, connection, path, name)
        present = [groups_left(literal.format(3 * n)) for n in range(0, rows, 200)]
        absent = [groups_left(literal.format(3 * n + 1)) for n in range(0, rows, 200)]
        assert min(present) >= 1
        assert sum(absent) <= 0.05 * groups * len(absent)


def _groups_left(connection: duckdb.DuckDBPyConnection, path: Path, column: str, value: str) -> int:
    """Return how many row groups DuckDB would read for `column = value`, by bloom filters alone."""
    probe = f"FROM parquet_bloom_probe('{path}', '{column}', {value})"
    found = connection.execute(probe).fetchall()
    return sum(not excluded for *_, excluded in found)


def test_bloom_filters_are_as_large_as_their_share_of_absent_values_needs() -> None:
    batch = pa.record_batch({name: pa.array(range(5000)) for name in ("coarse", "usual", "fine")})
    shares = {"coarse": 0.5, "usual": BLOOM_FILTER_FPP, "fine": 0.00001}
    sink = Memory()
    encoding = Encoding(bloom_filters=shares)
    encode_file(batch, iter(()), sink, target_size=1 << 30, encoding=encoding)
    file = pa.BufferReader(b"".join(sink.chunks))
    group: Any = pq.ParquetFile(file).metadata.row_group(0)
    lengths = [group.column(n).bloom_filter_length for n in range(3)]

    assert all(small < large for small, large in itertools.pairwise(lengths))


@pytest.mark.parametrize("filters", [(), ("text",)], ids=["arro3", "pyarrow"])
def test_every_column_of_simple_type_has_a_page_index(filters: tuple[str, ...]) -> None:
    batch = pa.RecordBatch.from_pylist(ROWS, schema=SCHEMA)
    sink = Memory()
    encode_file(
        batch,
        iter(()),
        sink,
        target_size=1 << 30,
        encoding=Encoding(bloom_filters=dict.fromkeys(filters, BLOOM_FILTER_FPP)),
    )
    group = sink.file.metadata.row_group(0)
    chunks = [group.column(n) for n in range(group.num_columns)]

    assert all(chunk.has_offset_index and chunk.has_column_index for chunk in chunks)


def _texts(rows: int, size: int) -> pa.RecordBatch:
    return pa.record_batch({"text": [f"{row:06}" + "x" * size for row in range(rows)]})


@pytest.mark.parametrize("filters", [(), ("text",)])
def test_wide_rows_have_row_groups_of_their_bytes(
    monkeypatch: pytest.MonkeyPatch, filters: tuple[str, ...]
) -> None:
    monkeypatch.setattr(encode, "ROW_GROUP_BYTES", 1 << 20)
    sink = Memory()
    rest = iter([_texts(4, 100_000) for _ in range(9)])

    rows = encode_file(
        _texts(4, 100_000),
        rest,
        sink,
        target_size=1 << 30,
        encoding=Encoding(bloom_filters=dict.fromkeys(filters, BLOOM_FILTER_FPP)),
    )

    metadata = sink.file.metadata
    assert rows == 40
    sizes = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    assert max(sizes) <= 12


def test_a_file_of_small_row_groups_ends_where_rows_become_narrow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(encode, "ROW_GROUP_BYTES", 1 << 20)
    rest = iter([_texts(500, 10) for _ in range(9)])
    first = Memory()

    rows = encode_file(_texts(4, 100_000), rest, first, target_size=1 << 30)

    assert 0 < rows < 4_504
    assert first.file.metadata.num_row_groups < 200


def test_footer_of_a_file_counts_its_rows() -> None:
    batch = pa.record_batch({"id": pa.array(range(5_000)), "text": pa.array(["x"] * 5_000)})
    for encoding in (Encoding(), Encoding(whole_statistics=True)):
        sink = Memory()
        tail = FileTail(sink)
        encode_file(batch, iter([batch]), tail, target_size=1 << 30, encoding=encoding)
        footer = tail.footer()
        assert footer is not None
        assert footer_rows(footer) == 10_000

    short = FileTail(Memory(), 64)
    for chunk in tail_chunks(b"".join(sink.chunks)):
        short.write(chunk)
    assert short.footer() is None


def tail_chunks(data: bytes) -> list[bytes]:
    """Return a file in pieces that are smaller than its footer."""
    return [data[first : first + 16] for first in range(0, len(data), 16)]
