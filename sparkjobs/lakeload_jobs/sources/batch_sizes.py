"""The size of batches in bytes, whatever the width of their rows, and the largest value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.types as pt

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.rows.arrow import Column

BATCH_BYTES, BATCH_ROWS = 8 << 20, 1 << 16
"""Arrow bytes and rows of a batch, at most. A single row may have more bytes."""
MAX_VALUE_BYTES = 256 << 20
"""The largest value of a row. A task holds about four copies of it: as read, as an array, as part
of a row group, and encoded. Arrow and Parquet end at 2 GiB for all values of a column."""
LARGE_VALUE_HINT = (
    "leave the column out with `columns.exclude`, or store the value as an object of its own and "
    "its path in the column"
)
LARGE_RECORD_HINT = "store large values as objects of their own, and their paths in the records"
"""Where records are read whole: a column that is left out makes them no smaller."""


class ValueTooLarge(Exception):
    """A value of more than `MAX_VALUE_BYTES`: `size` bytes in column `place` of row `row`, both
    from 0 in the columns that were checked."""

    def __init__(self, place: int, row: int, size: int) -> None:
        super().__init__(place, row, size)
        self.place = place
        self.row = row
        self.size = size


def is_too_large(size: int, values: int = 1) -> bool:
    """Whether one of some values, which have so many bytes together, is too large for certain."""
    return size > MAX_VALUE_BYTES * max(values, 1)


def too_large(size: int) -> str:
    """Return what is wrong with a value of so many bytes, as a clause without the value."""
    return f"is {shown_size(size)}, and at most {shown_size(MAX_VALUE_BYTES)} are read"


def shown_size(size: int) -> str:
    """Return bytes in MiB, rounded up, so that what is over a limit never looks like it."""
    return f"{-(-size >> 20):,} MiB"


def row_ranges(
    columns: Sequence[Column], rows: int, most: int = BATCH_BYTES
) -> Iterator[tuple[int, int]]:
    """Yield the first row and the number of rows of parts of at most `most` bytes, or one row, and
    `BATCH_ROWS`. Raises `ValueTooLarge`."""
    if not columns:
        yield 0, rows
        return
    whole = pa.record_batch(list(map(_own_bytes, columns)), names=[""] * len(columns))
    yield from _ranges(whole, 0, min(most, MAX_VALUE_BYTES))


def batch_bytes(batch: pa.RecordBatch) -> int:
    """Return the bytes of a batch, of a part of one only its own. `nbytes` takes a hundred times
    as long."""
    return pa.ipc.get_record_batch_size(batch)


def _ranges(batch: pa.RecordBatch, first: int, most: int) -> Iterator[tuple[int, int]]:
    rows, size = batch.num_rows, batch_bytes(batch)
    if rows <= 1 or (rows <= BATCH_ROWS and size <= most):
        if is_too_large(size):
            sizes = [column.nbytes for column in batch.columns]
            if is_too_large(max(sizes)):
                raise ValueTooLarge(sizes.index(max(sizes)), first, max(sizes))
        if rows:
            yield first, rows
        return
    half = rows // 2
    yield from _ranges(batch.slice(0, half), first, most)
    yield from _ranges(batch.slice(half), first + half, most)


def _own_bytes(column: Column) -> Column:
    """Return a column in a type whose parts are known to have bytes of their own."""
    kind = column.type
    if pt.is_string_view(kind) or pt.is_binary_view(kind):
        return column.cast(pa.large_binary())
    return column.indices if pt.is_dictionary(kind) else column


def bounded(
    batch: pa.RecordBatch, table: str, bytes_of: Callable[[str], str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table of a database in batches of at most `BATCH_BYTES`, or one row.

    `bytes_of` returns the SQL of a column, of which the database's `octet_length` is asked. Raises
    `LoadFailed` for a value that is too large.
    """
    try:
        for start, count in row_ranges(batch.columns, batch.num_rows):
            yield batch.slice(start, count)
    except ValueTooLarge as error:
        name = batch.schema.names[error.place]
        raise LoadFailed(
            f"reading `{table}`: a value of column `{name}` {too_large(error.size)}",
            hint=f"{LARGE_VALUE_HINT}; the condition ``octet_length({bytes_of(name)}) > "
            f"{MAX_VALUE_BYTES}`` finds such rows",
        ) from None


def rows_of(column: Column, first: int, rows: int) -> Column:
    """Return a part of a column. Nested values of a mere slice would have all elements."""
    if first == 0 and rows == len(column):
        return column
    part = column.slice(first, rows)
    return pa.concat_arrays([part]) if pt.is_nested(part.type) else part
