"""Bytes in, parts of a multipart upload out, with a bounded number of buffers in flight."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from threading import BoundedSemaphore
from typing import Any, Literal, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from arro3.io import write_parquet

from lakeload_jobs.rows.arrow import Column, pc
from lakeload_jobs.storage.objects import Objects, Part

MIN_PART_BYTES = 8 << 20
"""S3 wants at least 5 MiB a part; a little more halves the requests and stays small in memory."""
MAX_PARTS = 10_000


def part_bytes(target_file_size: int) -> int:
    """Return the part size with which a file of the target size (plus what the encoder still
    holds when it is passed, at most as much again) stays within S3's 10,000 parts."""
    return max(MIN_PART_BYTES, -(-2 * target_file_size // MAX_PARTS))


class UploadPool:
    """Threads that send parts; at most `parallelism` parts of this process are in memory."""

    def __init__(self, parallelism: int) -> None:
        self._threads = ThreadPoolExecutor(parallelism, thread_name_prefix="upload")
        self._slots = BoundedSemaphore(parallelism)

    def send(
        self, objects: Objects, key: str, upload_id: str, number: int, body: bytes
    ) -> Future[Part]:
        """Start sending a part; waits while all slots are taken."""
        self._slots.acquire()
        future = self._threads.submit(objects.upload_part, key, upload_id, number, body)
        future.add_done_callback(lambda _: self._slots.release())
        return future

    def close(self) -> None:
        """Wait for the parts under way and end the threads."""
        self._threads.shutdown(wait=True)


class PartWriter:
    """What an encoder writes to: collects bytes and sends each full part.

    `write` raises what an earlier part failed with. `finish` sends the rest and returns all parts.
    """

    def __init__(
        self, objects: Objects, pool: UploadPool, key: str, upload_id: str, *, size_of_part: int
    ) -> None:
        self.key = key
        self.upload_id = upload_id
        self.size = 0
        self._objects = objects
        self._pool = pool
        self._size_of_part = size_of_part
        self._buffer = bytearray()
        self._sent: list[Future[Part]] = []

    def write(self, data: bytes) -> int:
        """Take bytes from the encoder."""
        self._buffer += data
        self.size += len(data)
        while len(self._buffer) >= self._size_of_part:
            self._send(self._size_of_part)
        return len(data)

    def finish(self) -> tuple[Part, ...]:
        """Send what is left, wait for every part and return them in order."""
        if self._buffer or not self._sent:
            self._send(len(self._buffer))
        return tuple(future.result() for future in self._sent)

    def wait(self) -> None:
        """Wait until nothing is under way: an abort would otherwise race with a late part."""
        for future in self._sent:
            future.exception()

    def _send(self, length: int) -> None:
        for future in self._sent:
            if future.done() and (error := future.exception()):
                raise error
        body = bytes(memoryview(self._buffer)[:length])
        del self._buffer[:length]
        number = len(self._sent) + 1
        self._sent.append(self._pool.send(self._objects, self.key, self.upload_id, number, body))


ARRO3_LEVEL = 2
PYARROW_LEVEL = 4
"""arro3's level 2 and pyarrow's level 4 give about the same size; arro3 takes half the time."""
ZSTD_LEVEL = 3
"""Level of both, as Java has it."""
ROW_GROUP_BYTES = 64 << 20
"""Arrow bytes of a row group: some 25 MiB encoded with row ids, which is what the encoder holds in
memory."""
MAX_ROW_GROUP_ROWS = 1 << 20
_FEW_ROWS = 1024
_SKEW = 4
"""A file ends early when a row group outgrows its budget so many times, because the rows after
the first batch are wider: the encoder counts rows, memory counts bytes. It ends early too when row
groups of fewer than `_FEW_ROWS` fill so small a part of their budget: their rows are narrower."""
_PAGE_BYTES = 8 << 20
"""arro3 looks at the size of a page each 1,024 rows, and each so many bytes where rows are wide."""
BLOOM_FILTER_FPP = 0.01
"""Share of absent values that a bloom filter lets pass; Iceberg's default."""
_SAMPLE_ROWS = 10_000
_DICTIONARY_SHARE = 0.9
"""A column gets a dictionary when at most this share of a sample's values is distinct."""


@dataclass(frozen=True)
class Encoding:
    """How a file is encoded. `level` None is the codec's own of each encoder.

    `metadata` is written into the footer. `whole_statistics`: the least and greatest value of a
    column are kept however long they are. `bloom_filters` are names of columns that get one, in
    files that have them, each with the share of absent values that it lets pass.
    """

    codec: Literal["gzip", "zstd", "snappy", "uncompressed"] = "gzip"
    level: int | None = None
    row_group_bytes: int = ROW_GROUP_BYTES
    metadata: Mapping[str, str] = field(default_factory=dict)
    whole_statistics: bool = False
    bloom_filters: Mapping[str, float] = field(default_factory=dict)

    @property
    def for_arro3(self) -> str:
        """Codec and level in arro3's words."""
        defaults = {"gzip": ARRO3_LEVEL, "zstd": ZSTD_LEVEL}
        level = self.level if self.level is not None else defaults.get(self.codec)
        return self.codec if level is None else f"{self.codec}({level})"

    @property
    def for_pyarrow(self) -> tuple[str, int | None]:
        """Codec and level in pyarrow's words."""
        defaults = {"gzip": PYARROW_LEVEL, "zstd": ZSTD_LEVEL}
        level = self.level if self.level is not None else defaults.get(self.codec)
        return "none" if self.codec == "uncompressed" else self.codec, level


PARQUET_TABLES = Encoding()


class Sink(Protocol):
    """What encoded bytes go to; `size` is what it has taken."""

    @property
    def size(self) -> int:
        """What it has taken, in bytes."""

    def write(self, data: bytes, /) -> int:
        """Take bytes."""


TAIL_BYTES = 16 << 20
"""The end of a file that is kept until its footer is read: enough for 1,000 columns in 40 row
groups."""
_MAGIC = b"PAR1"
_MAGIC_BYTES = 8
"""The footer's length and `PAR1`, which end a file."""


class FileTail:
    """A sink that passes bytes on and keeps the last `most`, in which the footer of a file is."""

    def __init__(self, sink: Sink, most: int = TAIL_BYTES) -> None:
        self._sink = sink
        self._most = most
        self._last: list[bytes] = []
        self._kept = 0

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._sink.size

    def write(self, data: bytes, /) -> int:
        """Take bytes."""
        self._last.append(bytes(data))
        self._kept += len(data)
        while self._kept - len(self._last[0]) >= self._most:
            self._kept -= len(self._last.pop(0))
        return self._sink.write(data)

    def footer(self) -> bytes | None:
        """Return the footer of the file that is complete, as Parquet's Thrift has it; None where it
        is longer than what is kept."""
        end = b"".join(self._last)
        (length,) = struct.unpack("<I", end[-_MAGIC_BYTES:-4])
        if length + _MAGIC_BYTES > len(end):
            return None
        return end[-_MAGIC_BYTES - length : -_MAGIC_BYTES]


def footer_rows(footer: bytes) -> int:
    """Return how many rows a footer says that its file has."""
    end = struct.pack("<I", len(footer)) + _MAGIC
    return pq.read_metadata(pa.BufferReader(_MAGIC + footer + end)).num_rows


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
    row_group_bytes: int = ROW_GROUP_BYTES
    rows: int = 0
    error: BaseException | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        group_bytes = written_bytes = 0
        batch: pa.RecordBatch | None = self.first
        while batch is not None:
            before = self.rows // self.row_group_rows
            self.rows += batch.num_rows
            flushed = self.rows // self.row_group_rows != before
            if flushed:
                written_bytes, group_bytes = written_bytes + group_bytes, 0
            group_bytes += batch.nbytes
            yield batch
            # What the encoder still holds will shrink as what it has written did.
            held = group_bytes * self.sink.size // written_bytes if written_bytes else 0
            size = self.sink.size + held
            if size >= self.target_size or group_bytes > _SKEW * ROW_GROUP_BYTES:
                return
            if self.row_group_rows < _FEW_ROWS and self._is_narrower(written_bytes + group_bytes):
                return
            try:
                batch = next(self.rest, None)
            except BaseException as error:
                self.error = error
                raise

    def _is_narrower(self, size: int) -> bool:
        """Whether row groups are much smaller than they may be, by the bytes of all rows."""
        return size * self.row_group_rows * _SKEW < self.rows * self.row_group_bytes

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
    first: pa.RecordBatch,
    rest: Iterator[pa.RecordBatch],
    sink: Sink,
    *,
    target_size: int,
    encoding: Encoding = PARQUET_TABLES,
) -> int:
    """Encode one file from `first` and as much of `rest` as fits, and return its rows.

    The file ends with the batch after which what the sink and the encoder hold makes about
    `target_size` bytes. Raises what `rest` or the sink raised.
    """
    group_bytes = min(encoding.row_group_bytes, ROW_GROUP_BYTES, max(target_size, 1))
    rows = row_group_rows(first, group_bytes)
    feed = _Feed(first, rest, sink, target_size, rows, group_bytes)
    try:
        if _needs_pyarrow(first.schema, encoding):
            _encode_with_pyarrow(feed, encoding)
        else:
            _encode_with_arro3(feed, encoding)
    except BaseException as error:
        if feed.error is None or feed.error is error:
            raise
        raise feed.error from None
    return feed.rows


def _needs_pyarrow(schema: pa.Schema, encoding: Encoding) -> bool:
    """arro3 names the inner group of a map `entries`, the format's specification `key_value`; it
    cuts statistics off at 64 bytes, and has bloom filters for all columns or none."""
    if encoding.whole_statistics or any(name in schema.names for name in encoding.bloom_filters):
        return True
    return any(_holds_map(field.type) for field in schema)


def _encode_with_arro3(feed: _Feed, encoding: Encoding) -> None:
    # Its stubs want an IO; what it uses are `write`, `flush` and the presence of `seek`.
    target: Any = feed
    dictionaries: dict[str | Sequence[str], bool] = dict(dictionary_columns(feed.first).items())
    write_parquet(
        pa.RecordBatchReader.from_batches(feed.first.schema, iter(feed)),
        target,
        compression=encoding.for_arro3,
        column_dictionary_enabled=dictionaries,
        max_row_group_size=feed.row_group_rows,
        write_batch_size=max(1, min(_FEW_ROWS, _PAGE_BYTES // _row_bytes(feed.first))),
        # The Arrow schema would say nothing that the Parquet schema does not.
        skip_arrow_metadata=True,
        key_value_metadata=dict(encoding.metadata) or None,
    )


def _encode_with_pyarrow(feed: _Feed, encoding: Encoding) -> None:
    schema = feed.first.schema
    chosen = dictionary_columns(feed.first)
    # The stubs know `use_dictionary` as a flag only, and want an IO for the file.
    paths: Any = [".".join(path) for path, enabled in chosen.items() if enabled]
    target: Any = feed
    codec: Any
    codec, level = encoding.for_pyarrow
    groups = _row_groups(feed)
    first = next(groups)
    # A filter has room for as many distinct values as a row group has rows.
    filters: Any = {
        name: {"ndv": max(1, first.num_rows), "fpp": share}
        for name, share in encoding.bloom_filters.items()
        if name in schema.names
    }
    with pq.ParquetWriter(
        pa.PythonFile(target, mode="w"),
        schema,
        compression=codec,
        compression_level=level,
        data_page_version="1.0",
        store_schema=False,
        store_decimal_as_integer=True,
        use_dictionary=paths,
        write_page_index=True,
        bloom_filter_options=filters or None,
    ) as writer:
        for group in chain([first], groups):
            writer.write_table(group)
        if encoding.metadata:
            writer.add_key_value_metadata(dict(encoding.metadata))


def _row_groups(feed: _Feed) -> Iterator[pa.Table]:
    schema = feed.first.schema
    group: list[pa.RecordBatch] = []
    for batch in feed:
        group.append(batch)
        if sum(item.num_rows for item in group) >= feed.row_group_rows:
            yield pa.Table.from_batches(group, schema)
            group = []
    if group:
        yield pa.Table.from_batches(group, schema)


def dictionary_columns(sample: pa.RecordBatch) -> dict[tuple[str, ...], bool]:
    """Decide for each leaf column, by its Parquet path, whether a dictionary will pay.

    A dictionary of distinct values costs time, fills its page and is thrown away again, and the
    codec finds repetitions by itself: so it is used only where a sample repeats itself.
    """
    chosen: dict[tuple[str, ...], bool] = {}
    for own, column in zip(sample.schema, sample.columns, strict=True):
        for path, leaf in _leaves((own.name,), column.slice(0, _SAMPLE_ROWS)):
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


def row_group_rows(first: pa.RecordBatch, group_bytes: int) -> int:
    """Return the rows of a row group of about `group_bytes` Arrow bytes, going by a batch. No fewer
    than `_FEW_ROWS` unless these are more than `ROW_GROUP_BYTES`."""
    row_bytes = _row_bytes(first)
    few = min(_FEW_ROWS, max(1, ROW_GROUP_BYTES // row_bytes))
    return min(MAX_ROW_GROUP_ROWS, max(few, group_bytes // row_bytes))


def _row_bytes(batch: pa.RecordBatch) -> int:
    return max(1, batch.nbytes // max(1, batch.num_rows))


def _holds_map(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return True
    return any(_holds_map(kind.field(index).type) for index in range(kind.num_fields))
