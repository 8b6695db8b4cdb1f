"""Rejected records of Parquet, ORC and Avro: their exact form is read as their files are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.contract.spec import FileFormatName, FilesInput, OnBadValue, RejectedInput
from lakeload_jobs.rows.rejects import REJECTED_HELPER
from lakeload_jobs.sources.files.formats.avro.reader import AvroReader, read_avro_headers
from lakeload_jobs.sources.files.formats.orc.reader import OrcReader, read_orc_footers
from lakeload_jobs.sources.files.formats.parquet.reader import (
    ParquetReader,
    ParquetSettings,
    read_footers,
)
from lakeload_jobs.sources.files.spark.rejected import check_kept
from lakeload_jobs.sources.files.typed.columns import Column, FileSchema, settled, unite
from lakeload_jobs.sources.files.typed.exact import column_notes, is_exact_record, record_bytes
from lakeload_jobs.sources.files.typed.rows import FormatReader, OnLoss, ReadTyped, split_files
from lakeload_jobs.sources.files.typed.stored import StoredRecord, StoredRecords, stored_schemas
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState
from tests.corpus import variant

CORPUS = Path(__file__).with_name("files")


def _cases(ending: str) -> list[dict[str, Any]]:
    lines = (CORPUS.parent / "expected" / f"{ending}.jsonl").read_text("ascii").splitlines()
    return [json.loads(line) for line in lines]


FILES = sorted(
    f"{ending}/{file}"
    for ending in ("parquet", "orc")
    for case in _cases(ending)
    if "refused" not in case
    for file in case["files"]
)
LOSSES: tuple[OnLoss, ...] = ("FAIL", "TRUNCATE")
_MOST_ROWS = 40


def opened(path: Path) -> tuple[tuple[FileSchema, ...], FormatReader]:
    file = FileState(str(path), path.stat().st_size, 0)
    if path.suffix == ".parquet":
        schemas = read_footers([file], FileBytes(), ParquetSettings())
        return schemas, ParquetReader(FileBytes(), exact=True)
    if path.suffix == ".orc":
        return read_orc_footers([file], FileBytes()), OrcReader(FileBytes())
    return read_avro_headers([file], FileBytes()), AvroReader(FileBytes())


def columns_of(schemas: tuple[FileSchema, ...]) -> tuple[Column, ...]:
    columns = schemas[0].columns
    return unite(schemas, [one.name for one in columns if not (one.refused or one.only_spark)])


def read(
    schemas: tuple[FileSchema, ...],
    reader: FormatReader,
    columns: tuple[Column, ...],
    on_loss: OnLoss = "TRUNCATE",
    on_bad_value: OnBadValue = "QUARANTINE",
) -> pa.Table:
    schema = pa.schema([(column.name, settled(column.kind)) for column in columns])
    given = ReadTyped(schema, reader, on_loss, on_bad_value, columns=columns)
    splits = split_files(schemas, given, base=None, parallelism=2)
    batches = [batch for part in splits.parts for batch in splits.read(part)]
    return pa.Table.from_batches(batches, given.batch_schema)


def stored(
    schemas: tuple[FileSchema, ...], reader: FormatReader, columns: tuple[Column, ...]
) -> StoredRecords:
    """Return the exact form of the first rows of a file."""
    path = schemas[0].file.path
    return StoredRecords({path: tuple(_records(schemas, reader, columns))[:_MOST_ROWS]})


def _records(
    schemas: tuple[FileSchema, ...], reader: FormatReader, columns: tuple[Column, ...]
) -> Iterator[StoredRecord]:
    names = [column.name for column in columns]
    notes = column_notes(columns)
    given = ReadTyped(pa.schema([]), reader)
    for part in split_files(schemas, given, base=None, parallelism=1).parts:
        for piece in part:
            with reader.open(piece, names) as batches:
                first = 0
                for batch in batches:
                    for row in range(min(batch.rows, _MOST_ROWS)):
                        group, place = piece.place(first + row)
                        data = record_bytes(batch.columns, row, notes, batch.in_nanos)
                        yield StoredRecord(data, group, place)
                    first += batch.rows


def shown(table: pa.Table) -> list[str]:
    """Return values as text: some are beyond what Python has, and NaN is not itself."""
    names = [name for name in table.column_names if name != REJECTED_HELPER]
    return [str([table[name][row] for name in names]) for row in range(len(table))]


def rejects_of(table: pa.Table) -> list[Any]:
    return [
        row and {**row, "raw_bytes": row["raw_bytes"] is not None}
        for row in table[REJECTED_HELPER].to_pylist()
    ]


@pytest.mark.parametrize("name", FILES)
def test_stored_schemas_record_of_the_corpus_is_read_as_its_file(name: str) -> None:
    schemas, reader = opened(CORPUS / name)
    columns = columns_of(schemas)
    expected = {loss: read(schemas, reader, columns, loss) for loss in LOSSES}
    kept = stored(schemas, reader, columns)

    found = stored_schemas(kept, [schemas[0].file])

    if not len(expected["FAIL"]):
        assert found == ()
        return
    own = unite(found, [column.name for column in columns])
    assert [(c.name, c.kind, c.stored) for c in own] == [
        (c.name, c.kind, c.stored) for c in columns
    ]
    for loss, table in expected.items():
        again = read(found, kept, own, loss)
        whole = table.slice(0, _MOST_ROWS)
        assert again.schema == whole.schema
        assert shown(again) == shown(whole)
        assert rejects_of(again) == rejects_of(whole)


AVRO_TYPES: dict[str, tuple[Any, Any]] = {
    "number": (["null", "int", "string"], "seven"),
    "enum": ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "B"),
    "digits": (
        {"type": "fixed", "name": "d", "size": 21, "logicalType": "decimal", "precision": 50},
        Decimal("1" * 45),
    ),
    "at": ({"type": "long", "logicalType": "timestamp-nanos"}, 1_709_168_523_000_004_001),
    "pairs": ({"type": "map", "values": ["null", "long"]}, {"a": 1, "b": None}),
    "list": ({"type": "array", "items": "bytes"}, [b"\x00", b""]),
}


def test_stored_schemas_record_of_avro_is_read_as_its_file(tmp_path: Path) -> None:
    fields = [{"name": name, "type": kind} for name, (kind, _) in AVRO_TYPES.items()]
    with (tmp_path / "a.avro").open("wb") as file:
        schema = {"type": "record", "name": "r", "fields": fields}
        records = [{name: value for name, (_, value) in AVRO_TYPES.items()}] * 3
        fastavro.writer(file, schema, records)
    schemas, reader = opened(tmp_path / "a.avro")
    columns = columns_of(schemas)
    kept = stored(schemas, reader, columns)

    found = stored_schemas(kept, [schemas[0].file])

    own = unite(found, [column.name for column in columns])
    for loss in LOSSES:
        expected = read(schemas, reader, columns, loss)
        again = read(found, kept, own, loss)
        assert (shown(again), rejects_of(again)) == (shown(expected), rejects_of(expected))
    assert expected[REJECTED_HELPER].null_count == 3
    assert [column.stored for column in own] == [column.stored for column in columns]


def rejected(path: Path) -> list[Any]:
    schemas, reader = opened(path)
    return read(schemas, reader, columns_of(schemas), "FAIL")[REJECTED_HELPER].to_pylist()


def test_record_bytes_column_with_a_dictionary_leaves_it_out(tmp_path: Path) -> None:
    texts = pa.array([f"text number {number}" for number in range(5_000)]).dictionary_encode()
    nested = pa.StructArray.from_arrays([texts], names=["text"])
    at = pa.array([1_000] * 4_999 + [1_001], pa.timestamp("ns"))
    pq.write_table(pa.table({"text": texts, "in": nested, "at": at}), tmp_path / "a.parquet")

    (record,) = filter(None, rejected(tmp_path / "a.parquet"))

    assert is_exact_record(record["raw_bytes"])
    assert len(record["raw_bytes"]) < 5_000
    with pa.ipc.open_stream(record["raw_bytes"]) as stream:
        (row,) = stream.read_all().drop_columns(["at"]).to_pylist()
    assert row == {"text": "text number 4999", "in": {"text": "text number 4999"}}


def test_reject_variant_is_readable_and_exact(tmp_path: Path) -> None:
    value = {"price": Decimal("1.10"), "wide": Decimal("12345678901234567890.123"), "tags": [1]}
    kind = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    note = {"type": "struct", "fields": [{"name": "v", "type": "variant"}]}
    table = pa.table(
        {
            "v": pa.array([variant.encode(value), {"metadata": b"\x01", "value": b""}], kind),
            "at": pa.array([1_001, 1_000], pa.timestamp("ns")),
        }
    ).replace_schema_metadata({variant.NOTE: json.dumps(note)})
    pq.write_table(table, tmp_path / "a.parquet")

    digits, broken = rejected(tmp_path / "a.parquet")

    assert json.loads(digits["raw_record"])["v"] == {
        "price": 1.1,
        "tags": [1],
        "wide": "12345678901234567890.123",
    }
    assert json.loads(broken["raw_record"])["v"] == {"metadata": "AQ==", "value": ""}
    with pa.ipc.open_stream(digits["raw_bytes"]) as stream:
        assert stream.read_all()["v"].to_pylist() == [variant.encode(value)]


@pytest.mark.parametrize("raw", [None, b"", b"caf\xe9", b"\xff\xff\xff\xff"])
def test_check_kept_record_without_exact_form_is_rejected(raw: bytes | None) -> None:
    exact = record_bytes({"id": pa.array([1])}, 0, column_notes([Column("id", pa.int64(), "")]))

    def given(file_format: FileFormatName) -> RejectedInput:
        return RejectedInput("first", FilesInput(file_format, ("/in",), {}))

    check_kept([exact, exact], given("PARQUET"))
    check_kept([raw], given("CSV"))
    with pytest.raises(
        InvalidInput, match="1 of 2 rejected records of job `first` cannot be loaded"
    ):
        check_kept([exact, raw], given("ORC"))
    with pytest.raises(InvalidInput, match="of job `first` are not CSV"):
        check_kept([raw, exact], given("CSV"))


def test_reject_row_of_unknown_place_has_none_in_its_message(tmp_path: Path) -> None:
    at = pa.array([1_001], pa.timestamp("ns"))
    exact = record_bytes({"at": at}, 0, column_notes([Column("at", pa.timestamp("us"), "")]))
    kept = StoredRecords({"/in/a.parquet": (StoredRecord(exact),)})
    schemas = stored_schemas(kept, [FileState("/in/a.parquet", 0, 0)])

    table = read(schemas, kept, unite(schemas, ["at"]), "FAIL")

    record: Any = table[REJECTED_HELPER][0].as_py()
    assert (record["row_group"], record["row_number"]) == (None, None)
    with pytest.raises(LoadFailed, match=r"^reading `/in/a.parquet`: column `at`: the value"):
        read(schemas, kept, unite(schemas, ["at"]), "FAIL", "FAIL")
