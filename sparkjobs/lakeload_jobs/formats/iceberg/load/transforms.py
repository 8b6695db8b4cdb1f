"""Iceberg's partition transforms of Arrow columns, as the specification's appendix B has them, and
the rows of a batch partition by partition."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lakeload_jobs.contract.spec import PartitionField
from lakeload_jobs.formats.iceberg.commits.values import decimal_bytes, unscaled_decimal
from lakeload_jobs.rows.arrow import Column, pc

_HOUR = 3_600_000_000
_DAY = 24 * _HOUR
"""Microseconds."""
_POSITIVE = 0x7FFFFFFF


def by_partition(
    batch: pa.RecordBatch, fields: Sequence[PartitionField]
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the rows of each partition of a batch that has rows, in the order of the batch, with
    the partition's values as a list in JSON: dates are days since 1970, decimals are text, and
    those of a column that the load lacks are null."""
    held = set(batch.schema.names)
    values = [
        transformed(batch.column(field.column), field)
        if field.column in held
        else pa.nulls(batch.num_rows, pa.int32())
        for field in fields
    ]
    codes = np.zeros(batch.num_rows, np.int64)
    for column in values:
        encoded: Column = column.dictionary_encode()
        distinct = len(encoded.dictionary)
        indices = encoded.indices.fill_null(distinct).to_numpy(zero_copy_only=False)
        codes = codes * (distinct + 1) + indices
        if len(values) > 1:
            # Products of many fields would not stay in 64 bits.
            codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order])) + 1
    rows = batch if len(starts) == 0 else batch.take(pa.array(order, pa.int64()))
    bounds = [0, *starts.tolist(), batch.num_rows]
    for first, end in itertools.pairwise(bounds):
        row = int(order[first])
        key = json.dumps([_plain(column[row].as_py()) for column in values])
        yield key, rows.slice(first, end - first)


def transformed(column: Column, field: PartitionField) -> Column:
    """Return the values of a partition field: `rules.writers` names the types that have one.

    Dates, and days, are numbers since 1970.
    """
    if field.transform == "identity":
        return column.cast(pa.int32()) if pt.is_date32(column.type) else column
    if field.transform == "bucket":
        return _bucket(column, field.width or 1)
    if field.transform == "truncate":
        return _truncate(column, field.width or 1)
    if field.transform == "hour":
        return _floor(_integers(column), _HOUR)
    if field.transform == "day":
        integers = _integers(column)
        return integers if pt.is_date32(column.type) else _floor(integers, _DAY)
    years: Column = pc.subtract(pc.year(column), 1970)
    if field.transform == "year":
        return years.cast(pa.int32())
    months: Column = pc.add(pc.multiply(years, 12), pc.subtract(pc.month(column), 1))
    return months.cast(pa.int32())


def _bucket(column: Column, count: int) -> Column:
    encoded: Column = column.dictionary_encode()
    hashes = [(mmh3.hash(value) & _POSITIVE) % count for value in _hashed(encoded.dictionary)]
    return pa.array(hashes, pa.int32()).take(encoded.indices)


def _hashed(values: Column) -> Iterator[bytes | str]:
    """Yield what is hashed of each value: integers and times are long integers, low byte first,
    decimals their unscaled value in as few bytes as it needs, high byte first."""
    if pt.is_string(values.type) or pt.is_binary(values.type):
        yield from values.to_pylist()
    elif pt.is_decimal(values.type):
        for value in values.to_pylist():
            yield decimal_bytes(unscaled_decimal(value, values.type.scale))
    else:
        raw = _integers(values).cast(pa.int64()).to_numpy(zero_copy_only=False).tobytes()
        for at in range(0, len(raw), 8):
            yield raw[at : at + 8]


def _truncate(column: Column, width: int) -> Column:
    if pt.is_string(column.type):
        return pc.utf8_slice_codeunits(column, 0, width)
    # In 64 bits, which hold each width; the least values wrap around, as in Java.
    wide = column.cast(pa.int64())
    whole: Column = pc.multiply(_quotient(wide, width), pa.scalar(width, pa.int64()))
    return whole.cast(column.type, safe=False)


def _integers(column: Column) -> Column:
    if pt.is_date32(column.type):
        return column.cast(pa.int32())
    return column.cast(pa.int64()) if pt.is_timestamp(column.type) else column


def _floor(integers: Column, step: int) -> Column:
    return _quotient(integers, step).cast(pa.int32())


def _quotient(integers: Column, by: int) -> Column:
    """Return the quotients, rounded down."""
    divisor = pa.scalar(by, pa.int64())
    quotient: Column = pc.divide(integers, divisor)
    rest: Column = pc.subtract(integers, pc.multiply(quotient, divisor))
    return pc.subtract(quotient, pc.less(rest, 0).cast(pa.int64()))


def _plain(value: Any) -> Any:
    return format(value, "f") if isinstance(value, Decimal) else value
