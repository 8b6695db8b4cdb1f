"""ORC files: the columns that their footers name, and stripes as Arrow reads them.

Arrow refuses timestamps before 1677 and after 2262. It is therefore given a small ORC file for each
stripe: the stripe as it is, and other footers, under which dates are integers, and timestamps are
structs of their seconds, as integers, and of timestamps with the nanoseconds, in which all seconds
are 0.
"""

from __future__ import annotations

import re
import zlib
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import IO, Any, Literal, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.rows.arrow import Column as Array
from lakeload_jobs.rows.arrow import Kind, pc, with_child
from lakeload_jobs.sources.base import UnreadableFile
from lakeload_jobs.sources.batch_sizes import (
    BATCH_BYTES,
    BATCH_ROWS,
    LARGE_VALUE_HINT,
    is_too_large,
    too_large,
)
from lakeload_jobs.sources.files.typed.columns import (
    INSTANT,
    LOCAL,
    Column,
    FileSchema,
    Unit,
    read_all,
    without_twins,
)
from lakeload_jobs.sources.files.typed.rows import Batch, TypedPart
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState, is_s3
from lakeload_jobs.sources.paths.objects import changed
from lakeload_jobs.sources.paths.source_bytes import SeekableFile

_MAGIC = b"ORC"
_TAIL = 16 << 10
_CODECS = ("", "zlib", "snappy", "lzo", "lz4", "zstd")
_DEFAULT_BLOCK = 256 << 10
_MAX_CHUNK = (1 << 23) - 1
_MANY = 1 << 24
"""Chunks of zeros for the seconds of timestamps: more than a stripe has values."""
_EXPANDS = 4
"""Assumed ratio of decoded to stored bytes, where statistics do not show more."""

# Kinds of types, streams and encodings, as orc_proto.proto numbers them.
_INT, _LONG, _STRING, _TIMESTAMP, _LIST, _MAP, _STRUCT, _UNION = 3, 4, 7, 9, 10, 11, 12, 13
_DECIMAL, _DATE, _VARCHAR, _CHAR, _INSTANT = 14, 15, 16, 17, 18
_PRESENT, _DATA, _SECONDARY = 0, 1, 5
_INDEX = 6
_INDEXES = (_INDEX, 7, 8)
_DIRECT, _DIRECT_V2 = 0, 2
_JAVA, _JULIAN, _PROLEPTIC = 0, 1, 2

_LEAVES: Mapping[int, Kind] = {
    0: pa.bool_(),
    1: pa.int8(),
    2: pa.int16(),
    _INT: pa.int32(),
    _LONG: pa.int64(),
    5: pa.float32(),
    6: pa.float64(),
    _STRING: pa.string(),
    8: pa.binary(),
    _TIMESTAMP: LOCAL,
    _DATE: pa.date32(),
    _VARCHAR: pa.string(),
    _CHAR: pa.string(),
    _INSTANT: INSTANT,
}
_READ_AS = {_DATE: _INT, _VARCHAR: _STRING, _CHAR: _STRING}
_SPARK_TYPE = b"spark.sql.catalyst.type"

_EPOCH = 1_420_070_400
"""2015-01-01 in UTC: seconds count from that day in the zone of the writer."""
_NANOS_BIAS = _EPOCH * 10**9
_FIRST_OFFSET = -2_208_988_800
"""1900-01-01: Java, whose writers alone name other zones than UTC, has today's standard time
before."""
_LAST_OFFSET = 2_145_916_800
"""2038-01-01."""
_GREGORIAN_CYCLE = 146_097 * 86_400
_QUARTER = 900
_MOST_SECONDS = 2**63 // 10**6 - 10**6
_DAY = 86_400
_FIRST_GREGORIAN = -141_427
"""1582-10-15 in days since 1970."""


class _Damaged(Exception):
    """A file that is not as the specification has it; the message says why."""


class _Message:
    """A message of Protocol Buffers: the values of each field, in order."""

    def __init__(self, data: bytes) -> None:
        self._values: dict[int, list[Any]] = {}
        at = 0
        while at < len(data):
            key, at = _varint(data, at)
            number, wire = key >> 3, key & 7
            value: Any
            if wire == 0:
                value, at = _varint(data, at)
            elif wire in (1, 2, 5):
                size, at = _varint(data, at) if wire == 2 else ({1: 8, 5: 4}[wire], at)
                value = data[at : at + size]
                if len(value) < size:
                    raise _Damaged("a footer ends within a field")
                at += size
            else:
                raise _Damaged("a footer has a field of no known kind")
            self._values.setdefault(number, []).append(value)

    def number(self, field: int, default: int = 0) -> int:
        """Return a whole number."""
        value = self._values.get(field, [default])[-1]
        if not isinstance(value, int):
            raise _Damaged("a footer has bytes where a number belongs")
        return value

    def numbers(self, field: int) -> tuple[int, ...]:
        """Return whole numbers, which may be packed."""
        found: list[int] = []
        for value in self._values.get(field, []):
            if isinstance(value, int):
                found.append(value)
                continue
            at = 0
            while at < len(value):
                number, at = _varint(value, at)
                found.append(number)
        return tuple(found)

    def many(self, field: int) -> tuple[bytes, ...]:
        """Return texts, or messages."""
        values = self._values.get(field, [])
        if any(isinstance(value, int) for value in values):
            raise _Damaged("a footer has a number where bytes belong")
        return tuple(values)

    def text(self, field: int) -> str:
        """Return a text, '' where there is none."""
        return b"".join(self.many(field)[-1:]).decode(errors="replace")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at
    raise _Damaged("a footer ends within a number")


def _encoded(*fields: tuple[int, int | bytes]) -> bytes:
    """Return a message of Protocol Buffers."""
    out = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            out += _number(number << 3) + _number(value)
        else:
            out += _number(number << 3 | 2) + _number(len(value)) + value
    return bytes(out)


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


@dataclass(frozen=True)
class _Type:
    """A type of the schema, by its number; a column of its own to ORC, at any depth."""

    number: int
    kind: int
    children: tuple[_Type, ...]
    names: tuple[str, ...]
    message: _Message

    @property
    def spark_type(self) -> str:
        """What Spark wrote as this type, '' where another program wrote it."""
        pairs = {pair.many(1): pair.text(2) for pair in map(_Message, self.message.many(7))}
        return pairs.get((_SPARK_TYPE,), "")

    @property
    def is_time(self) -> bool:
        """Whether it is a timestamp."""
        return self.kind in (_TIMESTAMP, _INSTANT)

    @property
    def is_local_number(self) -> bool:
        """Whether it is a number of microseconds, as which Spark writes its `timestamp_ntz`."""
        return self.kind == _LONG and self.spark_type == "timestamp_ntz"


def _types(messages: Sequence[bytes]) -> _Type:
    """Return the type of the rows."""
    found = [_Message(one) for one in messages]

    def made(number: int) -> _Type:
        message = found[number]
        children = message.numbers(2)
        if any(child <= number or child >= len(found) for child in children):
            raise _Damaged("its types refer to each other in a circle")
        names = tuple(name.decode(errors="replace") for name in message.many(3))
        own = _Type(number, message.number(1), tuple(map(made, children)), names, message)
        if own.kind == _STRUCT and len(names) != len(children):
            raise _Damaged("a struct has not as many names as fields")
        if len(children) != {_LIST: 1, _MAP: 2}.get(own.kind, len(children)):
            raise _Damaged("a list or a map has not as many types as it needs")
        return own

    if not found:
        raise _Damaged("it has no types")
    return made(0)


@dataclass(frozen=True)
class _Stripe:
    """Where a stripe is, and how many rows it has."""

    start: int
    index: int
    data: int
    footer: int
    rows: int


@dataclass(frozen=True)
class _Tail:
    """The end of a file: what it says of its columns and stripes."""

    postscript: _Message
    footer: _Message
    codec: str
    types: _Type
    stripes: tuple[_Stripe, ...]
    start: int
    """Where the footer is. The statistics of stripes are before it."""

    def metadata(self, stream: Any) -> bytes:
        """Return the statistics of stripes. Raises `_Damaged`."""
        size = self.postscript.number(5)
        if size > self.start:
            raise _Damaged("its statistics are longer than the file")
        return _unpacked(self.codec, _bytes_at(stream, self.start - size, size), self.block)

    @property
    def block(self) -> int:
        """The size of a chunk before it is packed."""
        return _block(self.postscript)

    @property
    def is_julian(self) -> bool:
        """Whether days before 1582 are those of the Julian calendar: the writers of Java, and they
        alone, had it before they named it."""
        calendar, writer = self.footer.number(11), self.footer.number(9, _JAVA)
        return calendar == _JULIAN or (calendar != _PROLEPTIC and writer == _JAVA)


def _block(postscript: _Message) -> int:
    return postscript.number(3) or _DEFAULT_BLOCK


def _read_tail(file: FileState, stream: Any) -> _Tail:
    """Raises `_Damaged`."""
    held = min(file.size, _TAIL)
    end = _bytes_at(stream, file.size - held, held)
    size = end[-1]
    if end[-4:-1] != _MAGIC and _bytes_at(stream, 0, min(held, 3)) != _MAGIC:
        raise _Damaged("")
    postscript = _Message(end[-1 - size : -1])
    compression = postscript.number(2)
    codec = _CODECS[compression] if compression < len(_CODECS) else str(compression)
    if codec and codec not in _UNPACKED:
        raise UnreadableFile(
            file.path,
            f"its codec `{codec}` is not supported",
            hint="write it with ZLIB, SNAPPY, LZ4 or ZSTD, or without a codec",
        )
    length = postscript.number(1)
    start = file.size - 1 - size - length
    if start < 0:
        raise _Damaged("its footer is longer than the file")
    data = _bytes_at(stream, start, length)
    footer = _Message(_unpacked(codec, data, _block(postscript)))
    if footer.many(10):
        raise UnreadableFile(
            file.path, "it has encrypted columns", hint="write it without encryption"
        )
    stripes = []
    for message in map(_Message, footer.many(3)):
        numbers = (message.number(field) for field in range(1, 6))
        stripes.append(_Stripe(*numbers))
    rows = sum(stripe.rows for stripe in stripes)
    if (count := footer.number(6, rows)) != rows:
        raise _Damaged(f"its footer says that it has {count:,} rows, and its stripes have {rows:,}")
    return _Tail(postscript, footer, codec, _types(footer.many(4)), tuple(stripes), start)


def _bytes_at(stream: Any, start: int, size: int) -> bytes:
    stream.seek(start)
    parts, left = [], size
    while left and (part := stream.read(left)):
        parts.append(part)
        left -= len(part)
    if left:
        raise _Damaged("it ends too early")
    return b"".join(parts)


class _TooLong(Exception):
    """A chunk that is longer than its bound when it is unpacked."""


def _unpacked(codec: str, data: bytes, block: int) -> bytes:
    """Return the bytes of a footer, whose chunks have at most the size `block`. Raises `_Damaged`:
    for a longer chunk too, as other readers of ORC do, before more than the bound is unpacked."""
    if not codec:
        return data
    # Blocks are smaller than 8 MiB: a chunk that is not packed has 23 bits for its length.
    bound = min(block, _MAX_CHUNK)
    out, at = [], 0
    while at < len(data):
        header = int.from_bytes(data[at : at + 3], "little")
        chunk = data[at + 3 : at + 3 + (header >> 1)]
        if len(chunk) < header >> 1:
            raise _Damaged("a footer ends within a chunk")
        at += 3 + len(chunk)
        try:
            out.append(chunk if header & 1 else _UNPACKED[codec](chunk, bound))
            if len(out[-1]) > bound:
                raise _TooLong
        except _TooLong as error:
            raise _Damaged(f"a footer has a chunk of more than {bound:,} bytes") from error
        except (OSError, ValueError, IndexError, zlib.error, pa.ArrowException) as error:
            raise _Damaged(f"a footer cannot be unpacked: {error}") from error
    return b"".join(out)


def _from_zlib(data: bytes, bound: int) -> bytes:
    codec = zlib.decompressobj(-zlib.MAX_WBITS)
    found = codec.decompress(data, bound + 1)
    if not codec.eof and len(found) <= bound:
        raise ValueError("it ends too early")
    return found


def _from_snappy(data: bytes, bound: int) -> bytes:
    return _sized("snappy", data, _varint(data, 0)[0], bound)


def _from_lz4(data: bytes, bound: int) -> bytes:
    return _sized("lz4_raw", data, _lz4_size(data), bound)


def _sized(codec: Literal["snappy", "lz4_raw"], data: bytes, size: int, bound: int) -> bytes:
    """Return data that is known to have this size."""
    if size > bound:
        raise _TooLong
    return pa.Codec(codec).decompress(data, size, asbytes=True)


def _from_zstd(data: bytes, bound: int) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        return stream.read(bound + 1)


_UNPACKED: Mapping[str, Callable[[bytes, int], bytes]] = {
    "zlib": _from_zlib,
    "snappy": _from_snappy,
    "lz4": _from_lz4,
    "zstd": _from_zstd,
}


def _lz4_size(data: bytes) -> int:
    """Return how many bytes a block of LZ4 becomes: Arrow needs to know."""
    at = size = 0

    def length(start: int) -> int:
        nonlocal at
        found = start
        while start == 15:
            found, at = found + data[at], at + 1
            if data[at - 1] != 255:
                break
        return found

    while at < len(data):
        token, at = data[at], at + 1
        literals = length(token >> 4)
        at, size = at + literals, size + literals
        if at < len(data):  # The last sequence has literals only.
            at += 2
            size += length(token & 15) + 4
    return size


def read_orc_footers(
    files: Sequence[FileState], opener: FileBytes, *, sets_aside: bool = False
) -> tuple[FileSchema, ...]:
    """Return what the footers of `files` say, in their order. `sets_aside` is for `read_all`.

    Raises `LoadFailed` naming a file that is not there any more or is no ORC file, and `AwsError`.
    """

    def read(file: FileState) -> FileSchema:
        if not file.size:
            return FileSchema(file, (), ())  # As Hive leaves them where a task had no rows.
        with opener.seekable(file) as stream, _naming(file):
            tail = _read_tail(file, stream)
            columns = _columns(file, tail)
        units, before = [], 0
        for number, one in enumerate(tail.stripes):
            end = one.start + one.index + one.data + one.footer
            units.append(Unit(one.rows, end - one.start, number, None, before, one.start, end))
            before += one.rows
        return FileSchema(file, without_twins(file.path, columns), tuple(units), codec=tail.codec)

    schemas = read_all(files, read, sets_aside=sets_aside)
    if not any(schema.columns or schema.fault for schema in schemas):
        raise LoadFailed(
            f"none of the files has columns, `{files[0].path}` among them",
            hint="check that they are complete ORC files",
        )
    return schemas


@contextmanager
def _naming(file: FileState) -> Iterator[None]:
    """Make errors of a file's structure name it."""
    try:
        yield
    except _Damaged as error:
        if not error.args[0]:
            raise UnreadableFile(
                file.path, "it is not an ORC file", hint="check the file and `format`"
            ) from error
        raise _damaged(file, error.args[0]) from error


def _damaged(file: FileState, why: str) -> UnreadableFile:
    return UnreadableFile(
        file.path,
        f"the ORC file is damaged: {why}",
        hint="copy the file from its source again",
    )


def _columns(file: FileState, tail: _Tail) -> list[Column]:
    if tail.types.kind != _STRUCT:
        raise UnreadableFile(
            file.path, "its rows have no columns", hint="write it with a struct as its type"
        )
    found = []
    for name, own in zip(tail.types.names, tail.types.children, strict=True):
        refused: list[str] = []
        kind, stored = (_kind(own, refused, earlier=earlier) for earlier in (False, True))
        why = f"column `{name}` of `{file.path}` has {''.join(refused[:1])}, which is not read"
        found.append(
            Column(
                name,
                kind,
                file.path,
                refused=why if refused else "",
                may_be_bad=_may_be_bad(own),
                stored=None if stored == kind else stored,
            )
        )
    return found


def _kind(own: _Type, refused: list[str], *, earlier: bool = False) -> Kind:
    """Return the kind of a type; with `earlier` that which Spark's reader gives it, with which
    tables were loaded. Why a type is not read is added to `refused`."""
    kinds = [_kind(child, refused, earlier=earlier) for child in own.children]
    if own.kind == _TIMESTAMP:
        return INSTANT if own.spark_type == "timestamp" or earlier else LOCAL
    if own.is_local_number:
        return LOCAL
    if own.kind in _LEAVES:
        return _LEAVES[own.kind]
    if own.kind == _DECIMAL:
        precision, scale = own.message.number(5), own.message.number(6)
        if 0 < precision <= 38 and scale <= precision:
            return pa.decimal128(precision, scale)
        if not precision:
            refused.append(
                "decimals without a precision, as Hive 0.11 wrote them (Hive 0.12 and later write "
                "them with one)"
            )
            return pa.null()
        refused.append(f"decimals of {precision} digits and the scale {scale}")
        return pa.null()
    if own.kind == _LIST:
        return pa.list_(kinds[0])
    if own.kind == _MAP:
        # Arrow has no map of keys without a type.
        return pa.map_(*kinds) if kinds[0] != pa.null() else pa.null()
    if own.kind == _STRUCT:
        if not kinds:
            refused.append("a struct that has no fields")
        if len(set(own.names)) < len(kinds):
            refused.append("two fields of one name")
        return pa.struct(list(zip(own.names, kinds, strict=True)))
    refused.append("a union" if own.kind == _UNION else f"a type that ORC numbers as {own.kind}")
    return pa.null()


def _may_be_bad(own: _Type) -> bool:
    kinds = (_STRING, _VARCHAR, _CHAR, _TIMESTAMP, _INSTANT, _MAP)
    return own.kind in kinds or any(map(_may_be_bad, own.children))


@dataclass(frozen=True)
class OrcReader:
    """Opens stripes; it travels to the tasks."""

    files: FileBytes

    @contextmanager
    def open(self, part: TypedPart, names: Sequence[str]) -> Iterator[Iterator[Batch]]:
        """Open those columns of a part that its file has."""
        with ExitStack() as stack:
            ranges = self.files.object_file(part.file) if is_s3(part.path) else None
            stream = ranges or stack.enter_context(self.files.seekable(part.file))
            with _naming(part.file):
                tail = _read_tail(part.file, stream)
            yield stack.enter_context(closing(self._batches(part, stream, ranges, tail, names)))

    def _batches(
        self, part: TypedPart, stream: Any, ranges: Any, tail: _Tail, names: Sequence[str]
    ) -> Generator[Batch]:
        own = dict(zip(tail.types.names, tail.types.children, strict=True))
        columns = {name: own[name] for name in names if name in own}
        for unit in part.units:
            if unit.number >= len(tail.stripes) or tail.stripes[unit.number].rows != unit.rows:
                raise changed(part.path, "was written to")
            if not columns or not unit.rows:
                yield Batch({}, unit.rows)
                continue
            with _naming(part.file):
                _check_sizes(part.file, stream, tail, unit.number, columns)
                stripe = _OpenStripe(part.file, stream, tail, tail.stripes[unit.number])
                if ranges is not None:
                    ranges.prefetch(stripe.ranges(columns.values()))
                for values in stripe.batches(tuple(columns.values())):
                    named = dict(zip(columns, values, strict=True))
                    yield Batch(
                        {name: one.array for name, one in named.items()},
                        len(values[0].array),
                        {name: one.nanos for name, one in named.items() if one.nanos is not None},
                    )


def _check_sizes(
    file: FileState, stream: Any, tail: _Tail, number: int, columns: Mapping[str, _Type]
) -> None:
    """Raise `UnreadableFile` where the statistics of a stripe, of which there may be none, tell
    that it has a value that is too large, before it is decoded."""
    whole = tail.footer.many(7)
    if not any(is_too_large(size) for own in columns.values() for _, size in _lengths(whole, own)):
        return
    stripes = _Message(tail.metadata(stream)).many(1)
    if number >= len(stripes):
        return
    statistics = _Message(stripes[number]).many(1)
    for name, column in columns.items():
        for count, size in _lengths(statistics, column):
            if not is_too_large(size, count):
                continue
            rows = tail.stripes[number].rows
            first = sum(stripe.rows for stripe in tail.stripes[:number]) + 1
            where = f"row {first:,}" if rows == 1 else f"rows {first:,} to {first + rows - 1:,}"
            raise UnreadableFile(
                file.path,
                f"{where}: a value of column `{name}` {too_large(size // max(count, 1))}",
                hint=LARGE_VALUE_HINT,
            )


def _lengths(statistics: Sequence[bytes], column: _Type) -> Iterator[tuple[int, int]]:
    """Yield how many values of text or bytes a column has, at each depth, and the bytes of all;
    `statistics` are those of all columns, and may lack some."""
    for place in _numbers(column):
        if place < len(statistics):
            own = _Message(statistics[place])
            yield own.number(1), max(_total(own, 4, 3), _total(own, 8, 1))


def _total(statistics: _Message, kind: int, field: int) -> int:
    """Return the sum of lengths that the statistics of a column have, 0 for none."""
    found = statistics.many(kind)
    value = _Message(found[-1]).number(field) if found else 0
    return (value >> 1) ^ -(value & 1)


@dataclass(frozen=True)
class _Values:
    """Values; `nanos` are the same in nanoseconds, where some have digits below a microsecond."""

    array: Array
    nanos: Array | None = None

    @property
    def finest(self) -> Array:
        """The values in nanoseconds where some need them."""
        return self.array if self.nanos is None else self.nanos


class _WithOtherEnd(SeekableFile):
    """Another file up to the byte `end`, and then other bytes, which are added.

    Arrow reads it in threads of its own, and does not keep the type of an error: it is in `error`.
    """

    def __init__(self, stream: Any, end: int) -> None:
        super().__init__(end)
        self._stream = stream
        self._starts = [0]
        self._parts = [b""]
        self.error: Exception | None = None

    def add(self, part: bytes, times: int = 1) -> int:
        """Add bytes, repeated, and return how many they are."""
        self._starts.append(self.size)
        self._parts.append(part)
        self.size += len(part) * times
        return len(part) * times

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` with the next bytes and return how many they are."""
        size = max(min(len(buffer), self.size - self._at), 0)
        done = 0
        if self.closed:
            raise ValueError("the file is closed")
        try:
            while done < size:
                data = self._next(size - done)
                buffer[done : done + len(data)] = data
                done += len(data)
                self._at += len(data)
        except Exception as error:
            self.error = error
            raise
        return size

    def _next(self, most: int) -> bytes:
        """Return at least one of the next bytes."""
        place = bisect_right(self._starts, self._at) - 1
        if part := self._parts[place]:
            within = (self._at - self._starts[place]) % len(part)
            return part[within : within + most]
        return _bytes_at(self._stream, self._at, min(most, self._starts[1] - self._at))


class _OpenStripe:
    """A stripe whose footer is read. Raises `_Damaged`, and `UnreadableFile` for a zone of time
    that is not known."""

    def __init__(self, file: FileState, stream: Any, tail: _Tail, stripe: _Stripe) -> None:
        self._file = file
        self._stream = stream
        self._tail = tail
        self._stripe = stripe
        at = stripe.start + stripe.index + stripe.data
        data = _bytes_at(stream, at, stripe.footer)
        footer = _Message(_unpacked(tail.codec, data, tail.block))
        self._encodings = footer.many(2)
        if len(self._encodings) < len(tail.footer.many(4)):
            raise _Damaged("a stripe has columns without an encoding")
        self._streams = [
            (one.number(1), one.number(2), one.number(3)) for one in map(_Message, footer.many(1))
        ]
        self._end = stripe.start + sum(size for _, _, size in self._streams)
        if self._end > file.size:
            raise _Damaged("a stripe is longer than the file")
        self._zone = footer.text(3) or "UTC"

    def ranges(self, columns: Iterable[_Type]) -> Iterator[tuple[int, int]]:
        """Yield where the streams of columns lie."""
        numbers = {number for column in columns for number in _numbers(column)}
        at = self._stripe.start
        for kind, column, size in self._streams:
            if column in numbers and kind not in _INDEXES:
                yield at, at + size
            at += size

    def batches(self, columns: Sequence[_Type]) -> Iterator[list[_Values]]:
        """Yield the values of columns in parts."""
        with closing(self._read(columns)) as batches:
            for arrays in batches:
                yield [
                    self._values(column, array)
                    for column, array in zip(columns, arrays, strict=True)
                ]

    def _rows_at_once(self, columns: Sequence[_Type]) -> int:
        """Return how many rows take about `BATCH_BYTES`."""
        stored = sum(end - start for start, end in self.ranges(columns))
        statistics, rows = self._tail.footer.many(7), max(self._tail.footer.number(6), 1)
        texts = sum(size for column in columns for _, size in _lengths(statistics, column))
        row = max(_EXPANDS * stored // max(self._stripe.rows, 1), texts // rows, 1)
        return min(BATCH_ROWS, max(BATCH_BYTES // row, 1))

    def _read(self, columns: Sequence[_Type]) -> Generator[list[Array]]:
        """Yield batches of columns as Arrow reads them."""
        # Slow to import, and only reads of rows need it.
        from pyarrow import dataset

        small = self._small_file(columns)
        file = dataset.OrcFileFormat().make_fragment(cast("IO[bytes]", small))
        rows = self._rows_at_once(columns)
        scanner = file.scanner(
            batch_size=rows, batch_readahead=0, fragment_readahead=0, use_threads=False
        )
        reader = scanner.to_reader()
        try:
            for batch in reader:
                yield batch.columns
        except (OSError, pa.ArrowException):
            if small.error is not None:
                raise small.error from None
            raise
        finally:
            # Arrow's thread reads on for a reader that is closed. At the end of the process, one
            # that still does aborts it.
            small.close()
            with suppress(OSError, ValueError, pa.ArrowException):
                reader.close()

    def _small_file(self, columns: Sequence[_Type]) -> _WithOtherEnd:
        """Return the stripe as an ORC file of these columns alone."""
        types, encodings = [b""], [self._encodings[0]]
        numbers: dict[tuple[int, int], int] = {}
        """The new number of a column, by the old one and the kind of a stream."""
        zeros: list[int] = []

        def add(own: _Type) -> int:
            new = len(types)
            encoding = self._encodings[own.number]
            if own.is_time:
                numbers.update(
                    ((own.number, kind), new + place)
                    for place, kind in enumerate((_PRESENT, _DATA, _SECONDARY))
                )
                zeros.append(new + 2)
                types.extend((_small_struct((new + 1, new + 2)), *_SMALL_TIME))
                encodings.extend((_encoded((1, _DIRECT)), encoding, encoding))
                return new
            numbers.update(((own.number, kind), new) for kind in range(_INDEX))
            types.append(b"")
            encodings.append(encoding)
            types[new] = _small_type(own, [add(child) for child in own.children])
            return new

        types[0] = _small_struct([add(column) for column in columns])
        streams = []
        for kind, column, size in self._streams:
            new = numbers.get((column, kind))
            # What is not read is an index, which nobody asks for.
            streams.append((_INDEX, 0, size) if new is None else (kind, new, size))
        small = _WithOtherEnd(self._stream, self._end)
        for column in zeros:
            chunk = _zeros(self._tail, encodings[column])
            streams.append((_DATA, column, small.add(chunk, _MANY)))
        footer = _encoded(
            *((1, _encoded((1, kind), (2, new), (3, size))) for kind, new, size in streams),
            *((2, encoding) for encoding in encodings),
            (3, b"GMT"),
        )
        small.add(_small_footers(small.size, self._tail, self._stripe, footer, types))
        return small

    def _values(self, own: _Type, column: Array) -> _Values:
        if own.is_time:
            return self._times(own, column)
        if own.kind == _DATE:
            return self._dates(column)
        if own.is_local_number:
            return _Values(column.view(LOCAL))
        if not own.children:
            return _Values(column)
        children = [
            self._values(child, array)
            for child, array in zip(own.children, _children(own, column), strict=True)
        ]
        is_fine = any(child.nanos is not None for child in children)
        return _Values(
            _parent(own, column, [child.array for child in children]),
            _parent(own, column, [child.finest for child in children]) if is_fine else None,
        )

    def _dates(self, column: Array) -> _Values:
        null = column.is_null().to_numpy(zero_copy_only=False)
        days = column.fill_null(0).to_numpy()
        if not self._tail.is_julian or not (days < _FIRST_GREGORIAN).any():
            return _Values(column.view(pa.date32()))
        days = (days + self._from_julian(days)).astype(np.int32)
        return _Values(pa.array(days, pa.int32(), mask=null).view(pa.date32()))

    def _times(self, own: _Type, column: Array) -> _Values:
        null = column.is_null().to_numpy(zero_copy_only=False)
        zone = _Zone(self._zone if own.kind == _TIMESTAMP else "UTC", self._file)
        unix = column.field(0).fill_null(0).to_numpy() + zone.epoch
        fine = column.field(1).view(pa.int64()).fill_null(_NANOS_BIAS).to_numpy() - _NANOS_BIAS
        if (np.abs(unix) > _MOST_SECONDS).any():
            raise _damaged(self._file, "it has a time that is more than 292,000 years away")
        # Java and C++ write the second that a fraction before 1970 is in as the one after it.
        unix = unix - ((unix < 0) & (fine > 999_999))
        local = unix + zone.offsets(unix)
        if self._tail.is_julian:
            local = local + self._from_julian(local // _DAY) * _DAY
        kind = _kind(own, [])
        if kind == INSTANT:
            local = local - zone.offsets_of_local(local, unix)
        micros, digits = local * 10**6 + fine // 1000, fine % 1000
        values = pa.array(micros, pa.int64(), mask=null).view(kind)
        if not digits[~null].any():
            return _Values(values)
        nanos = pa.array(micros * 1000 + digits, pa.int64(), mask=null)
        return _Values(values, nanos.view(pa.timestamp("ns", kind.tz)))

    def _from_julian(self, days: Any) -> Any:
        """Return what to add to days of which those before 1582 are of the Julian calendar, so
        that they have the same name in the Gregorian one. Raises `UnreadableFile` for one that it
        does not have."""
        since = days + 719_470  # 0000-03-01 in the Julian calendar
        year = (4 * since + 3) // 1461
        old = days < _FIRST_GREGORIAN
        is_last = since - 1461 * year // 4 == 365
        gone = old & is_last & ((year + 1) % 100 == 0) & ((year + 1) % 400 != 0)
        if gone.any():
            raise UnreadableFile(
                self._file.path,
                f"it has the day `{year[gone][0] + 1:04}-02-29` of the Julian calendar, which the "
                "Gregorian one does not have",
                hint="write the file without such days",
            )
        return np.where(old, 2 - year // 100 + year // 400, 0)


def _numbers(own: _Type) -> Iterator[int]:
    yield own.number
    for child in own.children:
        yield from _numbers(child)


def _small_type(own: _Type, children: Sequence[int]) -> bytes:
    """Return a type with the numbers of other columns in it."""
    if own.kind == _STRUCT:
        return _small_struct(children)
    return _encoded(
        (1, _READ_AS.get(own.kind, own.kind)),
        *((2, child) for child in children),
        (5, own.message.number(5)),
        (6, own.message.number(6)),
    )


def _small_struct(children: Sequence[int]) -> bytes:
    """Return the type of a struct, whose fields are called by their numbers."""
    names = ((3, f"c{child}".encode()) for child in children)
    return _encoded((1, _STRUCT), *((2, child) for child in children), *names)


_SMALL_TIME = (_encoded((1, _LONG)), _encoded((1, _TIMESTAMP)))
"""The types that a timestamp is read as: its seconds, and its nanoseconds."""


def _zeros(tail: _Tail, encoding: bytes) -> bytes:
    """Return a chunk of zeros."""
    is_v2 = _Message(encoding).number(1) == _DIRECT_V2
    run = b"\x07\x00" if is_v2 else b"\x7f\x00\x00"
    return _stored(tail, run * (min(tail.block, _MAX_CHUNK) // len(run)))


def _small_footers(
    end: int, tail: _Tail, own: _Stripe, stripe_footer: bytes, types: Sequence[bytes]
) -> bytes:
    """Return the footers of an ORC file of one stripe, whose data ends at `end`, packed as the one
    with that tail."""
    stripe_footer = _stored(tail, stripe_footer)
    sizes = ((2, 0), (3, end - own.start), (4, len(stripe_footer)), (5, own.rows))
    footer = _stored(
        tail,
        _encoded(
            (1, len(_MAGIC)),
            (2, end + len(stripe_footer) - len(_MAGIC)),
            (3, _encoded((1, own.start), *sizes)),
            *((4, one) for one in types),
            (6, own.rows),
            (8, 0),
            (9, tail.footer.number(9, _JAVA)),
        ),
    )
    postscript = _encoded(
        (1, len(footer)),
        (2, tail.postscript.number(2)),
        (3, tail.block),
        *((4, version) for version in tail.postscript.numbers(4)),
        (5, 0),
        (6, tail.postscript.number(6)),
        (8000, _MAGIC),
    )
    return b"".join((stripe_footer, footer, postscript, bytes((len(postscript),))))


def _stored(tail: _Tail, data: bytes) -> bytes:
    """Return bytes as they are in a packed file, in chunks that are not packed."""
    if not tail.codec:
        return data
    size, out = min(tail.block, _MAX_CHUNK), bytearray()
    for at in range(0, len(data), size):
        chunk = data[at : at + size]
        out += (len(chunk) << 1 | 1).to_bytes(3, "little") + chunk
    return bytes(out)


def _children(own: _Type, column: Array) -> list[Array]:
    """Return the arrays within one."""
    if own.kind == _LIST:
        return [column.values]
    if own.kind == _MAP:
        return [column.keys, column.items]
    return [column.field(place) for place in range(column.type.num_fields)]


def _parent(own: _Type, column: Array, children: Sequence[Array]) -> Array:
    """Return a nested column with other arrays in it."""
    if own.kind == _LIST:
        return with_child(column, pa.list_(children[0].type), children[0])
    if own.kind == _MAP:
        kind = pa.map_(children[0].type, children[1].type)
        fields = [kind.key_field, kind.item_field]
        entries = pa.StructArray.from_arrays(list(children), fields=fields)
        return with_child(column, kind, entries)
    fields = [pa.field(name, child.type) for name, child in zip(own.names, children, strict=True)]
    return pa.StructArray.from_arrays(list(children), fields=fields, mask=column.is_null())


class _Zone:
    """The zone of time of a writer. Raises `UnreadableFile` for one that is not known."""

    def __init__(self, name: str, file: FileState) -> None:
        self._name = name
        self._zone = _zone(name)
        if self._zone is None:
            raise UnreadableFile(
                file.path,
                f"its timestamps are in the zone `{name}`, which this machine does not know",
                hint="install `tzdata`, or write the file in UTC",
            )

    @property
    def epoch(self) -> int:
        """The second from which seconds count."""
        return int(datetime(2015, 1, 1, tzinfo=self._zone).timestamp())

    def offsets(self, unix: Any) -> Any:
        """Return how many seconds local time was ahead of UTC at each second since 1970."""
        if isinstance(self._zone, timezone):
            return np.full(len(unix), self._offset(0))
        old, late = unix < _FIRST_OFFSET, unix >= _LAST_OFFSET
        early = np.where(old | late, 0, unix)
        local = pc.local_timestamp(pa.array(early, pa.timestamp("s", self._name)))
        found = (local.view(pa.int64()).to_numpy() - early).copy()
        if late.any():
            # Arrow has no rules for what comes after the last change in the database of zones.
            folded = _LAST_OFFSET + (unix[late] - _LAST_OFFSET) % _GREGORIAN_CYCLE
            quarters, places = np.unique(folded // _QUARTER, return_inverse=True)
            offsets = [self._offset(one * _QUARTER) for one in quarters.tolist()]
            found[late] = np.array(offsets)[places]
        found[old] = self._standard
        return found

    def offsets_of_local(self, local: Any, unix: Any) -> Any:
        """Return the offsets to take from local times, which are those of Java at `unix`: Spark
        knows what clocks showed before 1900."""
        offsets = self.offsets(unix)
        old = unix < _FIRST_OFFSET
        if isinstance(self._zone, timezone) or not old.any():
            return offsets
        times = pa.array(local[old], pa.timestamp("s"))
        instants = pc.assume_timezone(
            times, self._name, ambiguous="earliest", nonexistent="earliest"
        )
        offsets[old] = local[old] - instants.view(pa.int64()).to_numpy()
        return offsets

    @property
    def _standard(self) -> int:
        """The offset of today's standard time."""
        return min(self._offset(_LAST_OFFSET), self._offset(_LAST_OFFSET - 180 * _DAY))

    def _offset(self, unix: int) -> int:
        offset = datetime.fromtimestamp(unix, self._zone).utcoffset() or timedelta()
        return int(offset.total_seconds())


def _zone(name: str) -> tzinfo | None:
    if name in ("UTC", "GMT", "Z", "Etc/UTC", "Etc/GMT"):
        return UTC
    if fixed := re.fullmatch(r"(?:GMT|UTC)([+-])(\d{1,2})(?::?(\d\d))?", name):
        sign, hours, minutes = fixed.groups("0")
        own = timedelta(hours=int(hours), minutes=int(minutes))
        return timezone(-own if sign == "-" else own)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
