"""Tasks that encode Iceberg data files: rows in the table's columns, and what Parquet's footer does
not tell of floating-point numbers."""

from __future__ import annotations

import base64
import json
import math
import struct
import uuid
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.formats.data_files.encode import (
    TAIL_BYTES,
    Encoding,
    FileTail,
    PartWriter,
    encode_file,
    footer_rows,
)
from lakeload_jobs.formats.data_files.parts import relabelled, same_shape
from lakeload_jobs.formats.data_files.stage import Encoded
from lakeload_jobs.formats.iceberg.load.arrow_schema import FloatLeaf, arrow_schema, float_leaves
from lakeload_jobs.formats.iceberg.rules.branches import data_file_name
from lakeload_jobs.rows.arrow import Column, pc
from lakeload_jobs.rows.required import check_key, check_required


@dataclass(frozen=True)
class IcebergFiles:
    """The files of one staging branch (`stage.DataFiles`). `prefix` is where they lie, with a final
    slash; `schema` is Iceberg's JSON. A null in a column of `key` fails the load of `source`."""

    prefix: str
    branch: str
    schema: str
    source: str
    key_columns: tuple[str, ...]
    target_size: int
    encoding: Encoding

    def key(self, seq: int, *, rejects: bool) -> str:
        """Return a key that names the branch: by it a clean-up knows whose upload it is. Raises
        `ValueError` for a file of rejected records, which are in a table of their own."""
        if rejects:
            raise ValueError("rejected records are not in this table")
        return self.prefix + data_file_name(self.branch, seq, uuid.uuid4())

    def encode(
        self, first: pa.RecordBatch, rest: Iterator[pa.RecordBatch], sink: PartWriter
    ) -> Encoded:
        """Encode one file. Raises `InvalidInput` for a null in the key."""
        floats = {leaf[0]: _Float(leaf) for leaf in self._float_leaves}
        tail = FileTail(sink)

        def fitted(batch: pa.RecordBatch) -> pa.RecordBatch:
            batch = self._fitted(batch)
            for column in floats.values():
                column.add(batch)
            return batch

        encode_file(
            fitted(first),
            map(fitted, rest),
            tail,
            target_size=self.target_size,
            encoding=self.encoding,
        )
        footer = tail.footer()
        if footer is None:
            raise LoadFailed(
                f"the footer of a data file is longer than {TAIL_BYTES:,} bytes",
                hint="set a smaller `write.target-file-size-bytes` in `table_properties`",
            )
        # The driver holds those of all files.
        packed = base64.b64encode(zlib.compress(footer)).decode()
        found = {number: column.facts() for number, column in floats.items()}
        text = json.dumps({"footer": packed, "floats": found})
        return Encoded(footer_rows(footer), text)

    @cached_property
    def _arrow(self) -> pa.Schema:
        return arrow_schema(json.loads(self.schema))

    @cached_property
    def _float_leaves(self) -> tuple[FloatLeaf, ...]:
        return tuple(float_leaves(json.loads(self.schema)))

    def _fitted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows in the columns of the table; those that the load has not are null."""
        names = set(batch.schema.names)
        check_key(batch, self.key_columns, self.source)
        arrays = [
            _as(batch.column(field.name), field.type)
            if field.name in names
            else pa.nulls(batch.num_rows, field.type)
            for field in self._arrow
        ]
        fitted = pa.RecordBatch.from_arrays(arrays, schema=self._arrow)
        check_required(fitted, self._arrow, self.source)
        return fitted


def _as(column: Column, kind: pa.DataType) -> Column:
    """Return a column in the table's type, which is the same or a wider one."""
    return relabelled(column, kind) if same_shape(column.type, kind) else column.cast(kind)


class _Float:
    """NaN and bounds of a column of floating-point numbers, as Iceberg's writers count them: NaN is
    in no bound, and -0.0 is less than 0.0."""

    def __init__(self, leaf: FloatLeaf) -> None:
        _, self._kind, self._path = leaf
        self._nan = 0
        self._bounds: tuple[float, float] | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the values of a batch."""
        column: Column = batch.column(self._path[0])
        for name in self._path[1:]:
            column = pc.struct_field(column, name)
        nan: int = pc.sum(pc.is_nan(column)).as_py() or 0
        self._nan += nan
        if nan:
            column = column.filter(pc.invert(pc.is_nan(column)).fill_null(fill_value=False))
        least = pc.min_max(column)
        low, high = least["min"].as_py(), least["max"].as_py()
        if low is None:
            return
        if low == 0 or high == 0:
            low, high = _signed_zeros(column, low, high)
        found = [(low, high), *([self._bounds] if self._bounds else [])]
        self._bounds = (
            min((pair[0] for pair in found), key=_order),
            max((pair[1] for pair in found), key=_order),
        )

    def facts(self) -> Mapping[str, Any]:
        """Return them; bounds as Iceberg's single values, in hexadecimal."""
        form = "<f" if self._kind == "float" else "<d"
        low, high = self._bounds or (None, None)
        return {
            "nan": self._nan,
            "low": None if low is None else struct.pack(form, low).hex().upper(),
            "high": None if high is None else struct.pack(form, high).hex().upper(),
        }


def _signed_zeros(column: Column, low: float, high: float) -> tuple[float, float]:
    """Return bounds of which a zero has the sign that it has in Java, which orders them."""
    zeros = column.filter(pc.equal(column, 0))
    negative = pc.less(pc.divide(pa.scalar(1.0, column.type), zeros), 0)
    if low == 0:
        low = -0.0 if pc.any(negative).as_py() else 0.0
    if high == 0:
        high = -0.0 if pc.all(negative).as_py() else 0.0
    return low, high


def _order(value: float) -> tuple[float, float]:
    return value, math.copysign(1, value)
