"""Text files as far as an inspection reads them: the readers and the inference are a load's."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.types as pt

from lakeload.sources.files.formats.base import InspectedFile, OptionValue, Rows
from lakeload_jobs.sources.files.formats.registry import TEXT_FORMATS
from lakeload_jobs.sources.files.text.mostly_numbers import NumberCounts
from lakeload_jobs.sources.files.text.options import option_text
from lakeload_jobs.sources.files.text.reading import TextReading
from lakeload_jobs.sources.files.text.splits import EmptyRecords, TextPart
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState

pc: Any = pyarrow.compute

MAX_BYTES = 8 << 20
"""Decompressed bytes of a text file that are read."""
START_BYTES = 1 << 17
"""Decompressed bytes at the beginning by which formats and dialects are told apart."""
SAMPLE_ROWS = 3
NULL_TEXTS = frozenset(
    {
        *("NA", "N/A", "n/a", "#N/A", "NULL", "null", "None", "none", "\\N", "-", "--", ".", "?"),
        *("<NA>", "(null)", "missing", "nil", "NaT", "*", "..", "...", ":"),
    }
)
"""Texts that often stand for null."""
_TEXTS = 2000
_NULLS = pa.array(sorted(NULL_TEXTS))
_WIDE = 10_000
"""Columns, from which on no more than `_MOST_VALUES` are looked at."""
_MOST_VALUES = 300_000


def peek(stream: Any, size: int) -> bytes:
    """Return the next bytes of a stream, fewer at its end."""
    held = b""
    while len(held) < size and (more := stream.read(size - len(held))):
        held += more
    return held


def option_texts(options: Mapping[str, OptionValue]) -> dict[str, str]:
    """Return reader options as a configuration's are read."""
    return {
        name: option_text(list(value) if isinstance(value, tuple) else value)
        for name, value in options.items()
    }


def first_rows(file: FileState, how: TextReading, files: FileBytes) -> tuple[tuple[str, ...], Rows]:
    """Return the columns of a file's first rows, and these as text. Raises `LoadFailed`."""
    rows: list[dict[str, str | None]] = []
    with how.reader(files).open(TextPart(file)) as opened:
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
class TextRead:
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

    def into(self, found: InspectedFile, warnings: Iterable[str]) -> InspectedFile:
        """Return a file with what was read of it, and with what to say of that."""
        return replace(
            found,
            columns=inferred(self.evidence),
            evidence=self.evidence,
            numbers=self.numbers,
            rows=self.rows,
            rows_read=self.rows_read,
            complete=self.complete,
            warnings=(*found.warnings, *self.notes, *self.broken, *warnings),
        )


def inferred(evidence: Mapping[str, Any]) -> dict[str, str]:
    """Return the types that a load infers, with names of fields as people write them."""
    return {name: seen.infer("SAFE").replace("`", "") for name, seen in evidence.items()}


def read_text(found: InspectedFile, files: FileBytes, *, as_text: bool = False) -> TextRead:
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
    with how.reader(files).open(TextPart(found.file)) as opened:
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
    return TextRead(ordered, numbers, some, blank, rows, rows_read, complete, notes, tuple(broken))


def _most_rows(columns: int) -> int:
    """Return how many rows are read: few of very many columns, where each column takes time."""
    return max(SAMPLE_ROWS, _MOST_VALUES // columns) if columns > _WIDE else sys.maxsize
