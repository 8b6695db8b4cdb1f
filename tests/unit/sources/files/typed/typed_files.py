"""Files that hold types, read as a load reads them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

from lakeload_jobs.contract.spec import OnBadValue
from lakeload_jobs.sources.files.typed.columns import FileSchema, settled, unite
from lakeload_jobs.sources.files.typed.rows import FormatReader, OnLoss, ReadTyped, split_files
from lakeload_jobs.sources.paths.file_state import FileState


def file_states(paths: Sequence[Path]) -> list[FileState]:
    """Return files as a listing has them."""
    return [FileState(str(path), path.stat().st_size, 0) for path in paths]


def replace_bytes(path: Path, old: bytes, *new: bytes) -> None:
    """Put `new` in the place of the first occurrences of `old` in a file, one for each."""
    data, at = bytearray(path.read_bytes()), 0
    for one in new:
        at = data.index(old, at)
        data[at : at + len(old)] = one
        at += len(one)
    path.write_bytes(data)


def read_rows(
    schemas: Sequence[FileSchema],
    reader: FormatReader,
    *,
    names: Collection[str] | None = None,
    on_loss: OnLoss = "FAIL",
    on_bad_value: OnBadValue = "FAIL",
    places: bool = False,
    parallelism: int = 2,
) -> pa.Table:
    """Return the rows of files as they are handed on. `names`: of these columns, default all."""
    own = [column.name for schema in schemas for column in schema.columns]
    united = unite(schemas, own if names is None else names)
    columns = [replace(column, kind=settled(column.kind)) for column in united]
    read = ReadTyped(
        pa.schema([(column.name, column.kind) for column in columns]),
        reader,
        on_loss,
        on_bad_value if any(column.may_be_bad for column in columns) else "FAIL",
        places,
    )
    splits = split_files(schemas, read, base=None, parallelism=parallelism)
    batches = [batch for part in splits.parts for batch in splits.read(part)]
    assert splits.counts is not None
    assert sum(splits.counts) == sum(batch.num_rows for batch in batches)
    return pa.Table.from_batches(batches, read.batch_schema)


def flip_bit(path: Path) -> None:
    """Change one bit in the last page of a Parquet file of one column."""
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    start = min(chunk.dictionary_page_offset or chunk.data_page_offset, chunk.data_page_offset)
    data = bytearray(path.read_bytes())
    data[start + chunk.total_compressed_size - 1] ^= 1
    path.write_bytes(data)


def write_encrypted(path: Path, table: pa.Table, *, plaintext_footer: bool) -> Path:
    """Write a Parquet file whose column `secret` is encrypted."""
    factory = pe.CryptoFactory(lambda _: _Keys())
    columns: dict[str, str | list[str]] = {"column": ["secret"]}
    settings = pe.EncryptionConfiguration(
        footer_key="footer", column_keys=columns, plaintext_footer=plaintext_footer
    )
    encryption = factory.file_encryption_properties(pe.KmsConnectionConfig(), settings)
    with pq.ParquetWriter(path, table.schema, encryption_properties=encryption) as writer:
        writer.write_table(table)
    return path


class _Keys(pe.KmsClient):
    """Keeps keys as they are."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        return b64encode(key_bytes).decode()

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> str:
        raise AssertionError("nothing is decrypted")
