"""The exact form of a rejected record of Parquet, ORC and Avro: an Arrow IPC stream of one row.

It has the values as the file has them, before they are converted, under the types of the file. The
metadata of its schema says what the columns are to a load (`columns.Column`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.types as pt

from lakeload_jobs.rows.arrow import Column as Array
from lakeload_jobs.rows.arrow import Kind
from lakeload_jobs.sources.files.typed.columns import VARIANT, Column, with_leaves

_KINDS, _STORED = b"lakeload.kinds", b"lakeload.stored"
_DIGITS = {b"lakeload.digits": b"1"}
"""Metadata of a field that has a column once more, with digits that the first one lacks."""


def column_notes(columns: Sequence[Column]) -> Mapping[bytes, bytes]:
    """Return the metadata of the records of a load that reads these columns."""
    kinds = pa.schema([(column.name, column.kind) for column in columns])
    stored = pa.schema([(one.name, one.stored) for one in columns if one.stored is not None])
    return {
        _KINDS: kinds.serialize().to_pybytes(),
        _STORED: stored.serialize().to_pybytes(),
    }


def record_bytes(
    columns: Mapping[str, Array],
    row: int,
    notes: Mapping[bytes, bytes],
    in_nanos: Mapping[str, Array] | None = None,
) -> bytes:
    """Return the exact form of one row of these columns."""
    fields, arrays = [], []
    for own, metadata in ((columns, None), (in_nanos or {}, _DIGITS)):
        for name, column in own.items():
            value = _plain(column.slice(row, 1))
            fields.append(pa.field(name, value.type, metadata=metadata))
            arrays.append(value)
    schema = pa.schema(fields, metadata=dict(notes.items()))
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return sink.getvalue().to_pybytes()


def is_exact_record(raw: bytes) -> bool:
    """Whether bytes are the exact form of a record."""
    try:
        with pa.ipc.open_stream(raw) as stream:
            return {_KINDS, _STORED} <= set(stream.schema.metadata or {})
    except (pa.ArrowException, OSError, EOFError):
        return False


def schema_bytes(record: bytes) -> bytes:
    """Return what is the same for records of the same schema."""
    return pa.ipc.read_message(record).metadata.to_pybytes()


def read_columns(record: bytes, path: str) -> tuple[Column, ...]:
    """Return the columns of a record as its load had them."""
    with pa.ipc.open_stream(record) as stream:
        notes = stream.schema.metadata or {}
    stored = pa.ipc.read_schema(pa.py_buffer(notes[_STORED]))
    return tuple(
        Column(
            field.name,
            field.type,
            path,
            spark_type="variant" if _has_variant(field.type) else None,
            may_be_bad=True,
            stored=stored.field(field.name).type if field.name in stored.names else None,
        )
        for field in pa.ipc.read_schema(pa.py_buffer(notes[_KINDS]))
    )


def read_records(records: Sequence[bytes]) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return the columns of records of one schema, and the digits that some of them lack."""
    tables = []
    for record in records:
        with pa.ipc.open_stream(record) as stream:
            tables.append(stream.read_all())
    table = pa.concat_tables(tables).combine_chunks()
    columns: dict[str, Array] = {}
    in_nanos: dict[str, Array] = {}
    for field, column in zip(table.schema, table.columns, strict=True):
        own = in_nanos if field.metadata == _DIGITS else columns
        own[field.name] = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return columns, in_nanos


def _has_variant(kind: Kind) -> bool:
    if kind == VARIANT:
        return True
    if not pt.is_nested(kind):
        return False
    return any(_has_variant(kind.field(place).type) for place in range(kind.num_fields))


def _plain(column: Array) -> Array:
    """Return values without dictionaries, which have the values of many other rows."""
    plain = with_leaves(column.type, lambda own: own.value_type if pt.is_dictionary(own) else own)
    return column if plain == column.type else column.cast(plain)
