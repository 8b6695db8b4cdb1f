"""Batches of files are bounded in bytes, and a value that is too large is refused by name."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from lakeload_jobs.contract.spec import ColumnsSpec
from lakeload_jobs.rows.columns import map_columns
from lakeload_jobs.sources import batch_sizes
from lakeload_jobs.sources.base import UnreadableFile
from lakeload_jobs.sources.batch_sizes import ValueTooLarge, row_ranges
from lakeload_jobs.sources.files.formats.avro.reader import AvroReader, read_avro_headers
from lakeload_jobs.sources.files.formats.orc.reader import OrcReader, read_orc_footers
from lakeload_jobs.sources.files.formats.parquet import reader as parquet
from lakeload_jobs.sources.files.formats.parquet.pages import pages
from lakeload_jobs.sources.files.formats.parquet.reader import (
    ParquetReader,
    ParquetSettings,
    read_footers,
)
from lakeload_jobs.sources.files.typed.columns import unite
from lakeload_jobs.sources.files.typed.rows import ReadTyped, split_files
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.local_listing import local_files
from tests.text_tables import csv_table, json_table
from tests.unit.sources.files.formats.avro.test_reader import packed
from tests.unit.sources.files.formats.avro.test_reader import write as write_avro
from tests.unit.sources.files.formats.csv.test_table import here
from tests.unit.sources.files.typed.typed_files import file_states

KIB, MIB = 1 << 10, 1 << 20


def narrow_then_wide(wide: int) -> list[str]:
    """Return texts of which some have a MiB."""
    return ["x" * 10] * 10_000 + ["y" * MIB] * wide + ["z"] * 10


def typed_batches(path: Path) -> Iterator[pa.RecordBatch]:
    states = file_states([path])
    reader: Any
    if path.suffix == ".parquet":
        schemas = read_footers(states, FileBytes(), ParquetSettings())
        reader = ParquetReader(FileBytes(), exact=True)
    elif path.suffix == ".orc":
        schemas, reader = read_orc_footers(states, FileBytes()), OrcReader(FileBytes())
    else:
        schemas, reader = read_avro_headers(states, FileBytes()), AvroReader(FileBytes())
    columns = unite(schemas, [column.name for column in schemas[0].columns])
    read = ReadTyped(pa.schema([(column.name, column.kind) for column in columns]), reader)
    for part in split_files(schemas, read, base=None, parallelism=2).parts:
        yield from read(part)


def text_batches(path: Path) -> Iterator[pa.RecordBatch]:
    table: Any = csv_table if path.suffix == ".csv" else json_table
    options = {"lines": True} if path.suffix == ".json" else {}
    header = {"header": "true"} if path.suffix == ".csv" else {}
    splits = table(tuple(local_files([str(path)])), header, **options).split(here).splits
    for part in splits.parts:
        yield from splits.read(part)


def write(path: Path, values: Sequence[str | None], **options: Any) -> Path:
    table = pa.table({"id": range(len(values)), "text": pa.array(values, pa.string())})
    match path.suffix:
        case ".parquet":
            pq.write_table(table, path, **options)
        case ".orc":
            orc.write_table(table, path, **options)
        case ".avro":
            kinds = [("id", "long"), ("text", ["null", "string"])]
            fields = [{"name": name, "type": kind} for name, kind in kinds]
            codec = options.pop("codec", "null")
            by_hand = codec in ("snappy", "zstandard")
            write_avro(path, fields, table.to_pylist(), "null" if by_hand else codec, **options)
            if by_hand:
                packed(path, codec)
        case ".csv":
            pa_csv.write_csv(table, path)
        case _:
            path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    return path


BATCHES: dict[str, Callable[[Path], Iterator[pa.RecordBatch]]] = {
    "parquet": typed_batches,
    "orc": typed_batches,
    "avro": typed_batches,
    "csv": text_batches,
    "json": text_batches,
}


@pytest.mark.parametrize("form", BATCHES)
def test_narrow_then_wide_rows_come_in_batches_of_a_few_megabytes(
    tmp_path: Path, form: str
) -> None:
    values = narrow_then_wide(12)
    path = write(tmp_path / f"a.{form}", values)

    batches = list(BATCHES[form](path))

    assert max(batch.nbytes for batch in batches) <= batch_sizes.BATCH_BYTES
    assert len(batches) < 200
    texts = [text for batch in batches for text in batch.column("text").to_pylist()]
    assert texts == values


@pytest.mark.parametrize(
    "options",
    [{"use_dictionary": False}, {}, {"use_dictionary": False, "data_page_version": "2.0"}],
)
def test_parquet_rows_are_read_by_the_bytes_of_their_pages(
    tmp_path: Path, options: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that Arrow begins pages as other writers do, by their bytes.
    path = write(tmp_path / "a.parquet", narrow_then_wide(20), write_batch_size=4, **options)
    monkeypatch.setattr(parquet, "_LARGE_CHUNK", MIB)
    ((schema,), reader) = (
        read_footers(file_states([path]), FileBytes(), ParquetSettings()),
        ParquetReader(FileBytes(), exact=True),
    )
    (part,) = split_files(
        (schema,), ReadTyped(pa.schema([]), reader), base=None, parallelism=1
    ).parts

    with reader.open(part[0], ["id", "text"]) as batches:
        sizes = [sum(column.nbytes for column in batch.columns.values()) for batch in batches]

    assert max(sizes) <= 2 * batch_sizes.BATCH_BYTES
    assert len(sizes) < 250


def test_a_large_value_of_a_dictionary_is_not_read_into_many_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", ["x" * MIB, "y" * MIB] * 12)

    sizes = [batch.nbytes for batch in typed_batches(path)]

    assert max(sizes) <= batch_sizes.BATCH_BYTES


LARGE = ["a", "b" * (3 * MIB), "c"]


@pytest.mark.parametrize(
    ("form", "options", "where"),
    [
        ("parquet", {}, "row group 1, row 2: a value of column `text` is 4 MiB, and at most 2 MiB"),
        ("orc", {}, "row 2: a value of column `text` is 4 MiB, and at most 2 MiB are read"),
        ("avro", {"sync_interval": 1}, "row 2: a record is 4 MiB, and at most 2 MiB are read"),
        ("avro", {}, "rows 1 to 2: a block of records is 4 MiB, and at most 2 MiB are read"),
        ("avro", {"codec": "deflate"}, "rows 1 to 2: a block of records is 3 MiB, and at most"),
        ("avro", {"codec": "snappy"}, "rows 1 to 2: a block of records is 4 MiB, and at most 2"),
        ("avro", {"codec": "zstandard"}, "rows 1 to 2: a block of records is 3 MiB, and at most"),
        ("csv", {}, "the record that begins on line 3 is longer than"),
        ("json", {}, "the record that begins on line 2 is longer than"),
    ],
)
def test_a_value_that_is_too_large_is_refused_with_its_place(
    tmp_path: Path, form: str, options: Any, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / f"a.{form}", LARGE, **options)
    monkeypatch.setattr(batch_sizes, "MAX_VALUE_BYTES", 2 * MIB)
    monkeypatch.setattr("lakeload_jobs.sources.files.formats.avro.reader.MAX_VALUE_BYTES", 2 * MIB)
    monkeypatch.setattr("lakeload_jobs.sources.files.formats.json.records.MAX_RECORD", 2 * MIB)

    with pytest.raises(UnreadableFile) as failed:
        list(BATCHES[form](path))

    assert failed.value.message.startswith(f"reading `{path}`: {where}")
    hint = str(failed.value.hint)
    assert "store" in hint
    # The others read a record whole, with columns that are left out.
    assert ("columns.exclude" in hint) is (form in ("parquet", "orc"))


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_a_value_that_is_too_large_is_refused_before_it_is_decoded(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / f"a.{form}", ["b" * (3 * MIB)])
    monkeypatch.setattr(batch_sizes, "MAX_VALUE_BYTES", 2 * MIB)
    monkeypatch.setattr(parquet, "_LARGE_CHUNK", MIB)
    # Whoever decodes values fails otherwise.
    monkeypatch.setattr("lakeload_jobs.sources.files.formats.orc.reader._OpenStripe", None)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", None)

    with pytest.raises(UnreadableFile, match=r"a value of column `text` is [34] MiB, and at most"):
        list(typed_batches(path))


def test_avro_blocks_that_are_too_large_are_refused_with_the_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.avro", LARGE)
    monkeypatch.setattr(batch_sizes, "MAX_VALUE_BYTES", 2 * MIB)

    with pytest.raises(UnreadableFile, match="rows 1 to 2: a block of records is 4 MiB"):
        read_avro_headers(file_states([path]), FileBytes())


def test_a_column_that_is_not_loaded_may_have_large_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.parquet", LARGE)
    monkeypatch.setattr(batch_sizes, "MAX_VALUE_BYTES", 2 * MIB)
    monkeypatch.setattr(parquet, "_LARGE_CHUNK", MIB)
    schemas = read_footers(file_states([path]), FileBytes(), ParquetSettings())

    def rows(columns: dict[str, list[str]]) -> list[int]:
        kinds: dict[str, pa.DataType] = {"id": pa.int64(), "text": pa.string()}
        spec = ColumnsSpec(exclude=tuple(columns.get("exclude", ())))
        loaded = [(name, kinds[name]) for name in map_columns(list(kinds), spec).column_map]
        read = ReadTyped(pa.schema(loaded), ParquetReader(FileBytes(), exact=True))
        (part,) = split_files(schemas, read, base=None, parallelism=1).parts
        return [batch.num_rows for batch in read(part)]

    with pytest.raises(UnreadableFile) as failed:
        rows({})
    hint = failed.value.hint or ""
    assert hint.startswith("leave the column out with `columns.exclude`, or")

    assert sum(rows({"exclude": ["text"]})) == 3


@pytest.mark.parametrize(
    "column",
    [
        pa.array([["x" * KIB]] * 30),
        pa.array([{"a": "x" * KIB}] * 30),
        pa.array(["x" * KIB] * 30, pa.string_view()),
        pa.array(["x" * KIB] * 30).dictionary_encode(),
        pa.array([[("k", "x" * KIB)]] * 30, pa.map_(pa.string(), pa.string())),
    ],
    ids=lambda column: str(column.type)[:6],
)
def test_ranges_of_rows_cover_all_rows_once(column: Any) -> None:
    ranges = list(row_ranges([column], 30, 8 * KIB))

    assert [first for first, _ in ranges] == [
        sum(n for _, n in ranges[:at]) for at in range(len(ranges))
    ]
    assert sum(count for _, count in ranges) == 30
    if not pa.types.is_dictionary(column.type):
        assert max(count for _, count in ranges) <= 8


def test_the_row_of_a_nested_value_that_is_too_large_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batch_sizes, "MAX_VALUE_BYTES", 10 * KIB)
    small = pa.array([0] * 9)
    lists = pa.array([["x"]] * 7 + [["x" * KIB] * 11] + [["x"]])

    with pytest.raises(ValueTooLarge) as failed:
        list(row_ranges([small, lists], 9))

    assert (failed.value.place, failed.value.row) == (1, 7)


@pytest.mark.timeout(20)
def test_page_header_that_counts_more_than_the_file_holds_ends_the_pages() -> None:
    list_of_doubles = bytes([0x19, 0xF7, *[0xFF] * 8, 0x3F])

    assert list(pages(io.BytesIO(list_of_doubles), 0, len(list_of_doubles))) == []


def test_bytes_that_are_no_page_header_end_the_pages(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"\xff" * 100)

    with path.open("rb") as stream:
        assert list(pages(stream, 0, 100)) == []
