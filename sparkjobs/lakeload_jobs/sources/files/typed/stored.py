"""Rejected records of Parquet, ORC and Avro, in the place of the files that they are from.

They are read as files are, and have the row groups and rows that they have in their files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby

from lakeload_jobs.sources.files.typed.columns import FileSchema, Unit
from lakeload_jobs.sources.files.typed.exact import read_columns, read_records, schema_bytes
from lakeload_jobs.sources.files.typed.rows import Batch, TypedPart
from lakeload_jobs.sources.paths.file_state import FileState

_AT_ONCE = 1024


@dataclass(frozen=True)
class StoredRecord:
    """The exact form of a record, and its row group and row; None where they are not known."""

    data: bytes
    group: int | None = None
    row: int | None = None


@dataclass(frozen=True)
class StoredRecords:
    """Opens the rejected records of each path in the place of its file; it travels to the tasks."""

    records: Mapping[str, tuple[StoredRecord, ...]]

    @contextmanager
    def open(self, part: TypedPart, names: Sequence[str]) -> Iterator[Iterator[Batch]]:
        """Open those columns of a part that its records have."""
        yield self._batches(part, names)

    def _batches(self, part: TypedPart, names: Sequence[str]) -> Iterator[Batch]:
        own = self.records[part.path]
        for start in range(0, len(part.units), _AT_ONCE):
            units = part.units[start : start + _AT_ONCE]
            columns, in_nanos = read_records([own[unit.number].data for unit in units])
            yield Batch(
                {name: column for name, column in columns.items() if name in names},
                len(units),
                {name: column for name, column in in_nanos.items() if name in names},
            )


def stored_schemas(stored: StoredRecords, files: Sequence[FileState]) -> tuple[FileSchema, ...]:
    """Return what the records of `files` say of their columns, in the order of the records: one
    schema for those next to each other that have the same."""
    found = []
    for file in files:
        numbered = enumerate(stored.records[file.path])
        for _, run in groupby(numbered, lambda pair: schema_bytes(pair[1].data)):
            own = tuple(run)
            columns = read_columns(own[0][1].data, file.path)
            units = (
                Unit(
                    1,
                    len(record.data),
                    number,
                    record.group,
                    None if record.row is None else record.row - 1,
                )
                for number, record in own
            )
            found.append(FileSchema(file, columns, tuple(units)))
    return tuple(found)
