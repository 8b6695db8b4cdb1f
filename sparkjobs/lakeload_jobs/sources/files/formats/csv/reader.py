"""CSV files of a table: their headers, and the rows of any part of one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa

from lakeload_jobs.core.names import spelling
from lakeload_jobs.core.yaml_lines import yaml_mapping
from lakeload_jobs.rows.rejects import SET_ASIDE
from lakeload_jobs.sources.base import UnreadableFile
from lakeload_jobs.sources.batch_sizes import MAX_VALUE_BYTES, is_too_large, shown_size
from lakeload_jobs.sources.files.formats.csv.backslashes import NULL
from lakeload_jobs.sources.files.formats.csv.options import CsvOptions, read_csv_options
from lakeload_jobs.sources.files.formats.csv.records import (
    BlockParser,
    Blocks,
    BlockSize,
    Dialect,
    Layout,
    Record,
    guess_start,
    records,
)
from lakeload_jobs.sources.files.text.batches import (
    ALL_COLUMNS,
    Columns,
    RecordTooLong,
    TextBatch,
    count_lines,
)
from lakeload_jobs.sources.files.text.inference import ColumnValues
from lakeload_jobs.sources.files.text.opening import ENCODING_HINT, StartOfStream, open_text
from lakeload_jobs.sources.files.text.reading import TextReading
from lakeload_jobs.sources.files.text.splits import BlockPart, Declared, PartReader, TextPart
from lakeload_jobs.sources.files.text.values import reads_alike, shortened
from lakeload_jobs.sources.files.united_columns import OTHER_TABLE_HINT
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState
from lakeload_jobs.sources.paths.source_bytes import Bytes

_WINDOW = 1 << 16
_WIDEST_WINDOW = 4 << 20
_SEPARATORS = (";", "\t", "|", ",")
_SEPARATOR_LINE = re.compile(rb"sep=(.{1,4}?)[\r\n]*", re.IGNORECASE)
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r)")


def dialect_of(options: CsvOptions) -> Dialect:
    """Return the signs of a file as bytes."""
    return Dialect(
        separator=options.separator.encode(),
        quote=options.quote.encode(),
        escape=options.escape.encode(),
        comment=options.comment.encode(),
        trim_left=options.trim_left,
        trim_right=options.trim_right,
        quoted_empty_is_null=options.quoted_empty == "NULL",
        backslashes=options.backslash_escapes,
        line_break=options.line_break.encode() or b"\n",
        nulls=frozenset({NULL, *(text.encode() for text in options.null_values)})
        if options.backslash_escapes
        else frozenset(),
    )


def header_names(values: Sequence[str], known: Collection[str] = ()) -> tuple[str, ...]:
    """Return the names of columns: an empty one is `_`, and those that are there already are
    numbered `_1`, `_2`, … as targets are (docs/names.md).

    `known` are names that earlier loads have used. Those include Spark's for such columns, the
    position behind the name or `_c`, where a version of lakeload that read with Spark loaded them.
    """
    times = Counter(values)
    by_spark = [
        value if value and times[value] == 1 else f"{value or '_c'}{position}"
        for position, value in enumerate(values)
    ]
    odd = {new for value, new in zip(values, by_spark, strict=True) if value != new}
    if odd and odd <= set(known):
        return tuple(by_spark)
    natural = [value or "_" for value in values]
    used, numbers, names = set(natural), Counter[str](), []
    seen: set[str] = set()
    for name in natural:
        own = name
        while own in seen or (own != name and own in used):
            numbers[name] += 1
            own = f"{name.rstrip('_')}_{numbers[name]}"
        seen.add(own)
        names.append(own)
    return tuple(names)


@dataclass
class CsvPart(BlockPart):
    """An open part of a CSV file."""

    blocks: Blocks
    names: tuple[str, ...]
    notes: tuple[str, ...]
    parser: BlockParser

    @property
    def marks(self) -> tuple[BlockSize, ...]:
        """The blocks that were read."""
        return tuple(self.blocks.sizes)

    def batches(self) -> Iterator[TextBatch]:
        """Yield the rows. Raises `UnreadableFile` for a record that is too long."""
        if not self.names:
            return
        try:
            for block in self.blocks:
                yield self.parser.parse(block)
        except RecordTooLong as error:
            raise _too_long(self.file, error.line) from error


def _too_long(file: FileState, line: int) -> UnreadableFile:
    return UnreadableFile(
        file.path,
        f"the record that begins on line {line:,} is longer than {shown_size(MAX_VALUE_BYTES)}",
        hint="if a quote in it is never closed, close it, or set the reader option `quote: ''` "
        "where quotes have no meaning; if a value is so large, store it as an object of its own",
    )


def _twins(file: FileState, texts: Sequence[str], names: Sequence[str]) -> Iterator[str]:
    times = Counter(texts)
    pairs = zip(texts, names, strict=True)
    twins = [(text, name) for text, name in pairs if text and times[text] > 1 and text != name]
    if len(twins) > _TWINS_NAMED:
        some = ", ".join(f"`{name}`" for _, name in twins[:_TWINS_NAMED])
        yield (
            f"`{file.path}` has several columns of one name: {len(twins):,} of them have a number, "
            f"the first ones are {some}"
        )
        return
    for text, name in twins:
        yield f"`{file.path}` has several columns named `{text}`: one of them is `{name}`"


_TWINS_NAMED = 3


def other_table_hint(
    names: Sequence[str], wanted: Sequence[str], separator: str, *, has_header: bool
) -> str:
    """Return what to do about a file that has none of the columns that are `wanted`."""
    known = {spelling(name) for name in wanted}
    for mark in _SEPARATORS:
        if known & {spelling(name) for name in separator.join(names).split(mark)}:
            shown = mark.replace("\t", "\\t")
            return (
                f"`{shown}` separates its fields: set the reader option `separator: '{shown}'` "
                "where all files have it, or load such files in a pipeline of their own"
            )
    if has_header and all(re.fullmatch(r"_c\d+", name) for name in wanted):
        return "set the reader option `header: false`, as for the rows that are there"
    if has_header and len(names) == len(wanted):
        rename = yaml_mapping({f"_c{place}": name for place, name in enumerate(wanted)})
        return (
            f"if it has no header, write the line `{separator.join(wanted)}` before its rows, or "
            f"load such files with `header: false` and `columns: {{rename: {rename}}}`"
        )
    return OTHER_TABLE_HINT


def _other_separator(file: FileState, texts: Sequence[str]) -> Iterator[str]:
    if len(texts) > 1:
        return
    for mark in _SEPARATORS:
        if mark in texts[0]:
            shown = mark.replace("\t", "\\t")
            yield (
                f"`{file.path}` has one column, `{shortened(texts[0])}`: if `{shown}` separates "
                f"its fields, set the reader option `separator: '{shown}'`"
            )


def _check_line_break(file: FileState, record: bytes) -> None:
    """Raise `UnreadableFile` where the first record may end with a carriage return or with both."""
    if record.endswith(b"\r\n"):
        raise UnreadableFile(
            file.path,
            "its first record ends with a carriage return and a line feed",
            hint="set the reader option `line_break: '\\r\\n'` if each record ends so, or "
            "`line_break: '\\n'` if the carriage return belongs to the last value",
        )


@dataclass(frozen=True)
class Header:
    """The names of a file's columns, the bytes and lines before its first row, and what is odd."""

    names: tuple[str, ...]
    size: int
    lines: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class CsvReader:
    """Reads parts of CSV files; it travels to the tasks. `known` are names of earlier loads,
    `loaded` the columns that are read. `headers` are the columns of files that begin with their
    first row, whatever the options say. `kinds` are types of columns whose texts are known to be
    values: they may be read as such."""

    files: FileBytes
    options: CsvOptions
    known: frozenset[str] = frozenset()
    loaded: Columns = ALL_COLUMNS
    headers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kinds: Mapping[str, pa.DataType] = field(default_factory=dict)
    _dialect: Dialect = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_dialect", dialect_of(self.options))

    @contextmanager
    def open(self, part: TextPart) -> Iterator[CsvPart]:
        """Open a part. Raises `LoadFailed` for a header that is not one, and what opening
        raises."""
        with ExitStack() as stack:
            text = stack.enter_context(open_text(self.files, part.file, self.options.encoding))
            ahead = StartOfStream(text.stream)
            header = self._header(part.file, ahead)
            start, line = text.start + header.size, 1 + header.lines
            stream: Bytes = ahead
            if part.start > 0:
                start, line = part.start, part.line
                if part.guess:
                    start = self._guess(part)
                stack.pop_all().close()
                stream = stack.enter_context(self.files.stream(part.file, start))
            else:
                ahead.skip(header.size)
            blocks = Blocks(stream, self._dialect, start, part.stop, line, known=part.marks)
            parser = BlockParser(self._dialect, self._layout(header.names), self.kinds)
            yield CsvPart(part.file, start, line, blocks, header.names, header.notes, parser)

    def _layout(self, names: tuple[str, ...]) -> Layout:
        read = [at for at, name in enumerate(names) if name in self.loaded]
        return Layout(names, tuple(read or [0]), self.options.trailing_separator)

    def _guess(self, part: TextPart) -> int:
        window = _WINDOW
        while True:
            with self.files.stream(part.file, part.start - 1) as stream:
                data = StartOfStream(stream).peek(window)
            found = guess_start(data, self._dialect)
            if found is not None:
                return part.start - 1 + found
            if len(data) < window or window >= _WIDEST_WINDOW:
                return part.file.size
            window *= 8

    def _header(self, file: FileState, ahead: StartOfStream) -> Header:
        if file.path in self.headers:
            return Header(self.headers[file.path], 0, 0)
        skipped, lines = self._skipped(ahead)
        found = self._first_record(file, ahead, skipped)
        if found is None:
            return Header((), skipped, lines)
        record, data = found
        raw = data[record.start : record.end]
        if sign := _SEPARATOR_LINE.fullmatch(raw):
            shown = sign[1].decode(errors="replace").replace("\t", "\\t")
            raise UnreadableFile(
                file.path,
                f"its first line `sep={shown}` is a separator line of Excel",
                hint=f'set the reader options `separator: "{shown}"` and '
                f"`skip_rows: {self.options.skip_rows + 1}`",
            )
        if self.options.backslash_escapes and not self.options.line_break:
            _check_line_break(file, raw)
        values = list(record.values)
        if self.options.trailing_separator and not values[-1]:
            values.pop()
        if not self.options.header:
            names = tuple(f"_c{position}" for position in range(len(values)))
            return Header(names, skipped, lines)
        line = lines + record.line
        if record.problem:
            raise UnreadableFile(
                file.path,
                f"the header, line {line:,}, cannot be read: {record.problem}",
                hint="set the reader options `quote` and `separator`, or `header: false`",
            )
        try:
            texts = [(value or b"").decode() for value in values]
        except UnicodeDecodeError as error:
            raise UnreadableFile(
                file.path,
                f"the header, line {line:,}, is not text in this encoding",
                hint=ENCODING_HINT,
            ) from error
        names = header_names(texts, self.known)
        notes = (
            *_other_separator(file, texts),
            *self._nameless(file, texts, data, lines),
            *_twins(file, texts, names),
        )
        size, lines = skipped + record.end, lines + count_lines(data[: record.end])
        return Header(names, size, lines, notes)

    def _nameless(
        self, file: FileState, texts: Sequence[str], data: bytes, lines: int
    ) -> Iterator[str]:
        if len(texts) < 2 or any(texts):
            return
        below = next((one for one in records(data, self._dialect) if any(one.values)), None)
        if below is not None:
            yield (
                f"`{file.path}` has a header of separators alone: if line {lines + below.line:,} "
                f"has the names, set the reader option `skip_rows: {lines + below.line - 1}`"
            )

    def _skipped(self, ahead: StartOfStream) -> tuple[int, int]:
        """Return the bytes of the lines before the header, and how many these are."""
        at, size = 0, _WINDOW
        for number in range(self.options.skip_rows):
            while (found := _LINE.match(data := ahead.peek(size), at)) is None or (
                found.end() == len(data) and data.endswith(b"\r")
            ):
                if len(data) < size:
                    return (at if found is None else found.end()), number
                size *= 2
            at = found.end()
        return at, self.options.skip_rows

    def _first_record(
        self, file: FileState, ahead: StartOfStream, at: int
    ) -> tuple[Record, bytes] | None:
        """Return the first record behind `at`, and the bytes from there on."""
        size = at + _WINDOW
        while True:
            held = ahead.peek(size)
            ended = len(held) < size
            data = held[at:]
            for record in records(data, self._dialect):
                if record.end == len(data) and not ended:
                    break
                if record.values:
                    return record, data
            if ended:
                options = self.options
                if options.backslash_escapes and not options.header and data.isspace():
                    # Each line is an empty text of the one column.
                    return Record(0, 0, 1, [b""]), data
                return None
            if is_too_large(size):
                raise _too_long(file, 1)
            size *= 4


@dataclass(frozen=True)
class CsvValues(ColumnValues):
    """Values of CSV."""

    def record_hint(self, reason: str) -> str:
        """Return what to do about a broken record."""
        if "quote" in reason:
            return (
                f"fix the file, or {SET_ASIDE}; if quotes have no meaning in these files, set the "
                "reader option `quote: ''`"
            )
        return (
            f"fix the file, or {SET_ASIDE}, or set the reader options `separator` and `quote`; "
            "`lakeload inspect` with the file detects them"
        )


@dataclass(frozen=True)
class CsvReading(TextReading):
    """How CSV files with some options are read."""

    @cached_property
    def options(self) -> CsvOptions:
        """The options."""
        return read_csv_options(self.written)[0]

    @property
    def infers(self) -> bool:
        """Whether values say a type: with STRINGS all are text."""
        return self.options.infer != "STRINGS"

    @property
    def line_break(self) -> bytes:
        """What ends a record."""
        return self.options.line_break.encode() or b"\n"

    @cached_property
    def values(self) -> CsvValues:
        """How values are read."""
        options = self.options
        return CsvValues(
            self.text_formats(
                # With backslash escapes null is known by how it is written.
                null_texts=() if options.backslash_escapes else options.null_values,
                empty_is_text=options.backslash_escapes,
                nan_words=(options.nan_value,),
                infinity_words=(options.positive_infinity,),
                minus_infinity_words=(options.negative_infinity,),
                decimal_mark=options.decimal_mark,
                thousands_mark=options.thousands_mark,
            )
        )

    def reader(
        self,
        files: FileBytes,
        loaded: Columns = ALL_COLUMNS,
        *,
        known: Collection[str] = (),
        sets_aside: bool = False,
        stored: Mapping[str, tuple[str, ...]] | None = None,
    ) -> CsvReader:
        """Return what reads files, or rejected records, of which the first is no header."""
        options = self.options if stored is None else replace(self.options, encoding=None)
        return CsvReader(files, options, frozenset(known), loaded, stored or {})

    def second_reader(
        self, reader: PartReader, schema: pa.Schema, declared: Declared
    ) -> PartReader:
        """Return what lets Arrow read columns whose values it reads alike."""
        if not isinstance(reader, CsvReader):
            return reader
        kinds = {
            column.name: column.type
            for column in schema
            if reads_alike(column.type, declared.formats.get(column.name, self.values.formats))
        }
        return replace(reader, kinds=kinds)

    def other_table_hint(self, names: Sequence[str], wanted: Sequence[str]) -> str:
        """Return what to do about a file of another table: its separator may be another."""
        options = self.options
        return other_table_hint(names, wanted, options.separator, has_header=options.header)
