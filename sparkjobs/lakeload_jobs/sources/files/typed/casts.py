"""Casts of `columns.types` in the tasks that read Parquet, ORC and Avro."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from lakeload_jobs.contract.spec import OnBadValue
from lakeload_jobs.rows.arrow import Column, pc
from lakeload_jobs.rows.arrow_casts import ArrowCast
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER
from lakeload_jobs.sources.base import BadValuesFound
from lakeload_jobs.sources.files.typed.rows import ReadTyped, TypedPiece


@dataclass(frozen=True)
class ReadCast:
    """Reads parts as `read` does, with the columns of `casts` in other types; it travels to the
    tasks. `schema` are the columns as `rows.casts.cast_types` returns them. Under QUARANTINE no
    cast may be bad."""

    read: ReadTyped
    casts: Mapping[str, ArrowCast]
    schema: pa.Schema
    on_bad_value: OnBadValue

    def __call__(self, part: Sequence[TypedPiece]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one part. Raises as `read` does, and `BadValuesFound` for a value that
        is bad under FAIL."""
        for batch in self.read(part):
            yield self._cast(batch)

    def of_columns(self, names: Sequence[str]) -> ReadCast:
        """Return what reads these columns alone."""
        fields = [
            field
            for field in self.schema
            if field.name in names or field.name not in self.read.schema.names
        ]
        return replace(self, read=self.read.of_columns(names), schema=pa.schema(fields))

    def _cast(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns: dict[str, Column] = dict(zip(batch.schema.names, batch.columns, strict=True))
        bad = columns.get(BAD_VALUES_HELPER, pa.repeat(pa.scalar(0, pa.int64()), batch.num_rows))
        for name, cast in self.casts.items():
            if (column := columns.get(name)) is None:
                continue
            columns[name] = values = cast(column)
            if values.null_count == column.null_count:
                continue
            if self.on_bad_value == "FAIL":
                raise BadValuesFound(f"column `{name}` has a value that cannot be cast")
            lost = pc.and_(column.is_valid(), values.is_null())
            bad = pc.add(bad, lost.cast(pa.int64()))
        columns[BAD_VALUES_HELPER] = bad
        arrays = [self._column(field, columns, batch.num_rows) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _column(self, field: Any, columns: Mapping[str, Column], rows: int) -> Column:
        if field.name == BAD_VALUES_HELPER:
            return columns[field.name].cast(field.type)
        return columns[field.name] if field.name in columns else pa.nulls(rows, field.type)
