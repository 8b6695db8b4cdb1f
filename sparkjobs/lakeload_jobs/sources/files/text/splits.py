"""The rows of text files in parts: one pass finds columns, types and what is bad, another reads.

The first pass reads every value, so no type is a guess from a sample and nothing bad is found after
a row was written. Files are cut where a record seems to begin. Whether it does is known when the
part before has been read: it ends where the next must begin, else that one is read again.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import REJECT_LIMIT, OnBadValue, RejectLimit
from lakeload_jobs.core.names import spelling
from lakeload_jobs.rows.arrow import Column
from lakeload_jobs.rows.rejects import (
    REJECT,
    REJECTED_HELPER,
    Reject,
    Rejected,
    check_rejected,
    reject_column,
    with_records,
)
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER
from lakeload_jobs.sources.base import BadValue, BadValuesFound, Splits, UnreadableFile
from lakeload_jobs.sources.files.text.batches import TextBatch
from lakeload_jobs.sources.files.text.inference import Values
from lakeload_jobs.sources.files.text.mostly_numbers import MostlyNumbers, NumberCounts
from lakeload_jobs.sources.files.text.opening import ENCODING_HINT
from lakeload_jobs.sources.files.text.values import (
    TextFormats,
    parse_text,
    shortened,
)
from lakeload_jobs.sources.files.united_columns import SharedNames
from lakeload_jobs.sources.part_sizes import Parallelism
from lakeload_jobs.sources.paths.file_state import FileState
from lakeload_jobs.sources.paths.objects import changed
from lakeload_jobs.sources.paths.source_bytes import PACKED_SUFFIXES

_SHOWN = 10

_EXPANDS = 8
"""How many times its size a packed file is taken for."""
_MOST_WRONG_GUESSES = 3
_MAX_RAW = 80


@dataclass(frozen=True)
class TextPart:
    """A part of a file: the records that begin at byte `start` and after, up to the first line feed
    at `stop` or after. A part at 0 begins with the file's header.

    `guess`: a record begins near `start`. The others are known when the part has been read once:
    its first `line`, its `rows`, the `names` of the file's columns, and `marks`, which spare the
    reader of the format a search when it reads again. `folders` are values that the file's folders
    name. `fault` is why the whole file is set aside: one record then stands for it.
    """

    file: FileState
    start: int = 0
    stop: int | None = None
    guess: bool = False
    line: int = 1
    rows: int = 0
    names: tuple[str, ...] = ()
    marks: tuple[Any, ...] = ()
    folders: tuple[tuple[str, str | None], ...] = ()
    fault: str = ""


class OpenPart(Protocol):
    """A part that is being read."""

    start: int
    """Where its first record begins."""
    first_line: int
    """The line there; 1 for a part within a file, whose place is not known yet."""
    notes: tuple[str, ...]
    """What is odd about the file."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the file, in its order: all of them when it has been read."""

    @property
    def marks(self) -> tuple[Any, ...]:
        """What `TextPart.marks` are, when this one has been read."""

    @property
    def end(self) -> int:
        """Where the next part begins, when this one has been read."""

    @property
    def line(self) -> int:
        """The line there."""

    def batches(self) -> Iterator[TextBatch]:
        """Yield its rows as text: those of `names` that are to be read."""


class PartBlocks(Protocol):
    """The blocks of a part, and the place behind the last one that was read."""

    end: int
    line: int


@dataclass
class BlockPart:
    """An open part of a file that is read in blocks. `end` and `line` are those of its end when it
    has been read."""

    file: FileState
    start: int
    first_line: int
    blocks: PartBlocks

    @property
    def end(self) -> int:
        """Where the next part begins."""
        return self.blocks.end

    @property
    def line(self) -> int:
        """The line there."""
        return self.blocks.line


@dataclass
class PartProxy:
    """A part that is being read by way of another one, and is as that one."""

    opened: OpenPart

    def __post_init__(self) -> None:
        self.start = self.opened.start
        self.first_line = self.opened.first_line
        self.notes = self.opened.notes

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the file."""
        return self.opened.names

    @property
    def marks(self) -> tuple[Any, ...]:
        """What `TextPart.marks` are."""
        return self.opened.marks

    @property
    def end(self) -> int:
        """Where the next part begins."""
        return self.opened.end

    @property
    def line(self) -> int:
        """The line there."""
        return self.opened.line


class PartReader(Protocol):
    """Opens parts; it travels to the tasks."""

    def open(self, part: TextPart) -> AbstractContextManager[OpenPart]:
        """Open a part. Raises `LoadFailed` and `AwsError`."""


@dataclass(frozen=True)
class SpelledReader:
    """Reads files with the names that `shared_names` returns; it travels to the tasks."""

    reader: PartReader
    shared: SharedNames

    @contextmanager
    def open(self, part: TextPart) -> Iterator[OpenPart]:
        """Open a part. Raises what the reader raises."""
        with self.reader.open(part) as opened:
            yield _SpelledPart(opened, self.shared.get(part.file.path, {}))


@dataclass
class _SpelledPart(PartProxy):
    shared: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.shared.get(name, name) for name in self.opened.names)

    def batches(self) -> Iterator[TextBatch]:
        for batch in self.opened.batches():
            names = [self.shared.get(name, name) for name in batch.rows.schema.names]
            yield replace(batch, rows=batch.rows.rename_columns(names) if names else batch.rows)


@dataclass(frozen=True)
class Bad:
    """Something that cannot be read: a value of `column`, or with '' a record. `what` is a clause
    that begins with what was found."""

    line: int
    column: str
    what: str


@dataclass
class BadFound:
    """What cannot be read: how many, and the first of them."""

    values: int = 0
    records: int = 0
    broken: int = 0
    """The broken ones, where `records` are those that they may have taken in."""
    first_values: list[Bad] = field(default_factory=list)
    first_records: list[Bad] = field(default_factory=list)

    def add(self, batch: TextBatch) -> None:
        """Take the broken records of a batch."""
        self.records += sum(record.counts for record in batch.bad)
        self.broken += len(batch.bad)
        for record in batch.bad[: _SHOWN - len(self.first_records)]:
            raw = shortened(record.raw[:_MAX_RAW].decode(errors="backslashreplace").rstrip("\r\n"))
            self.first_records.append(Bad(record.line, "", f"{record.reason}: `{raw}`"))

    def add_values(
        self, batch: TextBatch, column: str, rows: Sequence[int], what: Callable[[int], str]
    ) -> None:
        """Take the bad values of a column; `what` says it of a row."""
        self.values += len(rows)
        shown = rows[: _SHOWN - len(self.first_values)]
        for row, line in zip(shown, batch.lines(shown), strict=True):
            self.first_values.append(Bad(line, column, what(row)))

    def moved(self, lines: int) -> BadFound:
        """Return it as found so many lines further down."""
        values = [replace(bad, line=bad.line + lines) for bad in self.first_values]
        records = [replace(bad, line=bad.line + lines) for bad in self.first_records]
        return replace(self, first_values=values, first_records=records)


@dataclass(frozen=True)
class EmptyRecords:
    """Records of separators alone, of another width than the header: how many, and the line of the
    first one."""

    count: int = 0
    line: int = 0

    def with_lines(self, lines: Sequence[int]) -> EmptyRecords:
        """Return them and those of further lines."""
        return self.and_later(EmptyRecords(len(lines), lines[0])) if lines else self

    def and_later(self, others: EmptyRecords) -> EmptyRecords:
        """Return them and others that are further down."""
        return EmptyRecords(self.count + others.count, self.line or others.line)

    def moved(self, lines: int) -> EmptyRecords:
        """Return them so many lines further down."""
        return replace(self, line=self.line + lines) if self.count else self

    @property
    def warning(self) -> str:
        """What a load makes of them; '' where there is none."""
        if not self.count:
            return ""
        more = f" (and {self.count - 1:,} more)" if self.count > 1 else ""
        return (
            f"line {self.line:,} has nothing but separators, and not as many as the header: it is "
            f"a row of nulls{more}"
        )


@dataclass(frozen=True)
class Scanned:
    """A part that was read to its end. `part` says where it truly begins."""

    part: TextPart
    first_line: int
    end: int
    line: int
    evidence: dict[str, Any]
    """The `inference.TypeEvidence` of each column."""
    bad: BadFound
    notes: tuple[str, ...] = ()
    """What is odd about the file."""
    numbers: Mapping[str, MostlyNumbers] = field(default_factory=dict)
    """The numbers of each column whose type is not declared."""
    empty: EmptyRecords = EmptyRecords()
    error: LoadFailed | None = None
    """What stopped the read, where a wrong guess may have caused it, or the file is set aside."""

    @property
    def set_aside(self) -> bool:
        """Whether no record of the file is read."""
        return bool(self.part.fault)


@dataclass(frozen=True)
class Declared:
    """Types that columns have whatever their values are, and how these are written."""

    kinds: Mapping[str, pa.DataType] = field(default_factory=dict)
    formats: Mapping[str, TextFormats] = field(default_factory=dict)

    def with_types(self, others: Declared) -> Declared:
        """Return it with the types of others."""
        return Declared({**self.kinds, **others.kinds}, {**self.formats, **others.formats})


@dataclass(frozen=True)
class Scan:
    """Reads parts for what they hold; it travels to the tasks. `sets_aside`: files that cannot be
    read are set aside."""

    reader: PartReader
    declared: Declared
    values: Values
    recorded: Mapping[str, str] = field(default_factory=dict)
    """The types that columns have in the table."""
    infers: bool = True
    sets_aside: bool = False

    def __call__(self, part: TextPart) -> Scanned:
        """Read one part. Raises `LoadFailed` and `AwsError`."""
        try:
            return self._scan(part)
        except UnreadableFile as error:
            if not self.sets_aside:
                raise
            return Scanned(part, 1, part.start, 1, {}, BadFound(), error=error)

    def _scan(self, part: TextPart) -> Scanned:
        with self.reader.open(part) as opened:
            evidence: dict[str, Any] = {}
            numbers = NumberCounts(part.file.path, self.values)
            bad, rows, error = BadFound(), 0, None
            empty = EmptyRecords()
            try:
                for batch in opened.batches():
                    rows += batch.rows.num_rows + len(batch.bad)
                    bad.add(batch)
                    empty = empty.with_lines(batch.empty_lines)
                    self._add(batch, evidence, numbers, bad)
            except LoadFailed as failure:
                if not part.guess:
                    raise
                error = failure
            # The first part begins with the header, also when it is read again.
            start = opened.start if part.start else 0
            read = replace(
                part, start=start, guess=False, rows=rows, names=opened.names, marks=opened.marks
            )
            return Scanned(
                read,
                opened.first_line,
                opened.end,
                opened.line,
                evidence,
                bad,
                opened.notes,
                numbers.columns,
                empty,
                error,
            )

    def _add(
        self, batch: TextBatch, evidence: dict[str, Any], numbers: NumberCounts, bad: BadFound
    ) -> None:
        for name in batch.rows.schema.names:
            column = batch.rows.column(name)
            if name in self.declared.kinds:
                self._check(batch, name, column, bad)
            elif self.infers:
                seen = evidence.setdefault(name, self.no_evidence(name))
                seen.add(column)
                numbers.add(batch, name, seen)

    def no_evidence(self, name: str) -> Any:
        """Return what is known of a column before a value was seen."""
        kind = self.recorded.get(name)
        return self.values.evidence(kind or self._by_spelling.get(spelling(name)))

    @cached_property
    def _by_spelling(self) -> dict[str, str]:
        return {spelling(name): kind for name, kind in self.recorded.items()}

    def _check(self, batch: TextBatch, name: str, column: Column, bad: BadFound) -> None:
        kind, formats = self.declared.kinds[name], self.declared.formats[name]
        _, rows = self.values.parse(column, kind, formats)
        if len(rows):
            bad.add_values(
                batch,
                name,
                rows.tolist(),
                lambda row: self.values.describe_bad(column[row].as_py(), kind, formats),
            )


RunScan = Callable[[Scan, Sequence[TextPart]], list[Scanned]]
"""Runs a scan over parts, here or in tasks, and returns what it found in their order."""


def cut_files(
    files: Sequence[FileState], can_be_cut: Callable[[FileState], bool], parallelism: Parallelism
) -> list[TextPart]:
    """Return the parts of files: those that can be cut are cut where the work of one task ends
    and that of the next begins, unless a part would take no longer to read than to open."""
    least = parallelism.least_bytes
    sizes = [weight(TextPart(file)) + least for file in files]
    total = sum(sizes)
    count = parallelism.count(total)
    ends = [total * place // count for place in range(1, count)]
    parts: list[TextPart] = []
    begin = 0
    for file, size in zip(files, sizes, strict=True):
        first, last = begin + least, begin + file.size - least
        inside = ends[bisect_left(ends, first) : bisect_right(ends, last)]
        # To ask whether a file can be cut may be to open it.
        cuts = [0, *(end - begin for end in inside)] if inside and can_be_cut(file) else [0]
        parts += [
            TextPart(file, start, stop, guess=start > 0)
            for start, stop in zip(cuts, [*cuts[1:], None], strict=True)
        ]
        begin += size
    return parts


def scan_files(parts: Sequence[TextPart], scan: Scan, run: RunScan) -> list[Scanned]:
    """Read all parts, and those again that were not cut between two records. A file that is set
    aside is one part with a `fault`.

    The parts of one file are in its order, without gaps. Their lines are counted from the
    beginning of the file.
    """
    found = run(scan, parts)
    by_file: dict[str, list[Scanned]] = {}
    for scanned in found:
        by_file.setdefault(scanned.part.file.path, []).append(scanned)
    wrong = dict.fromkeys(by_file, 0)
    while again := {
        path: place
        for path, of_file in by_file.items()
        if (place := _first_wrong(of_file, sets_aside=scan.sets_aside)) is not None
    }:
        redone = []
        for path, place in again.items():
            of_file = by_file[path]
            wrong[path] += 1
            part = replace(
                of_file[place].part, start=of_file[place - 1].end, rows=0, names=(), marks=()
            )
            if wrong[path] > _MOST_WRONG_GUESSES:
                # Guesses are no good in this file.
                part = replace(part, stop=None)
                del of_file[place + 1 :]
            redone.append(part)
        for scanned in run(scan, redone):
            by_file[scanned.part.file.path][again[scanned.part.file.path]] = scanned
    return [scanned for of_file in by_file.values() for scanned in _with_lines(of_file)]


def _first_wrong(of_file: list[Scanned], *, sets_aside: bool) -> int | None:
    """Return the first part that does not begin where the one before ends. Raises the error of a
    part that truly begins where it was read from, or with `sets_aside` leaves one part for the
    file."""
    for place, one in enumerate(of_file, start=1):
        if one.set_aside:
            return None
        if one.error is not None:
            if not (sets_aside and isinstance(one.error, UnreadableFile)):
                raise one.error
            of_file[:] = [_whole_file(of_file[0].part, one.error)]
            return None
        if place < len(of_file) and one.end != of_file[place].part.start:
            return place
    return None


def _whole_file(first: TextPart, error: UnreadableFile) -> Scanned:
    """Return what stands for a file that is set aside."""
    part = replace(
        first, start=0, stop=None, guess=False, line=1, rows=1, names=(), marks=(), fault=error.why
    )
    return Scanned(part, 1, 0, 1, {}, BadFound(), error=error)


def _with_lines(of_file: Sequence[Scanned]) -> Iterator[Scanned]:
    """Count the lines of parts from the beginning of the file."""
    at = 1
    for place, scanned in enumerate(of_file):
        moved = at - scanned.first_line if place else 0
        line = scanned.first_line + moved
        part = replace(scanned.part, line=line)
        numbers = {name: seen.moved(moved) for name, seen in scanned.numbers.items()}
        bad, empty = scanned.bad.moved(moved), scanned.empty.moved(moved)
        yield replace(scanned, part=part, bad=bad, numbers=numbers, empty=empty)
        at = scanned.line + moved


def check_bad(
    scanned: Sequence[Scanned],
    on_bad_value: OnBadValue,
    values: Values,
    limit: RejectLimit = REJECT_LIMIT,
    *,
    keeps_types: bool = False,
) -> None:
    """Raise `LoadFailed` with the first of what cannot be read: broken records always, bad values
    unless they become null. Under QUARANTINE `limit` says how many records may be broken.
    `keeps_types`: the columns have their types from the table, and not from `columns.types`."""
    records = sum(found.bad.records + found.set_aside for found in scanned)
    bad_values = sum(found.bad.values for found in scanned) if on_bad_value == "FAIL" else 0
    if not records + bad_values:
        return
    if on_bad_value == "QUARANTINE":
        _check_limit(scanned, records, limit)
        return
    first: list[tuple[str, Bad]] = []
    for found in scanned:
        shown = found.bad.first_records + (found.bad.first_values if bad_values else [])
        first += [(found.part.file.path, bad) for bad in sorted(shown, key=lambda bad: bad.line)]
    first_bad = first[0][1]
    hint = _hint(first_bad, values)
    if keeps_types and first_bad.column:
        hint = _KEPT_HINT
    some = [_bad_value(path, bad) for path, bad in first[:_SHOWN]]
    raise MalformedRecord.of(some, records + bad_values, hint=hint)


_KEPT_HINT = (
    "fix the file, or set `on_type_conflict: NEW_COLUMN`, which loads the values of these files "
    "into a column of their own, or set `on_bad_value: 'NULL'`"
)


def _check_limit(scanned: Sequence[Scanned], records: int, limit: RejectLimit) -> None:
    """Compare the broken records alone: what they have taken in counts, too."""
    of = sum(found.part.rows + found.bad.records - found.bad.broken for found in scanned)
    first = [str(found.error) for found in scanned if found.set_aside]
    first += [
        str(_bad_value(found.part.file.path, bad))
        for found in scanned
        for bad in found.bad.first_records
    ]
    check_rejected(Rejected(records, of, tuple(first[:_SHOWN])), limit)


class MalformedRecord(BadValuesFound):
    """Text that is not what it should be."""


def _bad_value(path: str, bad: Bad) -> BadValue:
    column = f", column `{bad.column}`" if bad.column else ""
    return BadValue(path, f": line {bad.line:,}", f"{column}: {bad.what}")


def _hint(bad: Bad, values: Values) -> str:
    if bad.column:
        return (
            "fix the file, give the column another type with `columns.types`, or set "
            "`on_bad_value: 'NULL'`"
        )
    if "encoding" in bad.what:
        return ENCODING_HINT
    return values.record_hint(bad.what)


@dataclass(frozen=True)
class ReadText:
    """Reads parts; it travels to the tasks. `schema` are the columns that are loaded.

    `on_bad_value` decides how the batches end: with `BAD_VALUES_HELPER` under NULL, where a value
    can be bad, and with `REJECTED_HELPER` under QUARANTINE.
    """

    reader: PartReader
    schema: pa.Schema
    declared: Declared
    values: Values
    formats: TextFormats
    on_bad_value: OnBadValue = "FAIL"

    @property
    def batch_schema(self) -> pa.Schema:
        """The columns of the batches, helpers included."""
        if self.on_bad_value == "QUARANTINE":
            return self.schema.append(pa.field(REJECTED_HELPER, REJECT))
        if self.on_bad_value == "NULL" and self.declared.kinds:
            return self.schema.append(pa.field(BAD_VALUES_HELPER, pa.int32()))
        return self.schema

    def __call__(self, parts: Sequence[TextPart]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that one task reads. Raises `LoadFailed` where they are not those that
        were read before."""
        for part in parts:
            if part.fault:
                yield self._set_aside(part)
                continue
            rows = 0
            with self.reader.open(part) as opened:
                if opened.names != part.names:
                    raise changed(part.file.path, "was written to")
                for batch in opened.batches():
                    if batch.bad and self.on_bad_value != "QUARANTINE":
                        raise changed(part.file.path, "was written to")
                    rows += batch.rows.num_rows + len(batch.bad)
                    yield self._typed(part, batch)
            if rows != part.rows:
                raise changed(part.file.path, "was written to")

    def _set_aside(self, part: TextPart) -> pa.RecordBatch:
        """Return the record that stands for a whole file."""
        rejects = {0: Reject(part.file.path, part.fault)}
        nulls = [pa.nulls(1, column.type) for column in self.schema]
        arrays = [*nulls, reject_column(1, rejects)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.batch_schema)

    def _typed(self, part: TextPart, batch: TextBatch) -> pa.RecordBatch:
        folders, rows = dict(part.folders), batch.rows.num_rows
        arrays: list[Any] = []
        bad = np.zeros(rows, np.int32)
        first: dict[int, tuple[Any, Column]] = {}
        schema = self.batch_schema
        for column in self.schema:
            kind, formats = column.type, self.declared.formats.get(column.name, self.formats)
            if column.name in folders:
                folder = pa.array([folders[column.name]], pa.string())
                value, _ = parse_text(folder, kind, formats)
                arrays.append(pa.repeat(value[0], rows))
                continue
            if column.name not in batch.rows.schema.names:
                arrays.append(pa.nulls(rows, kind))
                continue
            text = batch.rows.column(column.name)
            values, wrong = self.values.parse(text, kind, formats)
            arrays.append(values)
            if len(wrong) and schema is self.schema:
                raise self._misfit(part, batch, column, text, int(wrong[0]))
            bad[wrong] += 1
            if self.on_bad_value == "QUARANTINE":
                first = {int(row): (column, text) for row in wrong} | first
        if REJECTED_HELPER in schema.names:
            arrays = self._with_rejects(part, batch, arrays, first)
        elif BAD_VALUES_HELPER in schema.names:
            arrays.append(pa.array(bad))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _with_rejects(
        self,
        part: TextPart,
        batch: TextBatch,
        arrays: Sequence[Column],
        first: Mapping[int, tuple[Any, Column]],
    ) -> list[Column]:
        """Return the columns with the broken records in their places, and the helper column.

        `first` are the rows with a bad value, each with the first column that has one.
        """
        rows = sorted(first)
        rejects: dict[int, Reject] = {}
        columns, own, added = with_records(
            arrays, batch.rows.num_rows, [record.row for record in batch.bad]
        )
        names = json.dumps(part.names, ensure_ascii=False)
        for row, line, raw in zip(rows, batch.lines(rows), batch.records(rows), strict=True):
            column, text = first[row]
            value = text[row].as_py()
            formats = self.declared.formats.get(column.name, self.formats)
            rejects[own[row]] = Reject(
                part.file.path,
                self.values.describe_bad(value, column.type, formats),
                raw,
                source_line=line,
                column_name=column.name,
                column_value=value.decode() if isinstance(value, bytes) else value,
                source_columns=names,
            )
        for place, record in zip(added, batch.bad, strict=True):
            rejects[place] = Reject(
                part.file.path,
                record.reason,
                record.raw,
                source_line=record.line,
                source_columns=names,
            )
        count = batch.rows.num_rows + len(batch.bad)
        return [*columns, reject_column(count, rejects)]

    def _misfit(
        self, part: TextPart, batch: TextBatch, column: Any, text: Column, row: int
    ) -> LoadFailed:
        formats = self.declared.formats.get(column.name, self.formats)
        what = self.values.describe_bad(text[row].as_py(), column.type, formats)
        (line,) = batch.lines([row])
        bad = Bad(line, column.name, what)
        found = [_bad_value(part.file.path, bad)]
        return MalformedRecord.of(found, 1, hint=_hint(bad, self.values))


def weight(part: TextPart) -> int:
    """Return about how many bytes a part has when it is unpacked."""
    size = (part.stop or part.file.size) - part.start
    return size * _EXPANDS if part.file.path.lower().endswith(PACKED_SUFFIXES) else size


def split_text(scanned: Sequence[Scanned], read: ReadText, parallelism: Parallelism) -> Splits:
    """Return the parts that have rows, put together for tasks."""
    parts = [found.part for found in scanned if found.part.rows]
    tasks = tuple(put_together(parts, parallelism))
    counts = tuple(sum(part.rows for part in task) for task in tasks)
    return Splits(tasks, read, counts, size=sum(weight(found.part) for found in scanned))


def put_together(
    parts: Sequence[TextPart], parallelism: Parallelism
) -> Iterator[tuple[TextPart, ...]]:
    """Yield the parts that each task reads, in their order."""
    sizes = [weight(part) + parallelism.least_bytes for part in parts]
    for some in parallelism.parts(sizes):
        yield tuple(parts[some.start : some.stop])
