"""Where the first JSON value of a file ends, and whether something follows. Pure: bytes in.

Spark reads the first value of a file and nothing after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_SPACE = b" \t\n\r"
_BEGINS_SCALAR = b"-+.0123456789tfnNI"
_SCALAR_ENDS = re.compile(rb'[\s,:"\[\]{}]')
_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_BACKSLASHES = re.compile(rb"\\+\Z")
_ONE_BRACKET = bytes.maketrans(b"[]", b"{}")
_STRING = {
    b'"': re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL),
    b"'": re.compile(rb"'[^'\\]*(?:\\.[^'\\]*)*'", re.DOTALL),
}
_COMMENT_OR_STRING = re.compile(rb"""["']|//|/\*""")
_ENOUGH_PASSES = 32


def line_of_second_value(
    chunks: Iterable[bytes], *, single_quotes: bool = True, comments: bool = False
) -> int | None:
    """Return the line, counted from 1, on which something follows the first value of a UTF-8 text;
    None where nothing but white space does.

    What is no JSON from its beginning on, and a value without an end, is left to whoever parses
    it. `single_quotes` and `comments` are the reader options `allowSingleQuotes`, `allowComments`.
    """
    if comments:
        chunks = _without_comments(chunks)
    scan = _Scan(b"\"'" if single_quotes else b'"')
    return next((line for chunk in _whole_escapes(chunks) if (line := scan.feed(chunk))), None)


class _Scan:
    """One pass over the chunks of a text, none of which ends between a backslash and its letter."""

    def __init__(self, quotes: bytes) -> None:
        self._quotes = [bytes([quote]) for quote in quotes]
        self._ignored = bytes(sorted(set(range(256)) - set(b"{}[]" + quotes)))
        strings = b"|".join(_STRING[quote].pattern for quote in self._quotes)
        self._token = re.compile(strings + rb"|[{}\[\]]", re.DOTALL)
        self._strings = re.compile(b"|".join(q + b"[^" + q + b"]*" + q for q in self._quotes))
        self._state = "before"
        self._depth = 0
        self._quote = b""
        self._line = 1

    def feed(self, chunk: bytes) -> int | None:
        """Return the line of what follows the value, when that is in this chunk."""
        at = 0
        if self._state == "before":
            at = len(chunk) - len(chunk.lstrip(_SPACE))
            at += self._begin(chunk[at : at + 1])
        if self._state == "scalar":
            found = _SCALAR_ENDS.search(chunk, at)
            at = found.start() if found else len(chunk)
            self._state = "after" if found else "scalar"
        if self._state == "string":
            found = _STRING[self._quote].match(self._quote + chunk[at:])
            at = at + found.end() - 1 if found else len(chunk)
            self._state = "after" if found else "string"
        if self._state == "inside":
            at = self._end(chunk, at)
        if self._state == "after":
            rest = chunk[at:].lstrip(_SPACE)
            if rest:
                return self._line + chunk.count(b"\n", 0, len(chunk) - len(rest))
        self._line += chunk.count(b"\n")
        return None

    def _begin(self, first: bytes) -> int:
        """Enter the value, and return how many bytes that took."""
        if not first:
            return 0
        if first in b"{[":
            self._state, self._depth = "inside", 1
        elif first in self._quotes:
            self._state, self._quote = "string", first
        else:
            self._state = "scalar" if first in _BEGINS_SCALAR else "hopeless"
            return 0
        return 1

    def _end(self, chunk: bytes, at: int) -> int:
        """Return where in the chunk the value ends, and where it goes on the chunk's length."""
        quote, depth = self._quote, self._depth
        lowest, depth_after, quote_after = self._brackets(chunk[at:])
        if lowest > 0:
            self._depth, self._quote = depth_after, quote_after
            return len(chunk)
        self._state = "after"
        if quote:
            found = _STRING[quote].match(quote + chunk[at:])
            assert found is not None  # noqa: S101
            at += found.end() - 1
        while depth:
            found = self._token.search(chunk, at)
            assert found is not None, "the value ends in this chunk"  # noqa: S101
            at = found.end()
            depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(found[0], 0)
        return at

    def _brackets(self, text: bytes) -> tuple[int, int, bytes]:
        """Return the lowest depth that is reached, and depth and open quote at the end.

        Everything else is taken out first, by functions that cost little a byte.
        """
        if b"\\" in text:
            text = _ESCAPED.sub(b"", text)
        text = text.translate(_ONE_BRACKET, self._ignored)
        for quote in self._quotes:
            # One string closes and another opens with nothing between them, or one is empty:
            # without these two quotes each bracket is where it was, inside or outside.
            text = text.replace(quote * 2, b"")
        quote = self._quote
        if quote:
            _, closed, text = text.partition(quote)
            if not closed:
                return self._depth, self._depth, quote
        text = self._strings.sub(b"", text)
        opened = min((at for q in self._quotes if (at := text.find(q)) >= 0), default=-1)
        if opened >= 0:
            quote, text = text[opened : opened + 1], text[:opened]
        else:
            quote = b""
        for _ in range(_ENOUGH_PASSES):
            if b"{}" not in text:
                break
            text = text.replace(b"{}", b"")
        depth = lowest = self._depth
        for bracket in text:
            depth += 1 if bracket == 0x7B else -1
            lowest = min(lowest, depth)
        return lowest, depth, quote


def _whole_escapes(chunks: Iterable[bytes]) -> Iterator[bytes]:
    held = b""
    for chunk in chunks:
        whole = held + chunk
        found = _BACKSLASHES.search(whole)
        held = b"\\" if found and len(found[0]) % 2 else b""
        yield whole[: len(whole) - len(held)]
    if held:
        yield held


def _without_comments(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Replace comments by the line breaks in them, and a blank."""
    held = b""
    for chunk in chunks:
        text, held = held + chunk, b""
        kept, at = [], 0
        while found := _COMMENT_OR_STRING.search(text, at):
            begin, what = found.start(), found[0]
            end = _end_of(text, begin, what)
            if end < 0:
                break
            kept.append(text[at:begin])
            is_string = what in _STRING
            kept.append(text[begin:end] if is_string else b" " + _breaks(text[begin:end]))
            at = end
        begin = found.start() if found else len(text) - text.endswith(b"/", at)
        held = text[begin:]
        yield b"".join(kept) + text[at:begin]
    yield b"" if held.startswith(b"//") else held


def _end_of(text: bytes, begin: int, what: bytes) -> int:
    """Return the end of the string or comment that begins there, -1 where it is not in sight."""
    if what in _STRING:
        found = _STRING[what].match(text, begin)
        return found.end() if found else -1
    if what == b"//":
        return text.find(b"\n", begin)
    end = text.find(b"*/", begin + 2)
    return end + 2 if end >= 0 else -1


def _breaks(comment: bytes) -> bytes:
    return b"\n" * comment.count(b"\n")
