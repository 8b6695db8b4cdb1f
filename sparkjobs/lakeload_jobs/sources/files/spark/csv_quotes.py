"""Lines of a CSV file that end inside quotes.

Without `multiLine` Spark takes each line for a row, so a line break inside quotes makes two rows
of one, and does so without a word where the number of values happens to fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from lakeload_jobs.rows.row_id import pc

_BREAK = re.compile(r"\r\n|\r|\n")
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f", "0": "\0"}
_ONE_FOR_DELIMITER = ("STOP_AT_DELIMITER", "BACK_TO_DELIMITER", "SKIP_VALUE")


@dataclass(frozen=True)
class Dialect:
    """The reader options that say what a quote means, as Spark reads them. `quote` '' is none."""

    sep: str = ","
    quote: str = '"'
    escape: str = '"'
    escape_of_escape: str = ""
    comment: str = ""
    line_sep: str = ""
    skip_space: bool = False
    until_delimiter: bool = True

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Dialect:
        """Read the options of a table."""
        lower = {name.lower(): value for name, value in options.items()}
        quote = lower.get("quote", '"')
        escape = lower.get("escape", '"')
        doubled = "" if escape == quote else escape
        handling = lower.get("unescapedquotehandling", "STOP_AT_DELIMITER").upper()
        return cls(
            sep=_unescaped(lower.get("sep", lower.get("delimiter", ","))),
            quote="" if quote == "\0" else quote,
            escape=escape,
            escape_of_escape=lower.get("chartoescapequoteescaping", doubled),
            comment=lower.get("comment", ""),
            line_sep=lower.get("linesep", ""),
            skip_space=lower.get("ignoreleadingwhitespace", "false").lower() == "true",
            until_delimiter=handling in _ONE_FOR_DELIMITER,
        )


@dataclass(frozen=True)
class Lines:
    """What a scan found: line breaks, and how many of them are before the first open line."""

    breaks: int
    before_open: int | None


class LineScan:
    """Looks for lines that end inside quotes. `charset` is one that writes ASCII in single bytes,
    as all do that Spark splits lines in."""

    def __init__(self, dialect: Dialect, charset: str = "utf-8") -> None:
        self._dialect = dialect
        self._charset = charset
        self._quote = dialect.quote.encode(charset, "replace")
        self._break = dialect.line_sep.encode(charset, "replace") or b"\n"
        self._plain = _plain_lines(dialect)
        special = {dialect.quote, dialect.escape, dialect.escape_of_escape} - {""}
        self._special = re.compile("|".join(map(re.escape, sorted(special))) or r"\Z.")

    def lines(self, chunks: Iterable[bytes]) -> Lines:
        """Scan a text, up to its first open line."""
        breaks = 0
        for block in self._blocks(chunks):
            if self._quote and self._quote in block and not self._is_plain(block):
                found = self._first_open(block)
                if found is not None:
                    return Lines(breaks + found, breaks + found)
            breaks += self._breaks(block)
        return Lines(breaks, None)

    def _blocks(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Cut a text after line breaks."""
        held: list[bytes] = []
        for chunk in chunks:
            cut = chunk.rfind(self._break) + len(self._break)
            if len(self._break) > 1 or cut < len(self._break):
                # A separator of several bytes may lie across chunks.
                whole = b"".join([*held, chunk])
                cut = whole.rfind(self._break) + len(self._break)
                if cut < len(self._break):
                    held = [whole] if len(self._break) > 1 else [*held, chunk]
                    continue
                held, chunk = [], whole
            yield b"".join([*held, chunk[:cut]])
            held = [chunk[cut:]]
        if any(held):
            yield b"".join(held)

    def _breaks(self, block: bytes) -> int:
        found = block.count(self._break)
        if self._dialect.line_sep or b"\r" not in block:
            return found
        return found + block.count(b"\r") - block.count(b"\r\n")

    def _is_plain(self, block: bytes) -> bool:
        """Whether each value of the block is a textbook's, quoted as a whole or without quotes."""
        if self._plain is None:
            return False
        whole = pa.array([block], pa.large_binary())
        return bool(pc.match_substring_regex(whole, self._plain)[0].as_py())

    def _first_open(self, block: bytes) -> int | None:
        text = block.decode(self._charset, "replace")
        separator = self._dialect.line_sep
        lines = text.split(separator) if separator else _BREAK.split(text)
        quote = self._dialect.quote
        for number, line in enumerate(lines):
            if quote in line and self.ends_open(line):
                return number
        return None

    def ends_open(self, line: str) -> bool:
        """Whether a line ends inside quotes, as Spark's parser (univocity) reads it."""
        dialect = self._dialect
        if dialect.comment and line.startswith(dialect.comment):
            return False
        at = 0
        while True:
            if dialect.skip_space:
                at = self._after_space(line, at)
            if line.startswith(dialect.quote, at):
                at = self._after_quotes(line, at + 1)
                if at < 0:
                    return True
            found = line.find(dialect.sep, at)
            if found < 0:
                return False
            at = found + len(dialect.sep)

    def _after_quotes(self, line: str, at: int) -> int:
        """Return where a quoted value has ended, -1 where it does not."""
        dialect = self._dialect
        # Of quotes in a row the last decides; one before the sign that escapes quotes does not.
        ends_nothing = (dialect.quote, dialect.escape)
        while found := self._special.search(line, at):
            at, here = found.end(), found[0]
            following = line[at : at + 1]
            if following and (
                (here == dialect.escape_of_escape and following == dialect.escape)
                or (here == dialect.escape and following == dialect.quote)
            ):
                at += 1
            elif here == dialect.quote and not (following and following in ends_nothing):
                after = self._after_space(line, at)
                ended = after == len(line) or line.startswith(dialect.sep, after)
                if ended or dialect.until_delimiter:
                    return after
        return -1

    def _after_space(self, line: str, at: int) -> int:
        while at < len(line) and line[at] <= " " and not line.startswith(self._dialect.sep, at):
            at += 1
        return at


def _plain_lines(dialect: Dialect) -> str | None:
    """Return a pattern (RE2) for whole lines that need no closer look, None where there is none."""
    if dialect.line_sep or not dialect.until_delimiter:
        return None
    signs = (dialect.sep, dialect.quote, dialect.escape)
    if any(len(sign) != 1 or not sign.isascii() for sign in signs):
        return None
    sep, quote, escape = (f"\\x{ord(sign):02x}" for sign in signs)
    if dialect.escape == dialect.quote:
        inside = f"[^{quote}\\r\\n]|{quote}{quote}"
    elif dialect.escape_of_escape == dialect.escape:
        inside = f"[^{quote}{escape}\\r\\n]|{escape}[^\\r\\n]"
    else:
        return None
    value = f"(?:{quote}(?:{inside})*{quote}|[^{sep}{quote}\\r\\n]*)"
    return f"\\A(?:{value}(?:{sep}{value})*(?:\\r\\n?|\\n|\\z))*\\z"


def _unescaped(sep: str) -> str:
    """Spark takes `\\t` and the like for one sign."""
    return re.sub(r"\\([tnrbf0\\\"'])", lambda m: _ESCAPES.get(m[1], m[1]), sep)
