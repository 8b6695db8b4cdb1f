"""Records of a CSV file, as RFC 4180 has them, line breaks in quotes included.

Most blocks are proven to be plain and are then parsed by Arrow. The proof: where each quote with an
even number (0, 2, …) follows the start, a separator, a line break or a quote, and each other one is
followed by one of these or the end, the parity of quotes is the state of a parser, by induction.
All other blocks are parsed record by record, with the extents of Python's `csv`: a quote within
an unquoted value is a character like others, and text after a closing quote belongs to the
value. A record with such text is bad, and so is one of another width.

With backslash escapes a block is first put into a form in which separators, quotes and line breaks
are nothing else (`backslashes`), and is then as any other.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pa_csv

from lakeload_jobs.sources.batch_sizes import MAX_VALUE_BYTES, is_too_large
from lakeload_jobs.sources.files.formats.csv.backslashes import (
    END_MARK,
    PlainBytes,
    ends_in_escape,
    has_end_mark,
    plain_bytes,
    unescaped,
)
from lakeload_jobs.sources.files.text.batches import (
    BadRecord,
    LineFinder,
    RecordFinder,
    RecordTooLong,
    TextBatch,
    count_lines,
)
from lakeload_jobs.sources.paths.source_bytes import Bytes, is_utf8, read_more

BLOCK = 2 << 20
_LEAST_READ = 1 << 16
_WINDOW = 1 << 16
_WIDEST_WINDOW = 4 << 20
_WIDE = 1000
_FEW_BYTES = 32
"""Bytes for each of many columns of a block from which on it is one for Arrow."""
_MOST_QUOTES = 4 << 20
"""Quotes of a block whose places, of 8 bytes each, are looked at: in a value of many megabytes."""
_CR, _LF = 13, 10
_BREAKS = (b"\r\n", b"\n", b"\r")
_NEVER_CLOSED = "a quote is opened that is never closed"

Fields = list["bytes | None"]
Quotes = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Dialect:
    """The signs of a CSV file in UTF-8; b'' is none. `escape` is another way to write a quote
    within quotes than to double it. With `backslashes`, escapes are those of `backslashes.py`,
    records end with `line_break`, and `nulls` are texts that mean null, as they are written."""

    separator: bytes = b","
    quote: bytes = b'"'
    escape: bytes = b""
    comment: bytes = b""
    trim_left: bool = False
    trim_right: bool = False
    quoted_empty_is_null: bool = True
    backslashes: bool = False
    line_break: bytes = b"\n"
    nulls: frozenset[bytes] = frozenset()

    @cached_property
    def plain(self) -> bool:
        """Whether Arrow knows the dialect."""
        signs = {*self.separator, *self.quote, _CR, _LF}
        if any(signs & {*text} for text in self.nulls):
            return False
        return len(self.separator) == 1 and len(self.quote) <= 1 and not self.odd

    def plain_bytes(self, data: bytes) -> PlainBytes | None:
        """Return bytes that begin with a record in a form that Arrow understands, if there is
        one."""
        if not self.backslashes:
            return PlainBytes(data)
        return plain_bytes(data, self.separator + self.quote, self.line_break)

    def without_break(self, record: bytes) -> bytes:
        """Return a record without the line break at its end."""
        if self.backslashes:
            return record.removesuffix(self.line_break)
        return record.removesuffix(b"\n").removesuffix(b"\r")

    @cached_property
    def odd(self) -> bool:
        """Whether it has what RFC 4180 does not."""
        return bool(self.escape or self.trim_left or self.trim_right)

    @cached_property
    def neighbours(self) -> npt.NDArray[np.bool_]:
        """The bytes that may stand before an opening and after a closing quote."""
        table = np.zeros(256, bool)
        table[[*self.separator, *self.quote, _CR, _LF]] = True
        return table

    @cached_property
    def value(self) -> re.Pattern[bytes]:
        """A value: its quoted part, the quote that closes it, and what is not in quotes."""
        if self.backslashes:
            return self._value_with_backslashes()
        separator = re.escape(self.separator)
        unquoted = (
            rb"[^" + separator + rb"\r\n]*"
            if len(self.separator) == 1
            else rb"(?:(?!" + separator + rb")[^\r\n])*"
        )
        if not self.quote:
            return re.compile(rb"()()(" + unquoted + rb")")
        quote, escape = re.escape(self.quote), re.escape(self.escape)
        pairs = quote + quote + (rb"|" + escape + rb"[\s\S]?" if self.escape else b"")
        if len(self.quote + self.escape) == 1 + bool(self.escape):
            inside = rb"[^" + quote + escape + rb"]*+"
        else:
            signs = quote + (rb"|" + escape if self.escape else b"")
            inside = _any_number_of(rb"(?!" + signs + rb")[\s\S]")
        blanks = rb"[ \t]*" if self.trim_left and self.separator != b"\t" else b""
        blanks = rb" *" if self.trim_left and self.separator == b"\t" else blanks
        more = _any_number_of(rb"(?:" + pairs + rb")" + inside)
        quoted = quote + rb"(" + inside + more + rb")"
        return re.compile(rb"(?:" + blanks + quoted + rb"(" + quote + rb")?)?(" + unquoted + rb")")

    def _value_with_backslashes(self) -> re.Pattern[bytes]:
        first = re.escape(self.separator[:1])
        ends = re.escape(self.separator) + rb"|" + re.escape(self.line_break)
        other = rb"[^\\\r\n" + first + rb"]*+"
        special = rb"\\[\s\S]?|(?!" + ends + rb")[\r\n" + first + rb"]"
        unquoted = other + _any_number_of(rb"(?:" + special + rb")" + other)
        if not self.quote:
            return re.compile(rb"()()(" + unquoted + rb")")
        quote = re.escape(self.quote)
        pairs = rb"\\[\s\S]?|" + quote + quote
        # A quote may have several bytes.
        inside = _any_number_of(rb"(?!" + quote + rb")[^\\]|" + pairs)
        if len(self.quote) == 1:
            plain = rb"[^\\" + quote + rb"]*+"
            inside = plain + _any_number_of(rb"(?:" + pairs + rb")" + plain)
        return re.compile(
            rb"(?:" + quote + rb"(" + inside + rb")(" + quote + rb")?)?(" + unquoted + rb")"
        )


def _any_number_of(pattern: bytes) -> bytes:
    """Return a pattern of any number of others, which are not tried again."""
    if sys.version_info < (3, 11, 5):
        # Possessive ones are wrong there for what has alternatives (gh-106052).
        return rb"(?>(?:" + pattern + rb")*)"
    # What could be tried again is kept otherwise for each quote or escape, 200 bytes.
    return rb"(?:" + pattern + rb")*+"


@dataclass(frozen=True)
class Record:
    """One record: where it and its end are among the bytes, its line, and its values.

    A value is None where nothing stands between separators; a blank line has no values. `problem`
    says why a record is bad, and `problem_line` is where that shows.
    """

    start: int
    end: int
    line: int
    values: Fields
    problem: str = ""
    problem_line: int = 0
    is_comment: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether it has values and all of them are null: it is separators alone."""
        return (
            bool(self.values) and not self.problem and self.values.count(None) == len(self.values)
        )


def records(data: bytes, dialect: Dialect) -> Iterator[Record]:
    """Yield the records of bytes that begin with one, blank lines and comments too. Lines count
    from 1."""
    if dialect.backslashes:
        yield from _with_backslashes(data, dialect)
        return
    at, line, size = 0, 1, len(data)
    next_break = re.compile(rb"\r\n|\n|\r|\Z").search
    while at < size:
        found = next_break(data, at)
        assert found is not None  # noqa: S101
        if dialect.comment and data.startswith(dialect.comment, at):
            yield Record(at, found.end(), line, [], is_comment=True)
            at, line = found.end(), line + 1
            continue
        text = data[at : found.start()]
        if not dialect.quote or dialect.quote not in text:
            yield Record(at, found.end(), line, _unquoted(text, dialect))
            at, line = found.end(), line + 1
            continue
        record = _with_quotes(data, at, line, dialect)
        yield record
        at, line = record.end, line + count_lines(data[at : record.end])


def _with_backslashes(data: bytes, dialect: Dialect) -> Iterator[Record]:
    at, line, size = 0, 1, len(data)
    while at < size:
        end = data.find(dialect.line_break, at)
        end = size if end < 0 else end
        text, after = data[at:end], min(end + len(dialect.line_break), size)
        if not text:
            record = Record(at, after, line, [])
        elif b"\\" not in text and (not dialect.quote or dialect.quote not in text):
            found = text.split(dialect.separator)
            values: Fields = [None if value in dialect.nulls else value for value in found]
            record = Record(at, after, line, values)
        elif text == END_MARK and dialect.separator != b".":
            record = Record(at, after, line, [], is_comment=True)
        else:
            record = _escaped_record(data, at, line, dialect)
        yield record
        at, line = record.end, line + count_lines(data[at : record.end])


def _escaped_record(data: bytes, start: int, line: int, dialect: Dialect) -> Record:
    values: Fields = []
    problem, problem_line = "", line
    at, match = start, dialect.value.match
    while True:
        found = match(data, at)
        assert found is not None  # noqa: S101
        quoted, closed, rest = found.groups()
        at = found.end()
        if found[0] in dialect.nulls:
            values.append(None)
        elif not dialect.quote or quoted is None:
            values.append(unescaped(rest))
        else:
            if not closed:
                problem_line = line + count_lines(data[start : found.start(1)])
                problem = _NEVER_CLOSED
            elif rest:
                problem = problem or "text follows a closing quote"
            values.append(unescaped(quoted, dialect.quote))
        if data.startswith(dialect.separator, at):
            at += len(dialect.separator)
            continue
        if at == len(data) and ends_in_escape(rest):
            problem = problem or "the file ends with a backslash that stands before nothing"
        end = min(at + len(dialect.line_break), len(data))
        return Record(start, end, line, values, problem, problem_line)


def _unquoted(text: bytes, dialect: Dialect) -> Fields:
    if not text:
        return []
    values: Fields = list(text.split(dialect.separator))
    if dialect.trim_left or dialect.trim_right:
        values = [_trimmed(value or b"", dialect) for value in values]
    return [value or None for value in values]


def _trimmed(value: bytes, dialect: Dialect) -> bytes:
    value = value.lstrip(b" \t") if dialect.trim_left else value
    return value.rstrip(b" \t") if dialect.trim_right else value


def _with_quotes(data: bytes, start: int, line: int, dialect: Dialect) -> Record:
    values: Fields = []
    problem, problem_line = "", line
    at, match = start, dialect.value.match
    while True:
        found = match(data, at)
        assert found is not None  # noqa: S101
        quoted, closed, rest = found.groups()
        if quoted is None:
            values.append(_trimmed(rest, dialect) or None)
        else:
            if not closed:
                problem_line = line + count_lines(data[start : found.start(1)])
                problem = _NEVER_CLOSED
            elif rest.strip(b" \t") if dialect.trim_right else rest:
                problem = problem or "text follows a closing quote"
            value = _without_escapes(quoted, dialect)
            values.append(value or (None if dialect.quoted_empty_is_null else b""))
        at = found.end()
        if data.startswith(dialect.separator, at):
            at += len(dialect.separator)
            continue
        for sign in _BREAKS:
            if data.startswith(sign, at):
                at += len(sign)
                break
        return Record(start, at, line, values, problem, problem_line)


def _without_escapes(quoted: bytes, dialect: Dialect) -> bytes:
    quote, escape = dialect.quote, dialect.escape
    if escape and escape in quoted:
        signs = rb"(" + re.escape(quote) + rb"|" + re.escape(escape) + rb")"
        return re.sub(
            rb"(?:" + re.escape(escape) + rb"|" + re.escape(quote) + rb")" + signs, rb"\1", quoted
        )
    return quoted.replace(quote + quote, quote) if quote in quoted else quoted


@dataclass(frozen=True)
class CsvBlock:
    """Whole records; `line` is the first one's. `proven` blocks are plain."""

    data: bytes
    line: int
    proven: bool


class BlockSize(NamedTuple):
    """A block's bytes and lines, and whether it is proven."""

    size: int
    lines: int
    proven: bool


@dataclass
class Blocks:
    """The records that begin in a part of a file, block by block.

    `stream` begins with a record, at byte `end` of the file. The last record is the one that ends
    with the first line feed at `stop` or after; without `stop` all are read. When the iterator has
    ended, `end` is where the next part begins, `line` the number of its first line, and `sizes` are
    those of the blocks. With `known` ones, those of a read before, nothing is searched again.
    """

    stream: Bytes
    dialect: Dialect
    end: int = 0
    stop: int | None = None
    line: int = 1
    size: int = BLOCK
    least: int = _LEAST_READ
    known: tuple[BlockSize, ...] = ()
    sizes: list[BlockSize] = field(default_factory=list)

    def __iter__(self) -> Iterator[CsvBlock]:
        """Yield the blocks. Raises `RecordTooLong`."""
        found = self._known() if self.known else self._searched()
        for data, lines, proven in found:
            yield CsvBlock(data, self.line, proven)
            self.sizes.append(BlockSize(len(data), lines, proven))
            self.line += lines
            self.end += len(data)

    def _known(self) -> Iterator[tuple[bytes, int, bool]]:
        for cut in self.known:
            data, ended = read_more(self.stream, b"", cut.size)
            if data:
                yield data, cut.lines, cut.proven
            if ended:
                return
        if self.stop is None:
            # The file may have grown: its rows are then too many.
            yield from self._searched()

    def _searched(self) -> Iterator[tuple[bytes, int, bool]]:
        if self.stop is not None and self.end >= self.stop:
            return
        held, wanted, ended = b"", self.size, False
        while True:
            if not ended:
                held, ended = self._filled(held, wanted)
            if not held:
                return
            cut, proven = self._cut(held, ended=ended)
            if cut <= 0:
                if is_too_large(len(held)):
                    raise RecordTooLong(self.line)
                wanted = min(2 * len(held), MAX_VALUE_BYTES + 1)
                continue
            data, held, wanted = held[:cut], held[cut:], self.size
            yield data, count_lines(data), proven
            done = self.stop is not None and self.end >= self.stop and data[-1] == _LF
            if done or (ended and not held):
                return

    def _filled(self, held: bytes, wanted: int) -> tuple[bytes, bool]:
        return read_more(self.stream, held, max(wanted - len(held), self.least))

    def _cut(self, held: bytes, *, ended: bool) -> tuple[int, bool]:
        """Return how many bytes are whole records, and whether these are proven."""
        dialect = self.dialect
        if dialect.plain and not _may_have_comments(held, dialect):
            plain = dialect.plain_bytes(held)
            codes = np.frombuffer(plain.data if plain else b"", np.uint8)
            dense = bool(dialect.quote) and held.count(dialect.quote) > _MOST_QUOTES
            quotes = _positions(codes, b"" if dense else dialect.quote)
            if plain and not dense and _is_strict(codes, quotes, dialect, ended=ended):
                return self._strict_cut(plain.data, codes, quotes, ended=ended)
        return self._slow_cut(held, ended=ended), False

    def _strict_cut(
        self, held: bytes, codes: npt.NDArray[np.uint8], quotes: Quotes, *, ended: bool
    ) -> tuple[int, bool]:
        if ended:
            cut, proven = len(held), len(quotes) % 2 == 0
        else:
            cut, proven = _last_break(held, quotes), True
        if self.stop is not None and self.end + cut > self.stop:
            breaks = np.flatnonzero(codes == _LF) + 1
            breaks = breaks[np.searchsorted(quotes, breaks - 1) % 2 == 0]
            breaks = breaks[breaks >= self.stop - self.end]
            if len(breaks):
                return int(breaks[0]), True
        return cut, proven

    def _slow_cut(self, held: bytes, *, ended: bool) -> int:
        last = 0
        stop = None if self.stop is None else self.stop - self.end
        for record in records(held, self.dialect):
            if record.end == len(held) and not ended:
                break  # it may go on
            last = record.end
            if stop is not None and last >= stop and held[last - 1] == _LF:
                return last
        return len(held) if ended else last


def _may_have_comments(data: bytes, dialect: Dialect) -> bool:
    if dialect.backslashes:
        return has_end_mark(data, dialect.line_break)
    sign = dialect.comment
    if not sign:
        return False
    return data.startswith(sign) or b"\n" + sign in data or b"\r" + sign in data


def _positions(codes: npt.NDArray[np.uint8], sign: bytes) -> Quotes:
    return np.flatnonzero(codes == sign[0]) if sign else np.empty(0, np.intp)


def _is_strict(
    codes: npt.NDArray[np.uint8], quotes: Quotes, dialect: Dialect, *, ended: bool
) -> bool:
    """Whether each quote stands where one may: what the lemma asks for."""
    if not len(quotes):
        return True
    opening, closing = quotes[0::2], quotes[1::2]
    if opening[0] == 0:
        opening = opening[1:]
    if len(closing) and closing[-1] == len(codes) - 1:
        # What follows is not known; the cut is before the value where there is more to come.
        closing = closing[:-1]
    allowed = dialect.neighbours
    # With bytes as positions `take` is faster than `allowed[…]`.
    return bool(allowed.take(codes[opening - 1]).all() and allowed.take(codes[closing + 1]).all())


def _last_break(data: bytes, quotes: Quotes) -> int:
    """Return where the last line feed outside quotes ends, else the last carriage return that
    surely is a break by itself, else 0."""
    for sign, end in ((b"\n", len(data)), (b"\r", len(data) - 1)):
        at = end
        while True:
            at = data.rfind(sign, 0, at)
            if at < 0:
                break
            before = int(np.searchsorted(quotes, at))
            if before % 2 == 0:
                return at + 1
            at = int(quotes[before - 1])
    return 0


def guess_start(window: bytes, dialect: Dialect) -> int | None:
    """Return where the first record begins after the first byte of `window`, None where there is
    no line feed. A guess: of the two states in which the window may begin, the likelier one."""
    plain = dialect.plain_bytes(window) or PlainBytes(window)
    codes = np.frombuffer(plain.data, np.uint8)
    quotes = _positions(codes, dialect.quote if len(dialect.quote) == 1 else b"")
    breaks = np.flatnonzero(codes == _LF) + 1
    wrong = [_violations(codes, quotes, dialect, inside) for inside in (0, 1)]
    inside = 0 if wrong[0] <= wrong[1] else 1
    outside = breaks[(np.searchsorted(quotes, breaks - 1) + inside) % 2 == 0]
    return int(outside[0]) if len(outside) else None


def _violations(codes: npt.NDArray[np.uint8], quotes: Quotes, dialect: Dialect, inside: int) -> int:
    opening, closing = quotes[inside::2], quotes[1 - inside :: 2]
    opening = opening[1:] if len(opening) and opening[0] == 0 else opening
    closing = closing[:-1] if len(closing) and closing[-1] == len(codes) - 1 else closing
    allowed = dialect.neighbours
    return int((~allowed[codes[opening - 1]]).sum() + (~allowed[codes[closing + 1]]).sum())


@dataclass(frozen=True)
class Layout:
    """The columns of a file: all that a record has, and those that are read, at least one."""

    names: tuple[str, ...]
    read: tuple[int, ...]
    trailing_separator: bool = False
    """Each record may end with a separator after its last value."""

    @property
    def read_names(self) -> list[str]:
        """The names of the columns that are read."""
        return [self.names[position] for position in self.read]


@dataclass
class BlockParser:
    """Blocks → rows as text, but for the columns of `kinds` in proven blocks, as long as Arrow
    takes all of their values."""

    dialect: Dialect
    layout: Layout
    kinds: Mapping[str, pa.DataType] = field(default_factory=dict)

    @property
    def blank_is_row(self) -> bool:
        """Whether a blank line is a null, the only way to write one in a file of one column."""
        return len(self.layout.names) == 1 and not self.layout.trailing_separator

    def parse(self, block: CsvBlock) -> TextBatch:
        """Return the rows of a block and its broken records."""
        width = len(self.layout.names)
        # For each column Arrow takes 4 kB, and as long as Python takes for a few values.
        is_short = width >= _WIDE and len(block.data) < _FEW_BYTES * width
        for_arrow = block.proven and not is_short
        rows = self._by_arrow(block) if for_arrow else None
        if rows is None and for_arrow and self.kinds:
            # Arrow does not take each text that is a value, as in +5.
            self.kinds = {}
            rows = self._by_arrow(block)
        if rows is None:
            return self._by_hand(block)
        return TextBatch(rows, (), self._lines(block, rows.num_rows), self._records(block))

    def _by_arrow(self, block: CsvBlock) -> pa.RecordBatch | None:
        """Return the rows, None where some record is broken."""
        layout = self.layout
        plain = self.dialect.plain_bytes(block.data)
        if plain is None or (self.dialect.backslashes and ends_in_escape(block.data)):
            return None
        width = len(layout.names)
        widths = (width + 1, width) if layout.trailing_separator else (width,)
        for tried in widths:
            rows = self._read(plain.data, tried)
            if rows is None:
                continue
            if tried > width:
                if rows.column(rows.num_columns - 1).null_count < rows.num_rows:
                    return None
                rows = rows.select(range(rows.num_columns - 1))
            columns = [plain.restored(column) for column in rows.columns]
            return pa.RecordBatch.from_arrays(columns, names=layout.read_names)
        return None

    def _read(self, data: bytes, width: int) -> pa.RecordBatch | None:
        names = [str(position) for position in range(width)]
        kinds = {
            names[position]: self.kinds.get(self.layout.names[position], pa.string())
            for position in self.layout.read
        }
        wanted = [names[position] for position in self.layout.read]
        if width > len(self.layout.names):
            wanted.append(names[-1])
        dialect = self.dialect
        try:
            table = pa_csv.read_csv(
                pa.py_buffer(data),  # type: ignore[arg-type]
                pa_csv.ReadOptions(
                    column_names=names, use_threads=False, block_size=max(len(data), 1) + 1
                ),
                pa_csv.ParseOptions(
                    delimiter=dialect.separator.decode(),
                    quote_char=dialect.quote.decode() or False,
                    newlines_in_values=True,
                    ignore_empty_lines=not self.blank_is_row,
                ),
                pa_csv.ConvertOptions(
                    column_types=dict.fromkeys(wanted, pa.string()) | kinds,
                    true_values=["true", "True", "TRUE"],
                    false_values=["false", "False", "FALSE"],
                    include_columns=wanted,
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=(
                        dialect.quoted_empty_is_null and not dialect.backslashes
                    ),
                    null_values=[text.decode() for text in dialect.nulls]
                    if dialect.backslashes
                    else [""],
                ),
            )
        except pa.ArrowInvalid:
            return None
        (batch,) = table.combine_chunks().to_batches() or [
            pa.RecordBatch.from_arrays([pa.nulls(0, pa.string()) for _ in wanted], wanted)
        ]
        return batch

    def _by_hand(self, block: CsvBlock) -> TextBatch:
        layout, dialect = self.layout, self.dialect
        width = len(layout.names)
        columns: list[Fields] = [[] for _ in layout.read]
        lines: list[int] = []
        spans: list[slice] = []
        bad: list[BadRecord] = []
        empty: list[int] = []
        valid = is_utf8(block.data)
        for record in records(block.data, dialect):
            line = block.line + record.line - 1
            values = record.values
            if not values:
                if record.is_comment or not self.blank_is_row:
                    continue
                values = [b"" if dialect.backslashes and b"" not in dialect.nulls else None]
            if layout.trailing_separator and len(values) == width + 1 and not values[-1]:
                values = values[:-1]
            if len(values) != width and record.is_empty:
                # As other readers have it: nothing that the record says can be lost.
                values = [None] * width
                empty.append(line)
            problem = record.problem or self._problem(values, valid=valid)
            if problem:
                raw = block.data[record.start : record.end]
                shows = block.line + (record.problem_line or record.line) - 1
                counts = max(1, count_lines(raw)) if problem == _NEVER_CLOSED else 1
                raw = dialect.without_break(raw)
                bad.append(BadRecord(shows, raw, problem, len(lines), counts))
                continue
            lines.append(line)
            spans.append(slice(record.start, record.end))
            for column, position in zip(columns, layout.read, strict=True):
                column.append(values[position])
        arrays = [pa.array(column, pa.binary()).cast(pa.string()) for column in columns]
        rows = pa.RecordBatch.from_arrays(arrays, names=layout.read_names)
        places = self._within(block.data, spans)
        return TextBatch(rows, tuple(bad), _at(lines), places, tuple(empty))

    def _problem(self, values: Fields, *, valid: bool) -> str:
        names = self.layout.names
        if len(values) != len(names):
            some = f"{len(values):,} value" + "s" * (len(values) != 1)
            return f"it has {some}, and {len(names):,} are expected"
        if valid:
            return ""
        for position in self.layout.read:
            value = values[position]
            if value is not None and not is_utf8(value):
                return (
                    f"the bytes of column `{names[position]}` are not text in the file's encoding"
                )
        return ""

    def _lines(self, block: CsvBlock, rows: int) -> LineFinder:
        """Parse again what is to be known by lines, unless each line is a row."""

        def lines(positions: Sequence[int]) -> list[int]:
            data = block.data
            if count_lines(data) + (not data.endswith((b"\n", b"\r"))) == rows:
                return [block.line + position for position in positions]
            exact = self._by_hand(block).lines
            return exact(positions)

        return lines

    def _records(self, block: CsvBlock) -> RecordFinder:
        return lambda positions: self._by_hand(block).records(positions)

    def _within(self, data: bytes, spans: list[slice]) -> RecordFinder:
        strip = self.dialect.without_break
        return lambda positions: [strip(data[spans[position]]) for position in positions]


def _at(lines: list[int]) -> LineFinder:
    return lambda positions: [lines[position] for position in positions]
