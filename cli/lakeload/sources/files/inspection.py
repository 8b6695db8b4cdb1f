"""Inspection of files: format, dialect, columns and types, from their content and without Spark.

A bounded part of large files is read. The readers and the inference are those of a load.
"""

from __future__ import annotations

import json
import re
import sys
import traceback
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias, cast

import pyarrow as pa
import pyarrow.compute
import pyarrow.types as pt

from lakeload.sources.files.dialect import (
    NULL_TEXTS,
    Confidence,
    Guess,
    OptionValue,
    detect_dialect,
    null_texts,
)
from lakeload.sources.files.encoding import suggest_encoding
from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import LakeloadError, LoadFailed
from lakeload_jobs.contract.spec import FileFormatName
from lakeload_jobs.sources.files.formats.base import TypedFormat
from lakeload_jobs.sources.files.formats.json.records import first_list, path_step
from lakeload_jobs.sources.files.formats.registry import TEXT_FORMATS, TYPED_FORMATS, named_format
from lakeload_jobs.sources.files.text.inference import ColumnEvidence
from lakeload_jobs.sources.files.text.mostly_numbers import NumberCounts
from lakeload_jobs.sources.files.text.opening import NOT_A_ZIP_FILE, open_text, open_unpacked
from lakeload_jobs.sources.files.text.opening import compression as packing
from lakeload_jobs.sources.files.text.options import (
    option_text,
)
from lakeload_jobs.sources.files.text.reading import TextReading
from lakeload_jobs.sources.files.text.splits import (
    EmptyRecords,
    Piece,
)
from lakeload_jobs.sources.files.typed.columns import (
    FileSchema,
    settled,
    type_name,
    unite,
    unreadable,
)
from lakeload_jobs.sources.files.typed.rows import ReadTyped, TypedPiece, json_value
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState
from lakeload_jobs.sources.paths.source_bytes import byte_order_mark

pc: Any = pyarrow.compute

MAX_BYTES = 8 << 20
"""Decompressed bytes of a text file that are read."""
SAMPLE_ROWS = 3
_DIALECT_BYTES = 1 << 17
_ENCODING_BYTES = 4 << 20
_TEXTS = 2000
_LINES = 500
"""Lines of the beginning, and later ones with null texts, that the dialect comes from."""
_NULLS = pa.array(sorted(NULL_TEXTS))
_WIDE = 10_000
"""Columns, from which on no more than `_MOST_VALUES` are looked at."""
_MOST_VALUES = 300_000


Rows: TypeAlias = tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True)
class InspectedFile:
    """One file. Where it cannot be loaded, `error` says why, and the rest is what is known."""

    file: FileState
    format: FileFormatName | None = None
    compression: str = ""
    encoding: str = ""
    """Of a text file, as it is read with `guesses`."""
    layout: str = ""
    """How the values of a JSON file follow each other, as a clause."""
    guesses: tuple[Guess, ...] = ()
    """The reader options that were detected, defaults too."""
    options: dict[str, OptionValue] = field(default_factory=dict)
    """Those that a configuration needs."""
    rename: dict[str, str] = field(default_factory=dict)
    """What a configuration has to call columns that the file does not name as it should."""
    columns: dict[str, str] = field(default_factory=dict)
    """Source columns and the types that a load infers."""
    rows: Rows = ()
    """The first rows, as text."""
    footer: FileSchema | None = field(default=None, compare=False, repr=False)
    """Of a Parquet, ORC or Avro file."""
    evidence: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What the types of text files come from: `inference.Evidence` of each column."""
    numbers: NumberCounts | None = field(default=None, compare=False, repr=False)
    """The numbers of each column of a text file."""
    dates: dict[str, str] = field(default_factory=dict)
    """The types of the strings of JSON that are dates, as all values that were looked at; '' for
    other columns with values."""
    rows_read: int = 0
    """Rows that the types come from; for formats with a footer the rows of the file."""
    complete: bool = True
    """Whether all rows were read; a file with types of its own needs no more than its footer."""
    warnings: tuple[str, ...] = ()
    error: LakeloadError | None = None


def inspect_file(file: FileState, files: FileBytes) -> InspectedFile:
    """Return what a file holds. What is wrong with the file is its `error`, and so is that this
    one object may not be read. Raises `AwsError` for what would be the same with other files."""
    try:
        return _inspect(file, files)
    except AwsError as error:
        if not error.denied:
            raise
        return InspectedFile(file, error=error)
    except LakeloadError as error:
        return InspectedFile(file, error=error)
    except MemoryError:  # Arrow's is one of its own exceptions, too
        return not_inspected(file, "its inspection needs more memory than it may have")
    except (OSError, pa.ArrowException) as error:
        return InspectedFile(file, error=unreadable(file.path, error, hint=_DAMAGED_HINT))
    except Exception as error:  # noqa: BLE001 - the other files are inspected
        return InspectedFile(file, error=_bug(file.path, error))


def not_inspected(file: FileState, why: str) -> InspectedFile:
    """Return what stands for a file whose inspection was given up."""
    error = LoadFailed(
        f"reading `{file.path}`: {why}",
        hint="leave the file out, or write the settings of its table by hand",
    )
    return InspectedFile(file, error=error)


_DAMAGED_HINT = "copy the file from its source again, or leave it out"


def _bug(path: str, error: Exception) -> LoadFailed:
    place = traceback.extract_tb(error.__traceback__)[-1]
    said = " ".join(str(error).split())[:200]
    where = f"{Path(place.filename).name}, line {place.lineno}"
    return LoadFailed(
        f"reading `{path}`: a bug in lakeload: {type(error).__name__} in {where}: {said}",
        hint="report it with the file, and leave the file out",
    )


def _inspect(file: FileState, files: FileBytes) -> InspectedFile:
    with files.stream(file) as raw:
        head = _peek(raw, _HEAD)
    for file_format in TYPED_FORMATS.values():
        if _begins(head, file_format.magic):
            return _inspect_typed(file, file_format, files)
        if head.startswith(file_format.magic) and file.size > len(head):
            # Its data may begin with text, and its end does not.
            with files.stream(file, file.size - 4) as raw:
                if _peek(raw, 4).startswith(file_format.magic):
                    return _inspect_typed(file, file_format, files)
    if packing(file.path, head) == "zip":
        _check_archive(file, files)
    return _inspect_text(file, files)


def _peek(stream: Any, size: int) -> bytes:
    held = b""
    while len(held) < size and (more := stream.read(size - len(held))):
        held += more
    return held


_HEAD = 64
"""Bytes that say whether a file whose first ones are those of a format is text all the same."""
_UNSUPPORTED = (
    (b"PARE", "an encrypted Parquet file", "decrypt it"),
    (b"ARROW1", "an Arrow file (Feather)", "write it as Parquet"),
    (b"FEA1", "a Feather file", "write it as Parquet"),
    (b"SQLite format 3\0", "an SQLite database", "export its tables as CSV"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook", "save it as CSV"),
    (b"%PDF", "a PDF", None),
    (b"\x89HDF", "an HDF5 file", "write it as Parquet"),
    (b"\x93NUMPY", "an array of NumPy", "write it as Parquet"),
    (b"\x89PNG", "a picture", None),
    (b"\xff\xd8\xff", "a picture", None),
    (b"GIF8", "a picture", None),
    (b"\x7fELF", "a program", None),
    (b"$FL2", "a file of SPSS", "write it as Parquet or CSV"),
    (b"<?xml", "XML", "convert it to CSV or JSON"),
    (b"<!DOCTYPE", "HTML", "convert it to CSV or JSON"),
    (b"<html", "HTML", "convert it to CSV or JSON"),
    (b"<stata_dta>", "a file of Stata", "write it as Parquet or CSV"),
    (b"7z\xbc\xaf", "a 7-Zip archive", "unpack it"),
    (b"Rar!\x1a", "a RAR archive", "unpack it"),
)
_CONTROLS = bytes({*range(32)} - {*b"\t\n\r"})


def _begins(content: bytes, magic: bytes) -> bool:
    """Whether content begins with the mark of a format, and is no table with a column `ORC_ID`."""
    if magic.startswith(b"<"):
        return content.lstrip()[:16].lower().startswith(magic.lower())
    head = content[:_HEAD]
    is_text = magic.isalnum() and head == head.translate(None, _CONTROLS)
    return head.startswith(magic) and not is_text


def _not_supported(path: str, what: str, hint: str | None) -> LoadFailed:
    formats = "CSV, JSON, NDJSON, Parquet, ORC and Avro"
    return LoadFailed(
        f"reading `{path}`: it is {what}, and lakeload reads {formats}",
        hint=hint or "list only the files with data",
    )


_DOCUMENTS = (
    ("xl/workbook.xml", "an Excel workbook", "save its sheets as CSV"),
    ("xl/workbook.bin", "an Excel workbook", "save its sheets as CSV"),
    ("content.xml", "a document of LibreOffice", "save its sheets as CSV"),
    ("word/document.xml", "a Word document", None),
)


def _check_archive(file: FileState, files: FileBytes) -> None:
    """Raise `LoadFailed` for a document that is a zip file inside."""
    with files.seekable(file) as stream:
        try:
            names = set(zipfile.ZipFile(stream).namelist())
        except NOT_A_ZIP_FILE:
            return  # whoever unpacks it says what is wrong
    for name, what, hint in _DOCUMENTS:
        if name in names:
            raise _not_supported(file.path, what, hint)


def _check_supported(path: str, start: bytes) -> None:
    """Raise `LoadFailed` for content that is known not to be data that is read."""
    names = [one.name for one in TYPED_FORMATS.values() if _begins(start, one.magic)]
    for kind in names:
        raise LoadFailed(
            f"reading `{path}`: it is an archive, and {kind} files inside another file are "
            "not read",
            hint="unpack it",
        )
    for magic, what, hint in _UNSUPPORTED:
        if _begins(start, magic):
            raise _not_supported(path, what, hint)
    if start[257:262] == b"ustar":
        raise _not_supported(path, "a tar archive", "unpack it")
    wide = byte_order_mark(start)[1] or suggest_encoding(start[:4])
    if not wide and _is_binary(start[: 1 << 12]):
        raise _not_supported(path, "binary data of no known format", None)


def _is_binary(start: bytes) -> bool:
    """Whether bytes of zero are no slip within the values of text."""
    count = start.count(0)
    rest = start.translate(None, _CONTROLS)
    return count * _MOST_ZERO > len(start) or (count > 0 and len(rest) + count < len(start))


_MOST_ZERO = 4
"""Of so many bytes of text one may be zero."""
_PROSE = re.compile(
    r"(readme|licen[cs]e|notice|authors|changelog|copying|makefile)(\.\w+)?"
    r"|.*\.(md|rst|adoc|py|sh|sql|r|yml|yaml|toml|ini|cfg|conf|ipynb|js|css)",
    re.IGNORECASE,
)
"""Names of what lies beside data: its content may look like a table or like JSON."""


def is_prose(path: str) -> bool:
    """Whether a file is text or code by its name, and lies beside data."""
    return _PROSE.fullmatch(Path(path).name) is not None


def _inspect_text(file: FileState, files: FileBytes) -> InspectedFile:
    if is_prose(file.path):
        raise _not_supported(file.path, "text or code, by its name", None)
    with open_unpacked(files, file) as (unpacked, compression):
        raw = unpacked.peek(_ENCODING_BYTES)
    found = InspectedFile(file, compression=compression)
    _check_supported(file.path, raw)
    encoding = suggest_encoding(raw)
    codec = str(encoding.value) if encoding else None
    named = codec or (byte_order_mark(raw)[1] or "utf-8").upper()
    found = replace(found, encoding=named, guesses=(encoding,) if encoding else ())
    with open_text(files, file, codec) as text:
        start = _peek(text.stream, _DIALECT_BYTES + 1)
    whole = len(start) <= _DIALECT_BYTES
    if layout := json_layout(start, whole=whole) or _named_json(file.path, start):
        if layout.is_large and layout.records:
            layout = _read_further(layout, file, files, codec)
        return _inspect_json(found, layout, files)
    return _inspect_csv(found, files, start[:_DIALECT_BYTES], whole=whole)


def _inspect_csv(
    found: InspectedFile, files: FileBytes, start: bytes, *, whole: bool
) -> InspectedFile:
    before = found
    dialect = detect_dialect(start, whole=whole)
    guesses = (*dialect.guesses, *found.guesses)
    options = dialect.options | {guess.option: guess.value for guess in found.guesses}
    found = replace(
        found,
        format="CSV",
        guesses=guesses,
        options=options,
        warnings=dialect.warnings,
        rename={f"_c{place}": name for place, name in enumerate(dialect.names)},
    )
    read = _read_text(found, files)
    if not whole and (nulls := _later_nulls(found, read)):
        lines = start.splitlines(keepends=True)[:_LINES] + _lines_with(nulls, found, files)
        again = _inspect_csv(before, files, b"".join(lines), whole=True)
        if again.columns.keys() == read.evidence.keys() and _reads_more(again, read, nulls):
            return again
    if dates := _date_format(read.texts):
        options = {**found.options, dates.option: dates.value}
        found = replace(found, guesses=(*found.guesses, dates), options=options)
        read = _read_text(found, files)
    return _with_read(found, read, _without_century(read.texts))


def _later_nulls(found: InspectedFile, read: _ReadText) -> tuple[str, ...]:
    """Return texts that stand for null, and were not among the first records."""
    known = found.options.get("null_values", ())
    known = (*cast("tuple[str, ...]", known), *("\\N",) * ("backslash_escapes" in found.options))
    return tuple(text for text in null_texts(list(read.texts.values())) if text not in known)


def _lines_with(texts: Sequence[str], found: InspectedFile, files: FileBytes) -> list[bytes]:
    """Return the lines of a file that have one of the texts as a value; of `\\N`, which dumps have,
    those with any backslash."""
    separator = re.escape(str(found.options.get("separator", ",")).replace("\\t", "\t").encode())
    listed = b"|".join(re.escape(text.encode()) for text in texts)
    edge = separator + rb"|[\r\n\"]"
    value = re.compile(rb"(?:^|" + edge + rb")(?:" + listed + rb")(?:$|" + edge + rb")")
    codec = found.options.get("encoding")
    with open_text(files, found.file, str(codec) if codec else None) as text:
        lines = _peek(text.stream, MAX_BYTES).splitlines(keepends=True)
    is_dump = "\\N" in texts
    return [line for line in lines if (is_dump and b"\\" in line) or value.search(line)][:_LINES]


def _reads_more(again: InspectedFile, read: _ReadText, nulls: Sequence[str]) -> bool:
    """Whether other null texts make types of columns of text, or are those of databases."""
    columns = inferred(read.evidence)
    typed = [name for name, kind in columns.items() if kind == "string" != again.columns[name]]
    return bool(typed) or "\\N" in nulls


def option_texts(options: Mapping[str, OptionValue]) -> dict[str, str]:
    """Return reader options as a configuration's are read."""
    return {
        name: option_text(list(value) if isinstance(value, tuple) else value)
        for name, value in options.items()
    }


def first_rows(file: FileState, how: TextReading, files: FileBytes) -> tuple[tuple[str, ...], Rows]:
    """Return the columns of a file's first rows, and these as text. Raises `LoadFailed`."""
    rows: list[dict[str, str | None]] = []
    with how.reader(files).open(Piece(file)) as opened:
        for batch in opened.batches():
            rows += _shown(batch.rows, how, SAMPLE_ROWS - len(rows))
            if len(rows) >= SAMPLE_ROWS:
                break
        names = opened.names
    return names, tuple(tuple(row.get(name) for name in names) for row in rows)


def _shown(rows: pa.RecordBatch, how: TextReading, most: int) -> list[dict[str, str | None]]:
    some = rows.slice(0, max(most, 0))
    columns = {
        name: how.values.as_text(some.column(name)).to_pylist() for name in some.schema.names
    }
    return [{name: values[row] for name, values in columns.items()} for row in range(some.num_rows)]


@dataclass
class _ReadText:
    """What was read of a text file. `texts` are some values of each column."""

    evidence: dict[str, Any]
    numbers: NumberCounts
    texts: dict[str, list[str]]
    blank: set[str]
    """Columns with an empty text."""
    rows: Rows
    rows_read: int
    complete: bool
    notes: tuple[str, ...]
    broken: tuple[str, ...]


def _read_text(found: InspectedFile, files: FileBytes, *, as_text: bool = False) -> _ReadText:
    assert found.format is not None  # noqa: S101
    options = option_texts(found.options)
    how = TEXT_FORMATS[found.format].reading(options, nested_as_text=as_text)
    evidence: dict[str, Any] = {}
    numbers = NumberCounts(found.file.path, how.values)
    some: dict[str, list[str]] = {}
    sample: list[dict[str, str | None]] = []
    broken: list[str] = []
    blank: set[str] = set()
    rows_read, complete, bad = 0, True, 0
    empty = EmptyRecords()
    with how.reader(files).open(Piece(found.file)) as opened:
        begin = opened.end
        for batch in opened.batches():
            most = _most_rows(batch.rows.num_columns)
            batch = replace(batch, rows=batch.rows.slice(0, most - rows_read))
            rows_read += batch.rows.num_rows
            for name in batch.rows.schema.names:
                column = batch.rows.column(name)
                seen = evidence.setdefault(name, how.values.evidence(None))
                seen.add(column)
                if batch.rows.num_columns <= _WIDE:
                    numbers.add(batch, name, seen)
                held = some.setdefault(name, [])
                if len(held) < _TEXTS:
                    shown = how.values.as_text(column[:_TEXTS]).to_pylist()
                    held += [text for text in shown if text]
                    blank |= {name} if "" in shown else set()
                if pt.is_string(column.type) and batch.rows.num_columns <= _WIDE:
                    nulls = column.filter(pc.is_in(column, value_set=_NULLS)).unique().to_pylist()
                    held += [text for text in nulls if text and text not in held]
            sample += _shown(batch.rows, how, SAMPLE_ROWS - len(sample))
            bad += len(batch.bad)
            empty = empty.with_lines(batch.empty_lines)
            broken += [f"line {record.line:,}: {record.reason}" for record in batch.bad[:3]]
            if opened.end - begin >= MAX_BYTES or rows_read == most:
                complete = False
                break
        names, notes = opened.names, opened.notes
    for name in names:
        evidence.setdefault(name, how.values.evidence(None))
        some.setdefault(name, [])
    if bad:
        more = f" (and {bad - 1:,} more)" if bad > 1 else ""
        broken = [f"{broken[0]}{more}: a load fails until it is fixed"]
    broken += [empty.warning] if empty.count else []
    rows = tuple(tuple(row.get(name) for name in names) for row in sample)
    ordered = {name: evidence[name] for name in names}
    return _ReadText(ordered, numbers, some, blank, rows, rows_read, complete, notes, tuple(broken))


def _with_read(found: InspectedFile, read: _ReadText, warnings: Iterable[str]) -> InspectedFile:
    """Return a file with what was read of it, and with what to say of that."""
    return replace(
        found,
        columns=inferred(read.evidence),
        evidence=read.evidence,
        numbers=read.numbers,
        rows=read.rows,
        rows_read=read.rows_read,
        complete=read.complete,
        warnings=(*found.warnings, *read.notes, *read.broken, *warnings),
    )


def _most_rows(columns: int) -> int:
    """Return how many rows are read: few of very many columns, where each column takes time."""
    return max(SAMPLE_ROWS, _MOST_VALUES // columns) if columns > _WIDE else sys.maxsize


_SLASHED = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2\d{4}")
_WITHOUT_CENTURY = re.compile(r"\d{1,2}([./-])\d{1,2}\1\d{2}")


def _without_century(texts: dict[str, list[str]]) -> Iterator[str]:
    """Yield columns of dates that do not say which year they mean."""
    for name, values in texts.items():
        if values and all(map(_WITHOUT_CENTURY.fullmatch, values)):
            yield (
                f"column `{name}` is text: its dates, such as `{values[0]}`, have years of two "
                "digits, which `date_format` with `yy` would read as 2000 to 2099"
            )


def _date_format(texts: dict[str, list[str]]) -> Guess | None:
    """Return the pattern of dates that are not written as ISO 8601 has them, where it is clear."""
    patterns: set[str] = set()
    example = ""
    for values in texts.values():
        parts = [_SLASHED.fullmatch(text) for text in values]
        if not values or None in parts:
            if any(re.match(r"\d{4}-\d{2}-\d{2}$", text) for text in values[:100]):
                return None
            continue
        found = [part for part in parts if part is not None]
        first, second = (max(int(part[place]) for part in found) for place in (1, 3))
        signs = {part[2] for part in found}
        if len(signs) > 1 or (first > 12) == (second > 12):
            return None  # day and month may be either
        long = all(len(part[place]) == 2 for part in found for place in (1, 3))
        day, month = ("dd", "MM") if long else ("d", "M")
        order = (day, month) if first > 12 else (month, day)
        patterns.add(signs.pop().join((*order, "yyyy")))
        example = example or values[0]
    if len(patterns) != 1:
        return None
    return Guess("date_format", patterns.pop(), "HIGH", f"dates are written like `{example}`")


_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)
"""Numbers may have more digits than Python converts."""


@dataclass(frozen=True)
class JsonLayout:
    """How JSON values follow each other: LINES, ARRAY, VALUE or STREAM, in words."""

    format: FileFormatName
    reason: str
    records: str = ""
    """The path of the records in an object."""
    is_large: bool = False
    """It is one object of more than the bytes that were looked at."""
    is_cut: bool = False
    """More follows behind what was read of the records."""
    nested: str = ""
    """The path of a list of objects that may be the records."""


def json_layout(start: bytes, *, whole: bool) -> JsonLayout | None:
    """Return how the values of a JSON file are laid out, None for what is not JSON. `start` is
    its beginning, or with `whole` all of it."""
    text = start.decode(errors="replace").lstrip()
    if not text or text[0] not in "{[":
        return None
    try:
        _, end = _DECODER.raw_decode(text)
    except RecursionError:
        # Whoever reads the records says that they are nested too deep.
        return JsonLayout("JSON", "it is nested deep")
    except ValueError as error:
        # The value goes on behind what was read: what is there must be good as far as it goes.
        cut = isinstance(error, json.JSONDecodeError) and (
            error.msg.startswith("Unterminated") or error.pos >= len(text) - 16
        )
        if whole or not cut:
            return None
        found = _one_value(text)
        return replace(found, is_large=text[0] == "{")
    rest = text[end:]
    if not rest.strip():
        return _one_value(text)
    if "\n" not in text[:end] and rest.lstrip(" \t\r")[:1] == "\n":
        return JsonLayout("NDJSON", "each line is a value")
    return JsonLayout("JSON", "several values follow each other")


def _named_json(path: str, start: bytes) -> JsonLayout | None:
    """Return the layout of what is JSON by its name and first character, and cannot be read."""
    named = named_format(path)
    if named not in ("JSON", "NDJSON") or start.lstrip()[:1] not in (b"{", b"["):
        return None
    return JsonLayout(named, "its name says so")


def _read_further(
    layout: JsonLayout, file: FileState, files: FileBytes, encoding: str | None
) -> JsonLayout:
    """Return the layout with records that are the one list of objects in more of the file too."""
    with open_text(files, file, encoding) as text:
        start = _peek(text.stream, MAX_BYTES + 1)
    if _wrapped(start.decode(errors="replace").lstrip()) == layout.records:
        return replace(layout, is_cut=len(start) > MAX_BYTES)
    return replace(layout, records="", nested=layout.records)


def _one_value(text: str) -> JsonLayout:
    if text[0] == "[":
        return JsonLayout("JSON", "it is one list")
    records = _wrapped(text)
    nested = None if records else first_list(text.encode())
    return JsonLayout("JSON", "it is one object", records, nested=nested or "")


def _wrapped(text: str) -> str:
    """Return the path of the one list of records in an object, beside values that are none; ''
    where there is no such list. The text may be cut."""
    blanks = re.compile(r"[\s,]*")
    lists: list[str] = []
    at = 1
    while True:
        at = cast("re.Match[str]", blanks.match(text, at)).end()
        try:
            key, at = _DECODER.raw_decode(text, at)
            at = text.index(":", at) + 1
            at = cast("re.Match[str]", blanks.match(text, at)).end()
            value, end = _DECODER.raw_decode(text, at)
        except RecursionError:
            return ""
        except ValueError:
            if re.match(r"\[\s*\{", text[at:]):
                lists.append(key)
            break
        at = end
        if isinstance(value, list) and any(isinstance(one, dict) for one in value):
            if len(value) < _RECORDS or not all(isinstance(one, dict) for one in value):
                return ""
            lists.append(key)
    return f"${path_step(lists[0])}[*]" if len(lists) == 1 and "'" not in lists[0] else ""


_RECORDS = 2
"""So many objects in a list may be the records of a wrapped export."""


def _inspect_json(found: InspectedFile, layout: JsonLayout, files: FileBytes) -> InspectedFile:
    guesses = list(found.guesses)
    if layout.records:
        reason = "it is the one list of objects in the object"
        reason += ", as far as the file was read" if layout.is_cut else ""
        confidence: Confidence = "LOW" if layout.is_cut else "MEDIUM"
        guesses.append(Guess("records", layout.records, confidence, reason))
    options = {guess.option: guess.value for guess in guesses}
    if layout.nested:
        reason = f"the object is one row; the list in it is `{layout.nested}`"
        instead = f"records: {json.dumps(layout.nested, ensure_ascii=False)}"
        guesses.append(Guess("records", "$[*]", "LOW", reason, instead))
    found = replace(
        found,
        format=layout.format,
        layout=layout.reason,
        guesses=tuple(guesses),
        options=options,
    )
    # Types of all that is nested in a large object take minutes where its keys are values.
    as_text = layout.is_large and not layout.records
    read = _read_text(found, files, as_text=as_text)
    if as_text and not layout.nested:
        warning = "a large object: what is nested in it is shown as text"
        found = replace(found, warnings=(*found.warnings, warning))
    dates = {name: _date_type(read, name) for name in read.texts if read.texts[name]}
    return replace(_with_read(found, read, _one_object(read)), dates=dates)


_DATES = ("date", "timestamp", "timestamp_ntz")


def _date_type(read: _ReadText, name: str) -> str:
    """Return the type of a column whose texts are dates of ISO 8601, '' for any other."""
    texts = read.texts[name]
    if name in read.blank or not _ISO.match(texts[0]):
        return ""
    seen = ColumnEvidence()
    seen.add(pa.array(texts, pa.string()))
    kind = seen.infer("SAFE")
    return kind if kind in _DATES else ""


_ISO = re.compile(r"\d{4}-\d{2}-\d{2}")


def inferred(evidence: Mapping[str, Any]) -> dict[str, str]:
    """Return the types that a load infers, with names of fields as people write them."""
    return {name: seen.infer("SAFE").replace("`", "") for name, seen in evidence.items()}


_MANY_KEYS = 100


def is_large_object(file: FileState, files: FileBytes, encoding: str | None) -> bool:
    """Whether a JSON file is one object whose types take long to find out."""
    with open_text(files, file, encoding) as text:
        start = _peek(text.stream, _DIALECT_BYTES + 1)
    layout = json_layout(start, whole=len(start) <= _DIALECT_BYTES)
    return layout is not None and layout.is_large


def _one_object(read: _ReadText) -> Iterator[str]:
    """Yield a warning of an object whose keys are likely to be values."""
    if read.rows_read == 1 and len(read.evidence) > _MANY_KEYS:
        yield f"it is one object, and its {len(read.evidence):,} keys are columns of one row"


def typed_columns(footers: Sequence[FileSchema]) -> dict[str, str]:
    """Return the columns of files and their types. Raises `LoadFailed` where they do not unite."""
    names = [column.name for footer in footers for column in footer.columns if not column.refused]
    return {
        column.name: type_name(settled(column.kind), text="string")
        for column in unite(footers, names)
    }


def arrow_text(value: Any) -> str | None:
    """Return a value of Arrow as it is shown."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return f"0x{value[:16].hex()}" + "…" * (len(value) > 16)
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, default=str, ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _arrow_texts(column: Any) -> list[str | None]:
    try:
        values = column.to_pylist()
    except (OverflowError, ValueError):  # years that Python does not have
        values = [json_value(value) for value in column]
    return [arrow_text(value) for value in values]


def _inspect_typed(file: FileState, file_format: TypedFormat, files: FileBytes) -> InspectedFile:
    (schema,) = file_format.schemas([file], files)
    columns = [column for column in schema.columns if not column.refused]
    kinds = {column.name: settled(column.kind) for column in columns if not column.only_spark}
    units = tuple(unit for unit in schema.units if unit.rows)
    rows: tuple[tuple[str | None, ...], ...] = ()
    if units and kinds:
        reader = file_format.reader(files, exact=False, whole=False)
        read = ReadTyped(pa.schema(list(kinds.items())), reader, "TRUNCATE", "NULL")
        first: list[pa.RecordBatch] = []
        with closing(read([TypedPiece(file, units)])) as batches:
            while sum(batch.num_rows for batch in first) < SAMPLE_ROWS and (
                batch := next(batches, None)
            ):
                first.append(batch)
        table = pa.Table.from_batches(first).slice(0, SAMPLE_ROWS)
        texts = [
            _arrow_texts(table[column.name]) if column.name in kinds else ["…"] * table.num_rows
            for column in columns
        ]
        rows = tuple(zip(*texts, strict=True))
    return InspectedFile(
        file,
        file_format.name,
        schema.codec,
        columns=typed_columns([schema]),
        footer=schema,
        rows=rows,
        rows_read=sum(unit.rows for unit in schema.units),
        warnings=tuple(column.refused for column in schema.columns if column.refused),
    )
