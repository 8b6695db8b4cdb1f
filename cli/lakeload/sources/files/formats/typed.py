"""Files that say the types of their columns, as far as an inspection reads them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa

from lakeload.sources.files.formats.base import InspectedFile, Rows
from lakeload.sources.files.formats.text import SAMPLE_ROWS
from lakeload_jobs.sources.files.formats.base import TypedFormat
from lakeload_jobs.sources.files.typed.columns import FileSchema, settled, type_name, unite
from lakeload_jobs.sources.files.typed.rows import ReadTyped, TypedPart, json_value
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState


def typed_columns(footers: Sequence[FileSchema]) -> dict[str, str]:
    """Return the columns of files and their types. Raises `LoadFailed` where they do not unite."""
    names = [column.name for footer in footers for column in footer.columns if not column.refused]
    return {
        column.name: type_name(settled(column.kind), text="string")
        for column in unite(footers, names)
    }


def arrow_text(value: Any) -> str | None:
    """Return a value of Arrow as it is shown."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return f"0x{value[:16].hex()}" + "…" * (len(value) > 16)
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, default=str, ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _arrow_texts(column: Any) -> list[str | None]:
    try:
        values = column.to_pylist()
    except (OverflowError, ValueError):  # years that Python does not have
        values = [json_value(value) for value in column]
    return [arrow_text(value) for value in values]


def inspect_typed(file: FileState, file_format: TypedFormat, files: FileBytes) -> InspectedFile:
    """Return what a file of a format holds. Raises as its readers do."""
    (schema,) = file_format.schemas([file], files)
    columns = [column for column in schema.columns if not column.refused]
    kinds = {column.name: settled(column.kind) for column in columns if not column.only_spark}
    units = tuple(unit for unit in schema.units if unit.rows)
    rows: Rows = ()
    if units and kinds:
        reader = file_format.reader(files, exact=False, whole=False)
        read = ReadTyped(pa.schema(list(kinds.items())), reader, "TRUNCATE", "NULL")
        first: list[pa.RecordBatch] = []
        with closing(read([TypedPart(file, units)])) as batches:
            while sum(batch.num_rows for batch in first) < SAMPLE_ROWS and (
                batch := next(batches, None)
            ):
                first.append(batch)
        table = pa.Table.from_batches(first).slice(0, SAMPLE_ROWS)
        texts = [
            _arrow_texts(table[column.name]) if column.name in kinds else ["…"] * table.num_rows
            for column in columns
        ]
        rows = tuple(zip(*texts, strict=True))
    return InspectedFile(
        file,
        file_format.name,
        schema.codec,
        columns=typed_columns([schema]),
        footer=schema,
        rows=rows,
        rows_read=sum(unit.rows for unit in schema.units),
        warnings=tuple(column.refused for column in schema.columns if column.refused),
    )
