"""Backslash escapes of the files that databases write.

No database writes a letter that another one reads as something else, so one set of letters reads
the dumps of all of them. PostgreSQL (COPY, text format) writes `\\b \\f \\n \\r \\t \\v`, and reads
octal and hexadecimal digits that it never writes. MySQL and MariaDB (SELECT … INTO OUTFILE) write
`\\0` for a zero byte, and `\\Z` is the one other letter that they read. Hive (ESCAPED BY) writes
`\\n` and `\\r` with serialization.escape.crlf. Everything else is a backslash before a character
that stands for itself: all that Redshift's UNLOAD … ESCAPE writes. A null is `\\N`, of Redshift and
Hive the text that their NULL AS names. PostgreSQL may end a file with the line `\\.`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakeload_jobs.rows.arrow import Column

Codes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

BACKSLASH = b"\\"
NULL = b"\\N"
LETTERS = {
    b"0": b"\0",
    b"Z": b"\x1a",
    b"b": b"\b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"v": b"\v",
}
END_MARK = b"\\."
_CODE, _CR, _LF = BACKSLASH[0], 13, 10
_ASCII = 128
_CHUNK = 1 << 20
"""Characters of which the places are known at once."""


def has_end_mark(data: bytes, line_break: bytes) -> bool:
    """Whether a line is `\\.`, which is no record."""
    line = line_break + END_MARK + line_break
    return END_MARK in data and line in line_break + data + line_break


def unescaped(text: bytes, quote: bytes = b"") -> bytes:
    """Return a value as it was before it was written. `quote` is the one that it stands in."""
    if BACKSLASH not in text and (not quote or quote not in text):
        return text
    doubled = re.escape(quote * 2) or rb"(?!)"
    escape = re.compile(rb"\\([\s\S])|" + doubled)
    value, at = bytearray(), 0
    for found in escape.finditer(text):  # `sub` keeps each piece until the end.
        value += text[at : found.start()]
        value += LETTERS.get(found[1], found[1]) if found[1] else quote
        at = found.end()
    return bytes(value + text[at:])


def ends_in_escape(data: bytes) -> bool:
    """Whether the last backslash stands before nothing."""
    return (len(data) - len(data.rstrip(BACKSLASH))) % 2 == 1


def _identity() -> Codes:
    return np.arange(256, dtype=np.uint8)


def _letters() -> Codes:
    table = _identity()
    for letter, sign in LETTERS.items():
        table[letter[0]] = sign[0]
    return table


def _escaping(codes: Codes) -> Mask:
    """Return which characters are backslashes that stand before another one."""
    mask = np.zeros(len(codes), bool)
    odd = 0
    for at in range(0, len(codes), _CHUNK):
        places = np.flatnonzero(codes[at : at + _CHUNK] == _CODE)
        if not len(places):
            odd = 0
            continue
        count = np.arange(len(places))
        # A run of backslashes may go on from one chunk to the next.
        begins = np.where(np.diff(places, prepend=-2) > 1, count, -odd)
        if places[0] == 0:
            begins[0] = -odd
        nth = count - np.maximum.accumulate(begins)
        mask[at + places[nth % 2 == 0]] = True
        odd = (int(nth[-1]) + 1) % 2 if places[-1] == _CHUNK - 1 else 0
    return mask


@dataclass(frozen=True)
class PlainBytes:
    """Bytes of the same length in which separators, quotes and line breaks are nothing else.

    `escaped` says what each character behind a backslash stands for, and `alone` each other one.
    """

    data: bytes
    escaped: Codes | None = None
    alone: Codes | None = None

    def restored(self, column: Column) -> Column:
        """Return the values that a column of the bytes stands for."""
        if self.escaped is None or self.alone is None or not len(column):
            return column
        _, offsets, data = column.buffers()
        if data is None:
            return column
        ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
        codes = self.alone[np.frombuffer(data, np.uint8)[: ends[-1]]]
        escaping = _escaping(codes)
        places = np.flatnonzero(escaping)
        codes[1:][escaping[:-1]] = self.escaped[codes[1:][escaping[:-1]]]
        ends = (ends - np.searchsorted(places, ends)).astype(np.int32)
        valid = column.is_valid().buffers()[1] if column.null_count else None
        arrays: Any = (ends, codes[~escaping])
        texts: Column = pa.Array.from_buffers(
            pa.string(), len(column), [valid, *map(pa.py_buffer, arrays)]
        )
        return texts


def plain_bytes(data: bytes, signs: bytes, line_break: bytes) -> PlainBytes | None:
    """Return bytes that begin with a record, in a form that a reader without escapes understands.
    `signs` are separator and quote. None: there is no character to stand for another."""
    if line_break == b"\n" and BACKSLASH not in data and b"\r" not in data:
        return PlainBytes(data)
    codes = np.frombuffer(data, np.uint8)
    new, escaped, alone = codes.copy(), _letters(), _identity()
    behind = np.r_[False, _escaping(codes)[:-1]]
    meant = {*signs, *BACKSLASH, _CR, _LF, *b"".join(LETTERS)}
    free = (code for code in range(1, _ASCII) if bytes((_CODE, code)) not in data)
    for sign in {*signs, _CR, _LF}:
        hidden = behind & (codes == sign)
        if hidden.any():
            if (other := next((code for code in free if code not in meant), None)) is None:
                return None
            new[hidden], escaped[other] = other, sign
            meant.add(other)
    free = (code for code in range(1, _ASCII) if bytes((code,)) not in data)
    for sign, lone in _breaks_in_values(new, line_break):
        if lone.any():
            if (other := next((code for code in free if code not in meant), None)) is None:
                return None
            new[lone], alone[other] = other, sign
    return PlainBytes(new.tobytes(), escaped, alone)


def _breaks_in_values(codes: Codes, line_break: bytes) -> Iterable[tuple[int, Mask]]:
    """Return which carriage returns and line feeds end no record."""
    returns, feeds = codes == _CR, codes == _LF
    if line_break == b"\n":
        return [(_CR, returns)]
    pairs = returns[:-1] & feeds[1:]
    return [(_CR, returns & ~np.r_[pairs, False]), (_LF, feeds & ~np.r_[False, pairs])]
