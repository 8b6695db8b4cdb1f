"""Avro object container files: the columns of their schemas, and blocks as fastavro decodes them.

fastavro is given a schema with the same encoding and without what would lose something: logical
types are numbers and bytes, texts are bytes, enums are integers, and maps are lists of pairs. What
they stand for is made by Arrow.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from lakeload_jobs.core.avro_blocks import CODECS, BlockTooLarge, DamagedBlock, unpacked
from lakeload_jobs.rows.arrow import Column as Array
from lakeload_jobs.rows.arrow import Kind, with_child
from lakeload_jobs.sources.base import UnreadableFile
from lakeload_jobs.sources.batch_sizes import (
    LARGE_RECORD_HINT,
    MAX_VALUE_BYTES,
    is_too_large,
    too_large,
)
from lakeload_jobs.sources.files.text.opening import StartOfStream
from lakeload_jobs.sources.files.typed.columns import (
    INSTANT,
    LOCAL,
    MAX_DIGITS,
    Column,
    FileSchema,
    Unit,
    read_all,
    without_twins,
)
from lakeload_jobs.sources.files.typed.rows import Batch, TypedPart
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState
from lakeload_jobs.sources.paths.source_bytes import CHUNK, Bytes

_MAGIC = b"Obj\x01"
_SYNC = 16
_UNIT_BYTES = 1 << 20
_BATCH_BYTES = 4 << 20
_MOST_DIGITS = 76
"""More has no decimal of Arrow."""
_EXACT = Context(prec=4096)
_SPARK_VERSION = "org.apache.spark.version"
_OLD_CALENDAR = "org.apache.spark.legacyDateTime"
_NOT_DECODED = (EOFError, IndexError, KeyError, OverflowError, TypeError, ValueError, struct.error)


def read_avro_headers(
    files: Sequence[FileState],
    opener: FileBytes,
    *,
    whole: bool = True,
    sets_aside: bool = False,
) -> tuple[FileSchema, ...]:
    """Return what the headers of `files` say and where their blocks are, in their order; without
    `whole` no blocks. `sets_aside` is for `read_all`.

    Raises `LoadFailed` naming a file that is not there any more or is no Avro file, and `AwsError`.
    """

    def read(file: FileState) -> FileSchema:
        with opener.stream(file) as stream:
            blocks = _Blocks(file, stream)
            record = blocks.header.record(file)
            columns = [_column(file, name, node) for name, node in record.columns]
            units = tuple(blocks.units()) if whole else ()
        version = blocks.header.notes.get(_SPARK_VERSION, b"")
        old = _OLD_CALENDAR in blocks.header.notes or version.startswith((b"1.", b"2."))
        codec = blocks.header.codec.replace("null", "")
        return FileSchema(file, without_twins(file.path, columns), units, old, codec)

    return read_all(files, read, sets_aside=sets_aside)


def schema_text(file: FileState, opener: FileBytes) -> bytes:
    """Return the JSON text of the schema in a file's header. Raises `UnreadableFile`."""
    with opener.stream(file) as stream:
        return _Blocks(file, stream).header.notes.get("avro.schema", b"")


def _column(file: FileState, name: str, node: _Node) -> Column:
    refused = f"column `{name}` of `{file.path}` has {node.refused}, which is not supported"
    return Column(
        name,
        node.kind,
        file.path,
        refused=refused if node.refused else "",
        may_be_bad=node.may_be_bad,
        stored=None if node.stored == node.kind else node.stored,
    )


@dataclass(frozen=True)
class AvroReader:
    """Opens blocks; it travels to the tasks."""

    files: FileBytes

    @contextmanager
    def open(self, part: TypedPart, names: Sequence[str]) -> Iterator[Iterator[Batch]]:
        """Open those columns of a part that its file has."""
        with self.files.stream(part.file) as stream:
            header = _Blocks(part.file, stream).header
        yield self._batches(part, header, names)

    def _batches(self, part: TypedPart, header: _Header, names: Sequence[str]) -> Iterator[Batch]:
        record = header.record(part.file)
        for first, end, before in _spans(part.units):
            with self.files.stream(part.file, first) as stream:
                blocks = _Blocks(part.file, stream, header, first)
                for count, held in blocks.read(end, before):
                    yield Batch(record.arrays(part.file, count, held, names), count)


def _spans(units: Sequence[Unit]) -> Iterator[tuple[int, int, int]]:
    """Yield the bytes of units, those of neighbours as one, and how many rows come before."""
    start = end = -1
    before = 0
    for unit in units:
        if unit.start != end:
            if end >= 0:
                yield start, end, before
            start, before = unit.start, unit.first_row or 0
        end = unit.end
    if end >= 0:
        yield start, end, before


@dataclass(frozen=True)
class _Header:
    """The header of a file; `notes` are its metadata."""

    notes: Mapping[str, bytes]
    sync: bytes
    size: int

    @property
    def codec(self) -> str:
        """How blocks are packed."""
        return self.notes.get("avro.codec", b"null").decode(errors="replace")

    def record(self, file: FileState) -> _Record:
        """Return the schema of the rows. Raises `UnreadableFile`."""
        try:
            return _Record(json.loads(self.notes["avro.schema"]))
        except _NoRecord as error:
            raise UnreadableFile(
                file.path,
                "its rows have no columns: its schema is not that of a record",
                hint="write it with a record as its schema",
            ) from error
        except (KeyError, TypeError, ValueError) as error:
            said = " ".join(str(error).split())[:200]
            raise _damaged(file, f"its schema is not valid: {said}") from error


class _Blocks:
    """The blocks of a file, read from the front; without a `header` that is read first."""

    def __init__(
        self, file: FileState, stream: Bytes, header: _Header | None = None, at: int = 0
    ) -> None:
        self._file = file
        self._raw = stream
        self._stream = StartOfStream(stream)
        self._at = at
        self.header = self._read_header() if header is None else header

    def units(self) -> Iterator[Unit]:
        """Yield the blocks that are left, some of them at a time. Raises `UnreadableFile`."""
        number = before = rows = 0
        start = self._at
        while (count := self._count()) is not None:
            size = self._long()
            self._check_size(size, before + rows, count)
            self._skip(size)
            self._check_sync()
            rows += count
            if self._at - start >= _UNIT_BYTES:
                yield Unit(rows, self._at - start, number, None, before, start, self._at)
                number, before, rows, start = number + 1, before + rows, 0, self._at
        if rows:
            yield Unit(rows, self._at - start, number, None, before, start, self._at)

    def read(self, end: int, before: int) -> Iterator[tuple[int, bytearray]]:
        """Yield the unpacked records of blocks up to `end`, with how many the blocks say they are;
        `before` records of the file come first.

        Raises `UnreadableFile`.
        """
        held, rows = bytearray(), 0
        while self._at < end and (count := self._count()) is not None:
            try:
                block = self._unpacked(self._take(self._long()))
            except BlockTooLarge as error:
                self._check_size(error.size, before + rows, count)
                raise
            self._check_sync()
            held += block
            del block
            rows += count
            if len(held) >= _BATCH_BYTES:
                yield rows, held
                before += rows
                held, rows = bytearray(), 0
        if rows:
            yield rows, held

    def _check_size(self, size: int, before: int, count: int) -> None:
        """Raise `UnreadableFile` for a block that is too large to be decoded at once."""
        if not is_too_large(size):
            return
        if count <= 1:
            raise UnreadableFile(
                self._file.path,
                f"row {before + 1:,}: a record {too_large(size)}",
                hint=LARGE_RECORD_HINT,
            )
        raise UnreadableFile(
            self._file.path,
            f"rows {before + 1:,} to {before + count:,}: a block of records {too_large(size)}",
            hint=f"{LARGE_RECORD_HINT}; without such values, write smaller blocks",
        )

    def _read_header(self) -> _Header:
        if self._stream.peek(len(_MAGIC)) != _MAGIC:
            raise UnreadableFile(
                self._file.path, "it is not an Avro file", hint="check the file and `format`"
            )
        self._take(len(_MAGIC))
        notes: dict[str, bytes] = {}
        while count := self._long():
            if count < 0:
                self._long()  # the size of the block
            for _ in range(abs(count)):
                name = self._take(self._long()).decode(errors="replace")
                notes[name] = self._take(self._long())
        return _Header(notes, self._take(_SYNC), self._at)

    def _count(self) -> int | None:
        """Return how many records the next block has; None at the end of the file."""
        return self._long() if self._stream.peek(1) else None

    def _long(self) -> int:
        value = shift = 0
        while True:
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return (value >> 1) ^ -(value & 1)
            if shift > 63:
                raise _damaged(self._file, "it has a number of more than 64 bits")

    def _take(self, size: int) -> bytes:
        if size < 0:
            raise _damaged(self._file, "it has a negative length")
        parts, left = [], size
        while left and (part := self._stream.read(min(left, CHUNK))):
            parts.append(part)
            left -= len(part)
        self._at += size
        if left:
            raise _damaged(self._file, "it ends within a block")
        return b"".join(parts)

    def _skip(self, size: int) -> None:
        if size < 0:
            raise _damaged(self._file, "it has a negative length")
        held = min(len(self._stream.held), size)
        self._stream.skip(held)
        self._at += held
        left = size - held
        if left and isinstance(self._raw, io.IOBase) and self._raw.seekable():  # a local file
            self._raw.seek(left, io.SEEK_CUR)
            self._at += left
            return
        while left:
            left -= len(self._take(min(left, CHUNK)))

    def _check_sync(self) -> None:
        if self._take(_SYNC) != self.header.sync:
            raise _damaged(self._file, "a block does not end with the marker of the file")

    def _unpacked(self, data: bytes) -> bytes:
        codec = self.header.codec
        if codec not in CODECS:
            raise UnreadableFile(
                self._file.path,
                f"its codec `{codec}` is not supported",
                hint="write it with deflate, snappy, zstandard, bzip2 or xz, or without a codec",
            )
        try:
            return unpacked(codec, data, MAX_VALUE_BYTES)
        except DamagedBlock as error:
            raise _damaged(self._file, str(error)) from error


def _varint(number: int) -> bytes:
    """Return a whole number that is not negative, as Avro writes it."""
    left, out = number << 1, bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes((*out, left))


def _damaged(file: FileState, why: str) -> UnreadableFile:
    return UnreadableFile(
        file.path,
        f"the Avro file is damaged: {why}",
        hint="copy the file from its source again",
    )


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class _Node:
    """A type of a schema.

    `kind` is that of its values, and `stored` the type without what its logical type says. `plain`
    is the schema for fastavro, whose values are of Arrow's type `raw` once `value` was applied;
    `array` makes arrays of that what they stand for. `refused` says why they are not read.
    """

    kind: Kind
    plain: Any
    raw: Kind
    array: Callable[[Array], Array] = _same
    value: Callable[[Any], Any] | None = None
    stored: Kind = None
    refused: str = ""
    may_be_bad: bool = False

    def __post_init__(self) -> None:
        if self.stored is None:
            object.__setattr__(self, "stored", self.kind)


class _NoRecord(Exception):
    """A schema is that of numbers, lists or other values."""


class _Record:
    """The schema of the rows of a file. Raises `_NoRecord` for one of another type, and
    `ValueError`, `KeyError` and `TypeError` for what is no schema."""

    def __init__(self, schema: Any) -> None:
        walk = _Walk()
        node = walk.node(schema, "")
        if not isinstance(node.plain, dict) or node.plain.get("name") not in walk.fields:
            raise _NoRecord
        self.columns: tuple[tuple[str, _Node], ...] = walk.fields_of(node)
        self._start = _container_header(node.plain)

    def arrays(
        self, file: FileState, count: int, packed: bytearray, names: Sequence[str]
    ) -> dict[str, Array]:
        """Return columns of so many records, given their bytes. Raises `UnreadableFile`."""
        # It takes a while, and only tasks need it.
        import fastavro

        nodes = dict(self.columns)
        try:
            head = _varint(count) + _varint(len(packed))
            (block,) = fastavro.block_reader(
                io.BytesIO(b"".join((self._start, head, packed, bytes(_SYNC)))),
                return_record_name=True,
                return_record_name_override=True,
            )
            records: list[Any] = list(block)
            left: Any = block
            if left.bytes_.read(1):
                raise ValueError(f"blocks of {count:,} records have more of them")
            arrays = {}
            for place, (name, _) in enumerate(self.columns):
                if name not in names:
                    continue
                node, key = nodes[name], f"f{place}"
                values = [record[key] for record in records]
                if node.value is not None:
                    values = [node.value(value) for value in values]
                arrays[name] = node.array(pa.array(values, node.raw))
        except (*_NOT_DECODED, pa.ArrowException) as error:
            why = " ".join(str(error).split())[:200] or type(error).__name__
            raise _damaged(file, f"its records cannot be read: {why}") from error
        return arrays


def _container_header(schema: Any) -> bytes:
    """Return the header of a file with this schema, not packed."""
    out = io.BytesIO()
    out.write(_MAGIC + _varint(1))
    for text in (b"avro.schema", json.dumps(schema).encode()):
        out.write(_varint(len(text)) + text)
    out.write(_varint(0) + bytes(_SYNC))
    return out.getvalue()


_PRIMITIVES: Mapping[str, tuple[Kind, str]] = {
    "null": (pa.null(), "null"),
    "boolean": (pa.bool_(), "boolean"),
    "int": (pa.int32(), "int"),
    "long": (pa.int64(), "long"),
    "float": (pa.float32(), "float"),
    "double": (pa.float64(), "double"),
    "bytes": (pa.binary(), "bytes"),
}
_TICKS: Mapping[tuple[str, str], tuple[Kind, Kind]] = {
    ("int", "date"): (pa.date32(), pa.date32()),
    ("int", "time-millis"): (pa.time32("ms"), pa.string()),
    ("long", "time-micros"): (pa.time64("us"), pa.string()),
    ("long", "timestamp-millis"): (pa.timestamp("ms", "UTC"), INSTANT),
    ("long", "timestamp-micros"): (INSTANT, INSTANT),
    ("long", "timestamp-nanos"): (pa.timestamp("ns", "UTC"), INSTANT),
    ("long", "local-timestamp-millis"): (pa.timestamp("ms"), LOCAL),
    ("long", "local-timestamp-micros"): (LOCAL, LOCAL),
    ("long", "local-timestamp-nanos"): (pa.timestamp("ns"), LOCAL),
}
"""Logical types of numbers: the type of Arrow with the same numbers, and the kind."""

_ALWAYS_READ_SO = ("date", "timestamp-millis", "timestamp-micros")
_SAME_NUMBERS = ({"int", "long"}, {"float", "double"})


@dataclass
class _Walk:
    """Goes through a schema. Types with a name are put where they are referred to, under names of
    their own, as their fields are: names need not be those that fastavro accepts."""

    named: dict[str, Any] = field(default_factory=dict)
    open: dict[str, str] = field(default_factory=dict)
    """Records that are being gone through, and their new names."""
    fields: dict[str, tuple[tuple[str, _Node], ...]] = field(default_factory=dict)
    count: int = 0

    def node(self, schema: Any, space: str) -> _Node:
        """Return a type; `space` is the namespace around it."""
        if isinstance(schema, list):
            return self._union(schema, space)
        if isinstance(schema, dict) and isinstance(schema.get("type"), dict | list):
            return self.node(schema["type"], space)
        name = schema["type"] if isinstance(schema, dict) else schema
        about: Mapping[str, Any] = schema if isinstance(schema, dict) else {}
        if name in ("record", "error", "enum", "fixed"):
            return self._define(name, about, space)
        if name == "array":
            return self._array(self.node(about["items"], space))
        if name == "map":
            return self._map(self.node(about["values"], space))
        if name == "string":
            return _text()
        if name in _PRIMITIVES:
            return _primitive(name, about)
        return self._named(str(name), space)

    def fields_of(self, node: _Node) -> tuple[tuple[str, _Node], ...]:
        """Return the fields of a record."""
        return self.fields[node.plain["name"]]

    def _new_name(self) -> str:
        self.count += 1
        return f"r{self.count}"

    def _define(self, kind: str, about: Mapping[str, Any], space: str) -> _Node:
        full = _full_name(str(about["name"]), about.get("namespace", space))
        inner = full.rpartition(".")[0]
        self.named[full] = (about, inner)
        if kind == "enum":
            return _enum([str(symbol) for symbol in about["symbols"]])
        if kind == "fixed":
            return _fixed(self._new_name(), about)
        return self._record(full, about, inner)

    def _named(self, name: str, space: str) -> _Node:
        full = _full_name(name, space)
        about, inner = self.named.get(full) or self.named[name]
        if full in self.open:
            refused = f"the recursive type `{full}`"
            return _Node(pa.null(), self.open[full], pa.null(), refused=refused)
        return self._define(about["type"], {**about, "name": full}, inner)

    def _record(self, full: str, about: Mapping[str, Any], space: str) -> _Node:
        name = self.open[full] = self._new_name()
        nodes = [(str(one["name"]), self.node(one["type"], space)) for one in about["fields"]]
        del self.open[full]
        self.fields[name] = tuple(nodes)
        return _struct(name, nodes, full)

    def _array(self, item: _Node) -> _Node:
        fix = item.value

        def array(column: Array) -> Array:
            child = item.array(column.values)
            return with_child(column, pa.list_(child.type), child)

        return _Node(
            pa.list_(item.kind),
            {"type": "array", "items": item.plain},
            pa.list_(item.raw),
            array,
            None if fix is None else lambda values: values and [fix(value) for value in values],
            pa.list_(item.stored),
            item.refused,
            item.may_be_bad,
        )

    def _map(self, item: _Node) -> _Node:
        pair = _struct(self._new_name(), [("key", _text()), ("value", item)], "")
        pairs = self._array(pair)

        def array(column: Array) -> Array:
            entries = pair.array(column.values)
            kind = pa.map_(entries.type.field(0).type, entries.type.field(1).type)
            entries = pa.StructArray.from_arrays(
                entries.flatten(), fields=[kind.key_field, kind.item_field]
            )
            return with_child(column, kind, entries)

        return _Node(
            pa.map_(pa.string(), item.kind),
            pairs.plain,
            pairs.raw,
            array,
            pairs.value,
            pa.map_(pa.string(), item.stored),
            item.refused,
            True,
        )

    def _union(self, branches: Sequence[Any], space: str) -> _Node:
        nodes = [self.node(branch, space) for branch in branches]
        others = [node for node in nodes if node.plain != "null"]
        if not others:
            return _Node(pa.null(), ["null"], pa.null())
        if len(others) == 1:
            return _with_plain(others[0], [node.plain for node in nodes])
        own = {str(node.plain) for node in others}
        if own in _SAME_NUMBERS and all(node.kind == node.raw for node in others):
            return _with_plain(
                next(node for node in others if node.plain in ("long", "double")),
                [node.plain for node in nodes],
            )
        return self._members(nodes)

    def _members(self, nodes: Sequence[_Node]) -> _Node:
        """A struct with a field for each type of a union, as Spark has it. Each is a record of one
        field to fastavro, which is encoded the same, and whose name says which it is."""
        fields: list[tuple[str, _Node]] = []
        plain: list[Any] = []
        places: dict[str, tuple[str, Callable[[Any], Any]]] = {}
        for node in nodes:
            if node.plain == "null":
                plain.append("null")
                continue
            name, place = self._new_name(), len(fields)
            plain.append(_plain_record(name, [node]))
            places[name] = (f"f{place}", node.value or _same)
            fields.append((f"member{place}", node))
        whole = _struct("", fields, "")

        def value(found: Any) -> Any:
            if found is None:
                return None
            name, record = found
            place, fix = places[name]
            return {place: fix(record["f0"])}

        return replace(whole, plain=plain, value=value)


def _full_name(name: str, space: Any) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _with_plain(node: _Node, plain: Any) -> _Node:
    fix = node.value
    value = None if fix is None else lambda value: None if value is None else fix(value)
    return replace(node, plain=plain, value=value)


def _plain_record(name: str, nodes: Sequence[_Node]) -> dict[str, Any]:
    fields = [{"name": f"f{place}", "type": node.plain} for place, node in enumerate(nodes)]
    return {"type": "record", "name": name, "fields": fields}


def _struct(name: str, nodes: Sequence[tuple[str, _Node]], full: str) -> _Node:
    own = [node for _, node in nodes]
    refused = next((node.refused for node in own if node.refused), "")
    if not nodes:
        refused = f"the record `{full}`, which has no fields"
    if len({label for label, _ in nodes}) < len(nodes):
        refused = f"two fields of one name in `{full}`"
    fixes = [(f"f{place}", fix) for place, node in enumerate(own) if (fix := node.value)]

    def array(column: Array) -> Array:
        children = [node.array(column.field(place)) for place, node in enumerate(own)]
        fields = [
            pa.field(label, child.type) for (label, _), child in zip(nodes, children, strict=True)
        ]
        return pa.StructArray.from_arrays(children, fields=fields, mask=column.is_null())

    def value(record: Any) -> Any:
        if record is None:
            return None
        return {**record, **{key: fix(record[key]) for key, fix in fixes}}

    return _Node(
        pa.struct([(label, node.kind) for label, node in nodes]),
        _plain_record(name, own),
        pa.struct([(f"f{place}", node.raw) for place, node in enumerate(own)]),
        array,
        value if fixes else None,
        pa.struct([(label, node.stored) for label, node in nodes]),
        refused,
        any(node.may_be_bad for node in own),
    )


def _text() -> _Node:
    return _Node(pa.string(), "bytes", pa.binary(), may_be_bad=True)


def _primitive(name: str, about: Mapping[str, Any]) -> _Node:
    kind, plain = _PRIMITIVES[name]
    logical = about.get("logicalType")
    if name == "bytes" and logical == "decimal" and (digits := _digits(about)):
        return _decimal(plain, kind, *digits)
    ticks = _TICKS.get((name, str(logical)))
    if ticks is None:
        return _Node(kind, plain, kind)
    own, becomes = ticks
    return _Node(
        becomes,
        plain,
        kind,
        lambda column: column.view(own),
        stored=becomes if _read_by_spark(str(logical)) else kind,
        may_be_bad=own != becomes,
    )


def _read_by_spark(logical: str) -> bool:
    """Whether Spark's reader, with which tables were loaded, knows a logical type too."""
    return logical.removeprefix("local-") in _ALWAYS_READ_SO


def _digits(about: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return precision and scale; None where they are not what a decimal may have, which is then
    bytes, as the specification has it."""
    precision, scale = about.get("precision"), about.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int):
        return None
    size = about.get("size")
    if isinstance(size, int) and precision > len(str(2 ** (8 * size - 1) - 1)):
        return None
    return (precision, scale) if 0 <= scale <= precision and precision > 0 else None


def _decimal(plain: Any, raw: Kind, precision: int, scale: int) -> _Node:
    as_text = precision > MAX_DIGITS
    kind = pa.string() if as_text else pa.decimal128(precision, scale)

    def array(column: Array) -> Array:
        values = [
            None
            if one is None
            else _EXACT.scaleb(Decimal(int.from_bytes(one, "big", signed=True)), -scale)
            for one in column.to_pylist()
        ]
        if as_text:
            texts = [None if one is None else f"{one:f}" for one in values]
            return pa.array(texts, pa.string())
        return pa.array(values, pa.decimal256(_MOST_DIGITS, scale))

    return _Node(kind, plain, raw, array, may_be_bad=not as_text)


def _enum(symbols: Sequence[str]) -> _Node:
    texts = pa.array(symbols, pa.string())
    return _Node(
        pa.string(),
        "int",
        pa.int32(),
        lambda column: pa.DictionaryArray.from_arrays(column, texts).dictionary_decode(),
    )


def _fixed(name: str, about: Mapping[str, Any]) -> _Node:
    size = about["size"]
    plain = {"type": "fixed", "name": name, "size": size}
    logical = about.get("logicalType")
    if logical == "decimal" and (digits := _digits(about)):
        return _decimal(plain, pa.binary(), *digits)
    if (logical, size) in (("uuid", 16), ("duration", 12)):
        own = pa.binary(size)
        return _Node(pa.string(), plain, own, stored=pa.binary())
    return _Node(pa.binary(), plain, pa.binary())
