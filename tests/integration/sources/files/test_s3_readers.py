"""A file in S3 has the columns and rows of the same file on disk, in every format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import DestinationSpec, FilesInput
from lakeload_jobs.sources.files.formats.avro.reader import AvroReader, read_avro_headers
from lakeload_jobs.sources.files.formats.orc.reader import OrcReader, read_orc_footers
from lakeload_jobs.sources.files.formats.parquet.reader import (
    ParquetReader,
    ParquetSettings,
    read_footers,
)
from lakeload_jobs.sources.files.listing import list_files
from lakeload_jobs.sources.files.text.splits import Scan, Scanned, TextPart
from lakeload_jobs.sources.files.text.table import TextFiles
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState
from lakeload_jobs.sources.readers import SourceReaders
from tests.servers.ministack import Lake
from tests.text_tables import csv_table, json_table
from tests.unit.sources.files.formats.avro import test_reader as test_avro
from tests.unit.sources.files.typed.typed_files import read_rows

FILES = Path(__file__).parents[3] / "corpus" / "files"


def _here(scan: Scan, parts: Sequence[TextPart]) -> list[Scanned]:
    return [scan(part) for part in parts]


def _text(files: TextFiles) -> pa.Table:
    table = files.split(_here)
    batches = [batch for part in table.splits.parts for batch in table.splits.read(part)]
    return pa.Table.from_batches(batches, table.schema)


def _csv(file: FileState, opener: FileBytes) -> pa.Table:
    return _text(csv_table((file,), {"header": "true"}, opener=opener))


def _ndjson(file: FileState, opener: FileBytes) -> pa.Table:
    return _text(json_table((file,), {}, opener=opener, lines=True))


def _json(file: FileState, opener: FileBytes) -> pa.Table:
    return _text(json_table((file,), {}, opener=opener, lines=False))


def _parquet(file: FileState, opener: FileBytes) -> pa.Table:
    footers = read_footers([file], opener, ParquetSettings())
    return read_rows(footers, ParquetReader(opener, exact=True))


def _orc(file: FileState, opener: FileBytes) -> pa.Table:
    return read_rows(read_orc_footers([file], opener), OrcReader(opener))


def _avro(file: FileState, opener: FileBytes) -> pa.Table:
    return read_rows(read_avro_headers([file], opener), AvroReader(opener))


def _avro_file(folder: Path) -> Path:
    kind = {"type": "array", "items": ["null", "string", "double"]}
    rows = [{"id": n, "v": ["é" * (n % 7), None, n / 7]} for n in range(3_000)]
    fields = [{"name": "id", "type": "long"}, {"name": "v", "type": kind}]
    return test_avro.write(folder / "a.avro", fields, rows, "deflate", sync_interval=10_000)


READERS: dict[str, tuple[Callable[..., pa.Table], str]] = {
    "CSV": (_csv, "csv_written/texts_python.csv"),
    "NDJSON": (_ndjson, "json_written/texts_lines.ndjson"),
    "JSON": (_json, "json_written/nested_pretty_stream.json"),
    "PARQUET": (_parquet, "parquet/list_of_lists_pyarrow.parquet"),
    "ORC": (_orc, "orc/long_wild_pyarrow_0_12.orc"),
    "AVRO": (_avro, ""),
}


@pytest.mark.parametrize("name", READERS)
def test_an_object_has_the_rows_of_the_same_file_on_disk(
    base_identity: Lake, destination: DestinationSpec, tmp_path: Path, name: str
) -> None:
    read, given = READERS[name]
    path = FILES / given if given else _avro_file(tmp_path)
    content = path.read_bytes()
    bucket, key = base_identity.seeded.bucket, f"data-lake/test/landing/a b+c{path.suffix}"
    base_identity.server.s3.put_object(Bucket=bucket, Key=key, Body=content)
    source = FilesInput("CSV", (f"s3://{bucket}/{key}",), {})
    (listed,) = list_files(source, SourceReaders(destination, AwsSession(destination, label="a")))

    in_s3 = read(listed, FileBytes(destination, "a"))

    on_disk = read(FileState(str(path), len(content), path.stat().st_mtime_ns), FileBytes())
    assert in_s3.schema == on_disk.schema
    assert in_s3.to_pylist() == on_disk.to_pylist()
    assert in_s3.num_rows > 1
