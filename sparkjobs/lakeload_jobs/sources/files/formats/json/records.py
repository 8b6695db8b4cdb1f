"""Records of JSON files, and their values as they are written.

A block of records is cut by whole-array operations: its signs outside of strings, how deep each of
them is, and which container it belongs to say where every value begins and ends. No value is
parsed, so none is changed. Whether a block is JSON is decided by the same arrays: which sign may
follow which in which container, what stands between them, and that no object has a key twice. A
block that is not, is parsed record by record by Python's `json`, which says what is wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakeload_jobs.rows.arrow import Column, pc
from lakeload_jobs.sources.batch_sizes import MAX_VALUE_BYTES
from lakeload_jobs.sources.files.text.batches import BadRecord, RecordTooLong
from lakeload_jobs.sources.files.text.values import shortened
from lakeload_jobs.sources.paths.source_bytes import Bytes, is_utf8, read_more

BLOCK = 1 << 19
MAX_RECORD = MAX_VALUE_BYTES // 8
"""The signs of a record take some twenty times its bytes while it is read."""
MAX_DEPTH = 500
_TOO_DEEP = f"its values are nested more than {MAX_DEPTH} deep"
_NO_MATCH = "its brackets do not match"
_MOST_LEVELS = 32_000
"""Fits into 16 bits."""
_LF = 10
_BLANKS = b" \t\n\r"

Bytes8 = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST, _COLON, _COMMA, _QUOTE = range(1, 8)
_LIST_COMMA, _VALUE, _RECORD, _RECORD_END = range(8, 12)
_MARKS = np.zeros(256, np.uint8)
_MARKS[[*b'{}[]:,"']] = range(1, 8)
_DEPTHS = np.array([0, 1, -1, 1, -1, 0, 0, 0], np.int32)
_IS_BLANK = np.zeros(256, bool)
_IS_BLANK[[*_BLANKS]] = True
_IS_ESCAPE = np.zeros(256, bool)
_IS_ESCAPE[[*b'"/bfnrtu']] = True
_HEX = np.full(256, 255, np.uint8)
for _digits in (b"0123456789abcdef", b"0123456789ABCDEF"):
    _HEX[[*_digits]] = range(16)
_SCALAR = r"^(-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?|true|false|null)$"


def _following() -> Flags:
    """Return which sign may follow which, without and with a scalar between them."""
    ends = (_COMMA, _LIST_COMMA, _CLOSE, _CLOSE_LIST, _RECORD_END)
    begins = (_VALUE, _OPEN, _OPEN_LIST)
    table = np.zeros((12, 12, 2), bool)
    for opens in (_OPEN, _RECORD):
        table[opens, [_QUOTE, _CLOSE, _RECORD_END], 0] = True
    table[_QUOTE, _COLON, 0] = True
    table[_COLON, begins, 0] = True
    table[_COLON, ends, 1] = True
    for value in (_VALUE, _CLOSE, _CLOSE_LIST):
        table[value, ends, 0] = True
    table[_COMMA, _QUOTE, 0] = True
    table[_LIST_COMMA, begins, 0] = True
    table[_OPEN_LIST, (*begins, _CLOSE_LIST), 0] = True
    for before in (_LIST_COMMA, _OPEN_LIST):
        table[before, [_LIST_COMMA, _CLOSE_LIST], 1] = True
    table[_RECORD_END, _RECORD, 0] = True
    return table


_FOLLOWING = _following()


class NotJson(Exception):
    """A block that is not JSON, or not records as they are expected."""


class BrokenFile(Exception):
    """A file that is broken beyond one record."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line


@dataclass(frozen=True)
class Signs:
    """The signs of some JSON outside of strings: brackets, colons, commas, and strings."""

    codes: Bytes8
    """The bytes."""
    at: Places
    ends: Places
    kinds: Bytes8
    levels: npt.NDArray[np.int16]
    """How deep the container is that a sign belongs to; a bracket belongs to its own."""
    closed: bool
    """Whether the last string has an end."""

    @cached_property
    def strings(self) -> Flags:
        """Which of them are strings."""
        flags: Flags = self.kinds == _QUOTE
        return flags


def find_signs(data: bytes) -> Signs:
    """Return the signs of JSON in UTF-8 that begins outside of a string."""
    codes = np.frombuffer(data, np.uint8)
    marks = _MARKS.take(codes)
    at: Places = np.flatnonzero(marks)
    kinds = marks[at]
    if b"\\" in data:
        escaped = _escaped(codes)
        quotes = escaped[codes[escaped] == ord('"')]
        if len(quotes):
            keep = np.ones(len(at), bool)
            keep[np.searchsorted(at, quotes)] = False
            at, kinds = at[keep], kinds[keep]
    is_quote = kinds == _QUOTE
    parity = np.cumsum(is_quote, dtype=np.uint8) & 1
    # Outside of strings, and the quotes that open one.
    keep = parity == is_quote
    closing = at[is_quote & (parity == 0)]
    at, kinds = at[keep], kinds[keep]
    opening = np.flatnonzero(kinds == _QUOTE)
    closed = len(opening) == len(closing)
    ends = at + 1
    ends[opening[: len(closing)]] = closing + 1
    depths = np.cumsum(_DEPTHS.take(kinds), dtype=np.int32)
    levels = depths + ((kinds == _CLOSE) | (kinds == _CLOSE_LIST))
    if levels.max(initial=0) > _MOST_LEVELS:
        raise NotJson(_TOO_DEEP)
    if levels.min(initial=0) < -_MOST_LEVELS:
        raise NotJson
    return Signs(codes, at, ends, kinds, levels.astype(np.int16), closed)


def _escaped(codes: Bytes8) -> Places:
    """Return the places behind each backslash that is not escaped itself, and is no pair with the
    one that follows."""
    slashes = np.flatnonzero(codes == ord("\\"))
    starts = np.flatnonzero(np.diff(slashes, prepend=-2) != 1)
    lengths = np.diff(starts, append=len(slashes))
    last = slashes[starts + lengths - 1]
    behind: Places = last[lengths % 2 == 1] + 1
    return behind[behind < len(codes)]


def _trimmed(codes: Bytes8, starts: Places, ends: Places) -> tuple[Places, Places]:
    """Return places without the blanks at both ends of each."""
    starts, ends = starts.copy(), ends.copy()
    left = np.flatnonzero((starts < ends) & _IS_BLANK[codes.take(starts, mode="clip")])
    while len(left):
        starts[left] += 1
        left = left[(starts[left] < ends[left])]
        left = left[_IS_BLANK[codes[starts[left]]]]
    left = np.flatnonzero((starts < ends) & _IS_BLANK[codes.take(ends - 1, mode="clip")])
    while len(left):
        ends[left] -= 1
        left = left[(starts[left] < ends[left])]
        left = left[_IS_BLANK[codes[ends[left] - 1]]]
    return starts, ends


def check_records(data: bytes, signs: Signs) -> None:
    """Raise `NotJson` unless the data is objects with nothing but blanks between them."""
    if not signs.closed or not is_utf8(data):
        raise NotJson
    levels, kinds = signs.levels, signs.kinds
    if not len(levels):
        if data.strip(_BLANKS):
            raise NotJson
        return
    if levels.min() < 1 or levels.max() > MAX_DEPTH or kinds[-1] != _CLOSE or levels[-1] != 1:
        raise NotJson
    _check_strings(data, signs)
    order = np.argsort(levels, kind="stable")
    in_order = kinds[order]
    opens = (in_order == _OPEN) | (in_order == _OPEN_LIST)
    # The signs of one container follow each other in this order.
    container = np.cumsum(opens) - 1
    in_object = (in_order[opens] == _OPEN)[container]
    if (in_object[in_order == _CLOSE_LIST]).any() or (~in_object[in_order == _CLOSE]).any():
        raise NotJson
    full = _full_kinds(signs, order, in_object)
    if full[0] != _RECORD:
        raise NotJson
    scalar = _scalars(data, signs)
    if not _FOLLOWING[full[:-1], full[1:], scalar.astype(np.int8)].all():
        raise NotJson
    is_key = full == _QUOTE
    numbers, _ = _names(data, signs.at[is_key], signs.ends[is_key])
    keys = is_key[order]
    numbers = numbers[(np.cumsum(is_key) - 1)[order[keys]]]
    by_name = _stable_order(numbers)
    names, containers = numbers[by_name], container[keys][by_name]
    if ((names[1:] == names[:-1]) & (containers[1:] == containers[:-1])).any():
        raise NotJson


def _stable_order(numbers: Places) -> Places:
    """Return the order of small numbers; numpy sorts those of 16 bits by their digits."""
    small = numbers.astype(np.int16) if numbers.max(initial=0) < 1 << 15 else numbers
    order: Places = np.argsort(small, kind="stable")
    return order


def _full_kinds(signs: Signs, order: Places, in_object: Flags) -> Bytes8:
    """Return kinds that tell commas by their containers, keys from values, and records."""
    kinds, levels = signs.kinds, signs.levels
    full = kinds.copy()
    belongs = np.empty(len(kinds), bool)
    belongs[order] = in_object
    full[(kinds == _COMMA) & ~belongs] = _LIST_COMMA
    strings = np.flatnonzero(signs.strings)
    before = full[strings - 1]
    full[strings[(before != _OPEN) & (before != _COMMA)]] = _VALUE
    records = levels == 1
    full[records & (kinds == _OPEN)] = _RECORD
    full[records & (kinds == _CLOSE)] = _RECORD_END
    return full


def _scalars(data: bytes, signs: Signs) -> Flags:
    """Return behind which signs a scalar stands. Raises `NotJson` for what is none."""
    codes, at, ends = signs.codes, signs.at, signs.ends
    if data[: at[0]].strip(_BLANKS) or data[ends[-1] :].strip(_BLANKS):
        raise NotJson
    found = np.zeros(len(at) - 1, bool)
    gaps = np.flatnonzero(at[1:] > ends[:-1])
    starts, stops = _trimmed(codes, ends[gaps], at[gaps + 1])
    some = starts < stops
    found[gaps[some]] = True
    texts = slices(data, starts[some], stops[some])
    if not pc.all(pc.match_substring_regex(texts, _SCALAR), min_count=0).as_py():
        raise NotJson
    return found


def _check_strings(data: bytes, signs: Signs) -> None:
    codes, strings = signs.codes, signs.strings
    starts, ends = signs.at[strings], signs.ends[strings]
    control = np.flatnonzero(codes < 32)
    if _inside(control, starts, ends).any():
        raise NotJson
    if b"\\" not in data:
        return
    if not _inside(np.flatnonzero(codes == ord("\\")), starts, ends).all():
        raise NotJson
    escapes = _escaped(codes)
    signs_behind = codes[escapes]
    if not _IS_ESCAPE[signs_behind].all():
        raise NotJson
    at = escapes[signs_behind == ord("u")]
    if not len(at):
        return
    if at[-1] + 4 >= len(codes):
        raise NotJson
    digits = _HEX[codes[at[:, None] + np.arange(1, 5)]]
    if (digits == 255).any():
        raise NotJson
    high = (digits[:, 0] == 13) & (digits[:, 1] >= 8) & (digits[:, 1] < 12)
    low = (digits[:, 0] == 13) & (digits[:, 1] >= 12)
    if not high.any() and not low.any():
        return
    # Each low half follows a high one at once.
    follows = np.zeros(len(at), bool)
    follows[1:] = high[:-1] & (np.diff(at) == 6)
    if (low != follows).any() or high[-1]:
        raise NotJson


def _inside(places: Places, starts: Places, ends: Places) -> Flags:
    """Return which places are within strings."""
    if not len(starts):
        return np.zeros(len(places), bool)
    nearest = np.searchsorted(starts, places, side="right") - 1
    inside: Flags = (nearest >= 0) & (places < ends[nearest])
    return inside


def to_arrow(values: npt.NDArray[Any], mask: Flags | None = None) -> Column:
    """Return numbers as Arrow has them, null where `mask` says so."""
    return pa.array(values, mask=mask)


def _buffer(numbers: Any) -> pa.Buffer:
    return pa.py_buffer(numbers)


def slices(data: bytes, starts: Places, ends: Places) -> Column:
    """Return parts of some data, which follow each other."""
    bounds = np.empty(2 * len(starts), np.int32)
    bounds[0::2], bounds[1::2] = starts, ends
    if not len(starts):
        return pa.array([], pa.binary())
    pieces = pa.Array.from_buffers(
        pa.binary(), len(bounds) - 1, [None, _buffer(bounds), pa.py_buffer(data)]
    )
    return pieces.take(to_arrow(np.arange(0, len(bounds), 2, dtype=np.int32)))


def _names(data: bytes, at: Places, ends: Places) -> tuple[Places, list[str]]:
    """Return the number of each key's name, and the names."""
    encoded = slices(data, at + 1, ends - 1).dictionary_encode()
    numbers: Places = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    raw = encoded.dictionary.to_pylist()
    names = [json.loads(b'"%s"' % name) if b"\\" in name else name.decode() for name in raw]
    unique = {name: number for number, name in enumerate(dict.fromkeys(names))}
    if len(unique) < len(names):
        numbers = np.array([unique[name] for name in names], np.int64)[numbers]
    return numbers, list(unique)


@dataclass(frozen=True)
class Members:
    """The keys and values of objects: for each key the object it is in, its name, its value."""

    data: bytes
    objects: int
    names: tuple[str, ...]
    object_numbers: Places
    name_numbers: Places
    starts: Places
    ends: Places
    object_starts: Places
    object_ends: Places
    """Where each object begins and ends."""

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    @cached_property
    def _by_name(self) -> list[Places]:
        """The keys of each name."""
        numbers = self.name_numbers
        ends = np.cumsum(np.bincount(numbers, minlength=len(self.names)))
        return np.split(_stable_order(numbers), ends[:-1]) if len(self.names) else []

    @cached_property
    def _pieces(self) -> Column:
        bounds = np.empty(2 * len(self.starts), np.int32)
        bounds[0::2], bounds[1::2] = self.starts, self.ends
        buffers = [None, _buffer(bounds), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.binary(), len(bounds) - 1, buffers)

    def column(self, name: str) -> Column:
        """Return the values of a name, one for each object: null where it has none."""
        number = self._numbers.get(name)
        if number is None:
            return pa.nulls(self.objects, pa.binary())
        keys = self._by_name[number]
        codes = np.frombuffer(self.data, np.uint8)
        is_null = codes[self.starts[keys]] == ord("n")
        if len(keys) == self.objects and not is_null.any():
            return self._pieces.take(to_arrow(2 * keys))
        places = np.zeros(self.objects, np.int64)
        absent = np.ones(self.objects, bool)
        rows = self.object_numbers[keys]
        places[rows], absent[rows] = 2 * keys, is_null
        return self._pieces.take(to_arrow(places, mask=absent))

    def values(self) -> Column:
        """Return the values of all keys, in their order."""
        if not len(self.starts):
            return pa.array([], pa.binary())
        is_null = np.frombuffer(self.data, np.uint8)[self.starts] == ord("n")
        places = np.arange(0, 2 * len(self.starts), 2)
        return self._pieces.take(to_arrow(places, mask=is_null))


def members_of(data: bytes, signs: Signs) -> Members:
    """Return the members of objects with nothing between them; nothing is checked."""
    outer = np.flatnonzero(signs.levels == 1)
    kinds, at, ends = signs.kinds[outer], signs.at[outer], signs.ends[outer]
    colons = np.flatnonzero(kinds == _COLON)
    # A value that is a string has a sign of its own.
    stops = colons + 1 + (kinds[colons + 1] == _QUOTE)
    starts, stops = _trimmed(signs.codes, ends[colons], at[stops])
    opens = kinds == _OPEN
    numbers, names = _names(data, at[colons - 1], ends[colons - 1])
    return Members(
        data=data,
        objects=int(opens.sum()),
        names=tuple(names),
        object_numbers=(np.cumsum(opens) - 1)[colons],
        name_numbers=numbers,
        starts=starts,
        ends=stops,
        object_starts=at[opens],
        object_ends=ends[kinds == _CLOSE],
    )


def concatenated(column: Column) -> bytes:
    """Return all values of a column without nulls."""
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    return memoryview(data or b"")[ends[0] : ends[-1]].tobytes()


def split_objects(column: Column) -> Members:
    """Return the members of a column of objects, without nulls."""
    data = concatenated(column)
    return members_of(data, find_signs(data))


def split_lists(column: Column) -> tuple[npt.NDArray[np.int32], Column]:
    """Return the elements of a column of lists, without nulls, and where those of each begin."""
    data = concatenated(column)
    signs = find_signs(data)
    kinds = signs.kinds
    outer = np.flatnonzero(
        (signs.levels == 1) & ((kinds == _OPEN_LIST) | (kinds == _COMMA) | (kinds == _CLOSE_LIST))
    )
    kinds, at = kinds[outer], signs.at[outer]
    begins = np.flatnonzero(kinds != _CLOSE_LIST)
    starts, stops = _trimmed(signs.codes, at[begins] + 1, at[begins + 1])
    some = starts < stops
    lists = (np.cumsum(kinds == _OPEN_LIST) - 1)[begins]
    counts = np.bincount(lists[some], minlength=len(column))
    offsets = np.zeros(len(column) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    starts, stops = starts[some], stops[some]
    elements = slices(data, starts, stops)
    is_null = signs.codes[starts] == ord("n")
    if is_null.any():
        elements = pc.if_else(to_arrow(is_null), pa.scalar(None, pa.binary()), elements)
    return offsets, elements


# Records by hand


class _Doubled(ValueError):
    pass


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _Doubled(key)
        found[key] = value
    return found


class _Word(ValueError):
    pass


def _word(name: str) -> Any:
    raise _Word(name)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_float=str, parse_int=str, parse_constant=_word
)
_KINDS = {dict: "an object", list: "a list", bool: "a boolean", str: "a text or a number"}


def problem_of(raw: bytes) -> str:
    """Return why some bytes are not one record, '' where they are."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return "its bytes are not text in the file's encoding"
    try:
        if find_signs(raw).levels.max(initial=0) > MAX_DEPTH:
            return _TOO_DEEP
    except NotJson as error:
        return str(error) or _NO_MATCH
    text = text.strip(_BLANKS.decode())
    try:
        value = _DECODER.decode(text)
        json.dumps(value, ensure_ascii=False).encode()
    except _Doubled as error:
        return f"it has the key `{shortened(str(error))}` twice"
    except _Word as error:
        return f"`{error}` is not JSON"
    except UnicodeEncodeError:
        return "a text in it has half of a surrogate pair"
    except json.JSONDecodeError as error:
        return (
            f"it is not JSON: {error.msg[:1].lower()}{error.msg[1:]} at character {error.pos + 1}"
        )
    if not isinstance(value, dict):
        return f"it is {_KINDS.get(type(value), 'null')}, and an object is expected"
    return ""


# Blocks


@dataclass(frozen=True)
class JsonBlock:
    """Whole records: `data` is JSON with blanks between them, in a file with `lines` one on each
    line. `line` is that of its first byte. `cuts` are the ends of the records where they are known.
    """

    data: bytes
    line: int
    lines: bool
    cuts: Places | None = None


@dataclass(frozen=True)
class Records:
    """The records of a block, and those that are broken."""

    members: Members
    bad: tuple[BadRecord, ...]
    lines: Sequence[int]
    """The lines of records that were parsed one by one."""
    block: JsonBlock

    def line(self, number: int) -> int:
        """Return the line on which a record begins."""
        if self.lines:
            return self.lines[number]
        return self.block.line + self.block.data.count(
            b"\n", 0, int(self.members.object_starts[number])
        )

    def raw(self, number: int) -> bytes:
        """Return the bytes of a record."""
        members = self.members
        return members.data[members.object_starts[number] : members.object_ends[number]]


def read_block(block: JsonBlock, *, check: bool = True) -> Records:
    """Return the records of a block. Without `check` it is known to be whole."""
    data = block.data
    try:
        signs = find_signs(data)
        if check:
            check_records(data, signs)
            if block.lines:
                _check_lines(signs)
        return Records(members_of(data, signs), (), (), block)
    except NotJson:
        return _by_hand(block)


def _check_lines(signs: Signs) -> None:
    """Raise `NotJson` unless each record is on a line of its own."""
    outer = signs.levels == 1
    starts = signs.at[outer & (signs.kinds == _OPEN)]
    ends = signs.at[outer & (signs.kinds == _CLOSE)]
    breaks = np.flatnonzero(signs.codes == _LF)
    first, last = np.searchsorted(breaks, starts), np.searchsorted(breaks, ends)
    if (first != last).any() or (first[1:] <= last[:-1]).any():
        raise NotJson


def _by_hand(block: JsonBlock) -> Records:
    good: list[bytes] = []
    lines: list[int] = []
    bad: list[BadRecord] = []
    for raw, line in _raw_records(block):
        problem = problem_of(raw)
        if problem:
            bad.append(BadRecord(line, raw, problem, len(good)))
        else:
            good.append(raw)
            lines.append(line)
    data = b"\n".join(good)
    signs = find_signs(data)
    check_records(data, signs)
    return Records(members_of(data, signs), tuple(bad), lines, block)


def _raw_records(block: JsonBlock) -> Iterator[tuple[bytes, int]]:
    """Yield each record without blanks around it, and its line."""
    data, line, at = block.data, block.line, 0
    if block.cuts is None:
        cuts: Sequence[int] = [found.end() for found in re.finditer(rb"\n|\Z", data)]
    else:
        cuts = [*block.cuts.tolist(), len(data)]
    for cut in cuts:
        raw = data[at:cut]
        begun = raw.lstrip(_BLANKS)
        if begun:
            yield begun.rstrip(_BLANKS), line + raw.count(b"\n", 0, len(raw) - len(begun))
        line += raw.count(b"\n")
        at = cut


@dataclass
class LineBlocks:
    """The lines that begin in a part of a file, block by block.

    `stream` begins at byte `end` of the file. The last line is the one that ends at `stop` or
    after; without `stop` all are read. When the iterator has ended, `end` is where the next part
    begins, and `line` the number of its first line.
    """

    stream: Bytes
    end: int = 0
    stop: int | None = None
    line: int = 1
    size: int = BLOCK

    def __iter__(self) -> Iterator[JsonBlock]:
        """Yield the blocks. Raises `RecordTooLong`."""
        held: list[bytes] = []
        length = 0
        while self.stop is None or self.end < self.stop:
            more = self.stream.read(self.size)
            cut = more.rfind(b"\n") + 1
            if more and not cut:
                held.append(more)
                length += len(more)
                if length > MAX_RECORD:
                    raise RecordTooLong(self.line)
                continue
            data = b"".join((*held, more[:cut] if more else b""))
            held, length = [more[cut:]] if more else [], len(more) - cut
            if self.stop is not None and self.end + len(data) > self.stop:
                # The line that ends at `stop` or after is the last.
                last = data.find(b"\n", max(self.stop - self.end - 1, 0)) + 1
                data = data[:last] if last else data
            if data:
                yield JsonBlock(data, self.line, lines=True)
                self.line += data.count(b"\n")
                self.end += len(data)
            if not more:
                return


def line_start(stream: Bytes, start: int) -> int:
    """Return where the first line begins at byte `start` or after, of a stream that begins one
    byte before; the end of the stream where none does."""
    at = start - 1
    while data := stream.read(1 << 16):
        found = data.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(data)
    return at


@dataclass
class ValueBlocks:
    """The objects of a file: one after the other, with or without lines between them, or the
    elements of one list. The first sign says which.

    `stream` begins at byte `end` of the file. `in_list`: the list has begun already, and ends with
    `]`, behind which `rest` is what follows.
    """

    stream: Bytes
    end: int = 0
    line: int = 1
    size: int = BLOCK
    least: int = 1 << 16
    in_list: bool = False
    is_part: bool = False
    """What follows the list is left to the caller."""
    rest: bytes = b""
    _begun: bool = field(default=False, init=False)

    def __iter__(self) -> Iterator[JsonBlock]:
        """Yield the blocks. Raises `RecordTooLong`, `BrokenFile`."""
        held, wanted, ended, after_value = b"", self.size, False, False
        while True:
            if not ended:
                held, ended = self._filled(held, wanted)
            if not self._begun and not self.in_list:
                first = held.lstrip(_BLANKS)
                if not first and not ended:
                    held = self._skipped(held, len(held))
                    continue
                self._begun = True
                self.in_list = first[:1] == b"["
                if self.in_list:
                    held = self._skipped(held, len(held) - len(first) + 1)
            block, taken, closed = self._cut(held, after_value=after_value)
            if block is not None:
                yield block
                after_value = True
            held = self._skipped(held, taken)
            if closed:
                self._finish(held, ended=ended)
                return
            if ended:
                self._check_end(held)
                return
            wanted = self.size if taken else 2 * len(held)
            if not taken and wanted > MAX_RECORD:
                path = None if self.in_list else first_list(held)
                raise RecordTooLong(self._line_of(held), path)

    def _filled(self, held: bytes, wanted: int) -> tuple[bytes, bool]:
        return read_more(self.stream, held, max(wanted - len(held), self.least))

    def _skipped(self, held: bytes, size: int) -> bytes:
        self.line += held.count(b"\n", 0, size)
        self.end += size
        return held[size:]

    def _line_of(self, held: bytes) -> int:
        return self.line + held.count(b"\n", 0, len(held) - len(held.lstrip(_BLANKS)))

    def _cut(self, held: bytes, *, after_value: bool) -> tuple[JsonBlock | None, int, bool]:
        """Return the records, how many bytes they and what surrounds them take, and whether the
        list ends there."""
        try:
            signs = find_signs(held)
        except NotJson as error:
            raise BrokenFile(self._line_of(held), str(error) or _NO_MATCH) from error
        kinds, levels, at = signs.kinds, signs.levels, signs.at
        closed, stop = False, len(held)
        below = np.flatnonzero(
            (levels <= 0) & ((kinds == _CLOSE) | (kinds == _CLOSE_LIST)),
        )
        if len(below):
            stop = int(at[below[0]])
            if not self.in_list or kinds[below[0]] != _CLOSE_LIST:
                line = self.line + held.count(b"\n", 0, stop)
                raise BrokenFile(line, f"`{held[stop : stop + 1].decode()}` closes nothing")
            closed = True
        is_end = (levels == 1) & ((kinds == _CLOSE) | (kinds == _CLOSE_LIST)) & (at < stop)
        cuts = at[is_end] + 1
        data = held
        if self.in_list:
            commas = at[(levels == 0) & (kinds == _COMMA) & (at < stop)]
            self._check_commas(held, cuts, commas, after_value=after_value, closed=closed)
            if len(commas):
                spaced = bytearray(held)
                for comma in commas.tolist():
                    spaced[comma] = ord(" ")
                data = bytes(spaced)
        last = int(cuts[-1]) if len(cuts) else 0
        if closed and data[last:stop].strip(_BLANKS):
            last = stop
            cuts = np.append(cuts, stop)
        taken = stop + 1 if closed else last
        block = JsonBlock(data[:last], self.line, lines=False, cuts=cuts) if len(cuts) else None
        return block, taken, closed

    def _check_commas(
        self, held: bytes, cuts: Places, commas: Places, *, after_value: bool, closed: bool
    ) -> None:
        """Check that there is one comma between each two elements."""
        if not closed:
            commas = commas[commas < (cuts[-1] if len(cuts) else 0)]
        signs = np.concatenate((cuts - 1, commas))
        is_comma = np.arange(len(signs)) >= len(cuts)
        order = np.argsort(signs, kind="stable")
        signs, is_comma = signs[order], is_comma[order]
        behind_value = np.concatenate(([after_value], ~is_comma))[: len(signs)]
        wrong = np.flatnonzero(is_comma != behind_value)
        if len(wrong):
            place = int(signs[wrong[0]])
            what = "two elements of the list have no comma between them"
            if is_comma[wrong[0]]:
                what = "an element of the list is not an object"
            raise BrokenFile(self.line + held.count(b"\n", 0, place), what)
        if closed and len(signs) and is_comma[-1]:
            line = self.line + held.count(b"\n", 0, int(signs[-1]))
            raise BrokenFile(line, "no object follows the last comma of the list")

    def _check_end(self, held: bytes) -> None:
        if self.in_list:
            raise BrokenFile(
                self.line + held.rstrip(_BLANKS).count(b"\n"), "the list in the file has no end"
            )
        if held.strip(_BLANKS):
            raise BrokenFile(self._line_of(held), problem_of(held) or "it has no end")

    def _finish(self, held: bytes, *, ended: bool) -> None:
        if self.is_part:
            self.rest = held
            return
        while True:
            if held.strip(_BLANKS):
                raise BrokenFile(self._line_of(held), "something follows the end of the list")
            if ended:
                return
            held, ended = self._filled(self._skipped(held, len(held)), self.size)


@dataclass
class WrappedBlocks:
    """The objects of a list that is within another object: the value of its first key of `keys`,
    of the second in that, and so on. What surrounds the list is one JSON value, which is checked.

    `stream` begins at byte `end` of the file.
    """

    stream: Bytes
    keys: tuple[str, ...]
    end: int = 0
    line: int = 1
    size: int = BLOCK
    least: int = 1 << 16

    def __iter__(self) -> Iterator[JsonBlock]:
        """Yield the blocks. Raises `RecordTooLong`, `BrokenFile`."""
        head, held = self._head()
        if not head:
            return
        line = self.line + head.count(b"\n")
        stream = _Joined(held, self.stream)
        inner = ValueBlocks(
            stream, self.end + len(head), line, self.size, self.least, in_list=True, is_part=True
        )
        yield from inner
        rest = [inner.rest]
        while (more := stream.read(self.size)) and sum(map(len, rest)) <= MAX_RECORD:
            rest.append(more)
        around = head + b"]" + b"".join(rest)
        if problem := problem_of(around):
            raise BrokenFile(
                inner.line, f"the text around the records is not valid JSON: {problem}"
            )
        self.end, self.line = inner.end + sum(map(len, rest)), inner.line

    def _head(self) -> tuple[bytes, bytes]:
        """Return what is before the first record, and what was read behind it."""
        held, wanted = b"", self.least
        while True:
            more = self.stream.read(wanted)
            held += more
            if not more and not held.strip(_BLANKS):
                return b"", b""
            try:
                at = _list_at(held, find_signs(held), self.keys, ended=not more)
            except NotJson as error:
                raise BrokenFile(self.line, str(error) or _NO_MATCH) from error
            if at is not None:
                return held[: at + 1], held[at + 1 :]
            if not more:
                raise BrokenFile(self.line, problem_of(held) or "the list of records is not there")
            if len(held) > MAX_RECORD:
                raise RecordTooLong(self.line)
            wanted = len(held)


def _list_at(data: bytes, signs: Signs, keys: Sequence[str], *, ended: bool) -> int | None:
    """Return where a list begins, None where it may be in data that is not read yet. Raises
    `BrokenFile`."""
    if data.strip(_BLANKS)[:1] not in (b"{", b""):
        raise BrokenFile(1, "the file is not an object with `records`")
    kinds, levels, at, ends = signs.kinds, signs.levels, signs.at, signs.ends
    begins, path = 0, "$"
    for level, key in enumerate(keys, start=1):
        path += f".{key}"
        own = np.flatnonzero(levels == level)
        own = own[own > begins]
        closing = own[kinds[own] == _CLOSE]
        stop = int(closing[0]) if len(closing) else len(kinds)
        colons = own[(kinds[own] == _COLON) & (own < stop)].tolist()
        found = [c for c in colons if _is_key(data[at[c - 1] : ends[c - 1]], key)]
        if not found:
            if len(closing) or ended:
                raise BrokenFile(1, f"`records`: the file has no `{path}`")
            return None
        value = found[0] + 1
        if value >= len(kinds):
            return None
        opens = _OPEN if level < len(keys) else _OPEN_LIST
        if kinds[value] != opens or data[ends[found[0]] : at[value]].strip(_BLANKS):
            line = 1 + data.count(b"\n", 0, int(at[found[0]]))
            what = "an object" if level < len(keys) else "a list"
            raise BrokenFile(line, f"`records`: `{path}` is not {what}")
        begins = value
    return int(at[begins])


def first_list(data: bytes) -> str | None:
    """Return the path of the first list of objects in JSON that is one object, or its beginning."""
    try:
        signs = find_signs(data)
    except NotJson:
        return None
    kinds, levels = signs.kinds.tolist(), signs.levels.tolist()
    path: list[str] = []
    inside = 0
    for number, (kind, level) in enumerate(zip(kinds[:-1], levels[:-1], strict=True)):
        if inside and level >= inside:
            continue
        inside = 0
        following = kinds[number + 1]
        if kind == _QUOTE and following == _COLON:
            try:
                key = json.loads(data[signs.at[number] : signs.ends[number]])
            except ValueError:
                return None
            path = [*path[: level - 1], key]
        elif kind == _OPEN_LIST and following == _OPEN:
            if len(path) != level - 1:
                return None
            return "$" + "".join(map(path_step, path)) + "[*]"
        elif kind == _OPEN_LIST:
            inside = level
    return None


def path_step(key: str) -> str:
    """Return the step of a path that leads to a key of an object."""
    return f".{key}" if re.fullmatch(r"[^.\[\]'\"*\s]+", key) else f"['{key}']"


def _is_key(raw: bytes, key: str) -> bool:
    try:
        return bool(json.loads(raw) == key)
    except ValueError:
        return False


@dataclass
class _Joined:
    """Bytes, and the stream that follows them."""

    held: bytes
    stream: Bytes

    def read(self, size: int, /) -> bytes:
        if self.held:
            taken, self.held = self.held[:size], self.held[size:]
            return taken
        return self.stream.read(size)
