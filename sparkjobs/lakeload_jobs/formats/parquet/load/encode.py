"""Arrow record batches → gzip Parquet. The only module that encodes (docs/decisions/0020).

Data pages v1, PLAIN and RLE_DICTIONARY only, INT64 microseconds with the right UTC flag, exact
decimals: what Athena, Spark, Trino, Snowflake and Redshift Spectrum all read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from arro3.io import write_parquet

from lakeload_jobs.rows.row_id import Column, pc

ARRO3_LEVEL = 2
PYARROW_LEVEL = 4
"""arro3's level 2 and pyarrow's level 4 give about the same size; arro3 takes half the time."""
ROW_GROUP_BYTES = 128 << 20
"""Arrow bytes of a row group: some 30 MiB encoded, which is what the encoder holds in memory."""
MAX_ROW_GROUP_ROWS = 1 << 20
_MIN_ROW_GROUP_ROWS = 1024
_SKEW = 4
"""A file ends early when a row group outgrows its budget so many times, because the rows after
the first batch are wider: the encoder counts rows, memory counts bytes."""
_SAMPLE_ROWS = 10_000
_DICTIONARY_SHARE = 0.9
"""A column gets a dictionary when at most this share of a sample's values is distinct."""


class Sink(Protocol):
    """What encoded bytes go to; `size` is what it has taken."""

    size: int

    def write(self, data: bytes, /) -> int:
        """Take bytes."""


@dataclass
class _Feed:
    """Hands batches to the encoder until the file is full; keeps what went wrong on the way.

    Errors pass through the encoder's own language, which leaves only their text, so the original
    is kept here and raised again by `encode_file`.
    """

    first: pa.RecordBatch
    rest: Iterator[pa.RecordBatch]
    sink: Sink
    target_size: int
    row_group_rows: int
    rows: int = 0
    error: BaseException | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        group_bytes = 0
        batch: pa.RecordBatch | None = self.first
        while batch is not None:
            before = self.rows // self.row_group_rows
            self.rows += batch.num_rows
            flushed = self.rows // self.row_group_rows != before
            group_bytes = batch.nbytes if flushed else group_bytes + batch.nbytes
            yield batch
            if self.sink.size >= self.target_size or group_bytes > _SKEW * ROW_GROUP_BYTES:
                return
            try:
                batch = next(self.rest, None)
            except BaseException as error:
                self.error = error
                raise

    def write(self, data: bytes) -> int:
        try:
            return self.sink.write(data)
        except BaseException as error:
            self.error = error
            raise

    def flush(self) -> None:
        """The sink decides when bytes leave."""

    closed = False

    def close(self) -> None:
        """The sink's owner finishes it."""

    def seek(self, offset: int, whence: int = 0) -> int:
        """Asked for by arro3 when it takes the object, never called."""
        raise OSError("a Parquet file is written from front to back")


def encode_file(
    first: pa.RecordBatch, rest: Iterator[pa.RecordBatch], sink: Sink, *, target_size: int
) -> int:
    """Encode one file from `first` and as much of `rest` as fits, and return its rows.

    The file ends with the batch after which the sink holds `target_size` bytes; the encoder then
    adds what its last row group still holds. Raises what `rest` or the sink raised.
    """
    group_bytes = min(ROW_GROUP_BYTES, max(target_size, 1))
    feed = _Feed(first, rest, sink, target_size, _row_group_rows(first, group_bytes))
    try:
        if any(_holds_map(field.type) for field in first.schema):
            _encode_with_pyarrow(feed)
        else:
            _encode_with_arro3(feed)
    except BaseException as error:
        if feed.error is None or feed.error is error:
            raise
        raise feed.error from None
    return feed.rows


def _encode_with_arro3(feed: _Feed) -> None:
    # Its stubs want an IO; what it uses are `write`, `flush` and the presence of `seek`.
    target: Any = feed
    dictionaries: dict[str | Sequence[str], bool] = dict(dictionary_columns(feed.first).items())
    write_parquet(
        pa.RecordBatchReader.from_batches(feed.first.schema, iter(feed)),
        target,
        compression=f"gzip({ARRO3_LEVEL})",
        column_dictionary_enabled=dictionaries,
        max_row_group_size=feed.row_group_rows,
        # The Arrow schema would say nothing that the Parquet schema does not.
        skip_arrow_metadata=True,
    )


def _encode_with_pyarrow(feed: _Feed) -> None:
    """Maps: arro3 names their inner group `entries`, the format's specification `key_value`."""
    schema = feed.first.schema
    chosen = dictionary_columns(feed.first)
    # The stubs know `use_dictionary` as a flag only, and want an IO for the file.
    paths: Any = [".".join(path) for path, enabled in chosen.items() if enabled]
    target: Any = feed
    with pq.ParquetWriter(
        pa.PythonFile(target, mode="w"),
        schema,
        compression="gzip",
        compression_level=PYARROW_LEVEL,
        data_page_version="1.0",
        store_schema=False,
        store_decimal_as_integer=True,
        use_dictionary=paths,
    ) as writer:
        group: list[pa.RecordBatch] = []
        for batch in feed:
            group.append(batch)
            if sum(item.num_rows for item in group) >= feed.row_group_rows:
                writer.write_table(pa.Table.from_batches(group, schema))
                group = []
        if group:
            writer.write_table(pa.Table.from_batches(group, schema))


def dictionary_columns(sample: pa.RecordBatch) -> dict[tuple[str, ...], bool]:
    """Decide for each leaf column, by its Parquet path, whether a dictionary will pay.

    A dictionary of distinct values costs time, fills its page and is thrown away again, and the
    codec finds repetitions by itself: so it is used only where a sample repeats itself.
    """
    chosen: dict[tuple[str, ...], bool] = {}
    for field, column in zip(sample.schema, sample.columns, strict=True):
        for path, leaf in _leaves((field.name,), column.slice(0, _SAMPLE_ROWS)):
            chosen[path] = _repeats(leaf)
    return chosen


def _leaves(path: tuple[str, ...], values: Column) -> Iterator[tuple[tuple[str, ...], Column]]:
    """Yield the leaf columns below `values`, an Arrow array of any type, with their paths."""
    kind = values.type
    if pa.types.is_struct(kind):
        for child in kind:
            yield from _leaves((*path, child.name), pc.struct_field(values, child.name))
    elif pa.types.is_map(kind):
        yield from _leaves((*path, "key_value", "key"), values.keys)
        yield from _leaves((*path, "key_value", "value"), values.items)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _leaves((*path, "list", kind.value_field.name), values.flatten())
    else:
        yield path, values


def _repeats(values: Column) -> bool:
    filled: int = len(values) - values.null_count
    if filled == 0 or pa.types.is_boolean(values.type) or pa.types.is_null(values.type):
        return False
    distinct: int = pc.count_distinct(values, mode="only_valid").as_py()
    return distinct <= max(1, int(filled * _DICTIONARY_SHARE))


def _row_group_rows(first: pa.RecordBatch, group_bytes: int) -> int:
    row_bytes = max(1, first.nbytes // max(1, first.num_rows))
    return min(MAX_ROW_GROUP_ROWS, max(_MIN_ROW_GROUP_ROWS, group_bytes // row_bytes))


def _holds_map(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return True
    return any(_holds_map(kind.field(index).type) for index in range(kind.num_fields))
