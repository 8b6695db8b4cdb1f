"""JSON files of a table: the records of any part of one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from lakeload_jobs.core.yaml_lines import yaml_text
from lakeload_jobs.rows.arrow import Kind
from lakeload_jobs.sources.base import UnreadableFile
from lakeload_jobs.sources.batch_sizes import shown_size
from lakeload_jobs.sources.files.formats.json.options import JsonOptions, read_json_options
from lakeload_jobs.sources.files.formats.json.records import (
    MAX_RECORD,
    BrokenFile,
    LineBlocks,
    Records,
    ValueBlocks,
    WrappedBlocks,
    line_start,
    read_block,
)
from lakeload_jobs.sources.files.formats.json.values import JsonValues
from lakeload_jobs.sources.files.text.batches import ALL_COLUMNS, Columns, RecordTooLong, TextBatch
from lakeload_jobs.sources.files.text.opening import open_text
from lakeload_jobs.sources.files.text.reading import TextReading
from lakeload_jobs.sources.files.text.splits import BlockPart, TextPart
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState
from lakeload_jobs.sources.type_names import TimestampUnit, UnknownType, declared_type, nested_type

_FEW = 256
"""Blocks of fewer records become larger, up to `_LARGEST` bytes."""
_LARGEST = 4 << 20

AnyBlocks = LineBlocks | ValueBlocks | WrappedBlocks


@dataclass
class JsonPart(BlockPart):
    """An open part of a JSON file. `names` are those of all records so far; where the part was read
    before, those of the columns that are read."""

    blocks: AnyBlocks
    loaded: Columns
    known: tuple[str, ...] | None
    checks: bool
    """Whether records may be broken."""
    notes: tuple[str, ...] = ()
    marks: tuple[()] = ()
    """Records of JSON are found by their line feeds or brackets each time."""
    _seen: dict[str, None] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The keys of the records."""
        return tuple(self._seen) if self.known is None else self.known

    def batches(self) -> Iterator[TextBatch]:
        """Yield the records. Raises `LoadFailed` for a file that is broken beyond a record."""
        try:
            for block in self.blocks:
                records = read_block(block, check=self.checks)
                if records.members.objects < _FEW and self.blocks.size < _LARGEST:
                    # Each column of a block takes its time, whatever the rows are.
                    self.blocks.size *= 2
                yield self._batch(records)
        except RecordTooLong as error:
            raise UnreadableFile(
                self.file.path,
                f"the record that begins on line {error.line:,} is longer than "
                f"{shown_size(MAX_RECORD)}",
                hint=f"its list is loaded with the reader option `records: {yaml_text(error.path)}`"
                if error.path
                else "if a bracket or a quote in it is never closed, close it; if a value is so "
                "large, store it as an object of its own",
            ) from error
        except BrokenFile as error:
            raise UnreadableFile(
                self.file.path, f"line {error.line:,}: {error}", hint="fix the file"
            ) from error

    def _batch(self, records: Records) -> TextBatch:
        members = records.members
        self._seen.update(dict.fromkeys(members.names))
        names = [name for name in members.names if name in self.loaded]
        if names:
            rows = pa.RecordBatch.from_arrays([members.column(name) for name in names], names=names)
        else:
            # An array of structs knows its length without columns too.
            nothing: Any = pa.array([{}] * members.objects, pa.struct([]))
            rows = pa.RecordBatch.from_struct_array(nothing)
        return TextBatch(
            rows,
            records.bad,
            lambda rows: [records.line(row) for row in rows],
            lambda rows: [records.raw(row) for row in rows],
        )


@dataclass(frozen=True)
class JsonReader:
    """Reads parts of JSON files; it travels to the tasks. `lines`: each record is a line;
    `loaded` are the columns that are read. `sets_aside`: broken records are set aside, so each read
    checks all of them."""

    files: FileBytes
    options: JsonOptions
    lines: bool
    loaded: Columns = ALL_COLUMNS
    sets_aside: bool = False

    @contextmanager
    def open(self, part: TextPart) -> Iterator[JsonPart]:
        """Open a part. Raises what opening raises."""
        with ExitStack() as stack:
            known = part.names if part.rows else None
            checks = known is None or self.sets_aside
            if part.start > 0:
                start = part.start
                if part.guess:
                    with self.files.stream(part.file, start - 1) as stream:
                        start = line_start(stream, start)
                stream = stack.enter_context(self.files.stream(part.file, start))
                blocks: AnyBlocks
                blocks = LineBlocks(stream, start, part.stop, part.line)
                yield JsonPart(part.file, start, part.line, blocks, self.loaded, known, checks)
                return
            text = stack.enter_context(open_text(self.files, part.file, self.options.encoding))
            if self.lines:
                blocks = LineBlocks(text.stream, text.start, part.stop)
            elif self.options.records:
                blocks = WrappedBlocks(text.stream, self.options.records, text.start)
            else:
                blocks = ValueBlocks(text.stream, text.start)
            yield JsonPart(part.file, text.start, 1, blocks, self.loaded, known, checks)


@dataclass(frozen=True)
class JsonReading(TextReading):
    """How JSON files with some options are read. `lines`: each record is a line, else files hold
    one value or more, or a list. `nested_as_text`: objects and lists are loaded as they are
    written."""

    lines: bool = False
    nested_as_text: bool = False

    @cached_property
    def options(self) -> JsonOptions:
        """The options."""
        return read_json_options(self.written)[0]

    @cached_property
    def values(self) -> JsonValues:
        """How values are read."""
        formats = self.text_formats(binary="BASE64")
        return JsonValues(formats, self.options.infer, self.nested_as_text)

    @property
    def keeps_order(self) -> bool:
        """Return False: the order of keys says nothing, and records may lack any."""
        return False

    def reader(
        self,
        files: FileBytes,
        loaded: Columns = ALL_COLUMNS,
        *,
        known: Collection[str] = (),
        sets_aside: bool = False,
        stored: Mapping[str, tuple[str, ...]] | None = None,
    ) -> JsonReader:
        """Return what reads files, or rejected records, whatever was around them."""
        options = self.options
        if stored is not None:
            options = replace(options, encoding=None, records=())
        return JsonReader(files, options, self.lines, loaded, sets_aside)

    def can_be_cut(self, files: FileBytes, file: FileState) -> bool:
        """Whether each line is a record, in a text that can be read from any byte."""
        return self.lines and super().can_be_cut(files, file)

    def declared_type(self, name: str) -> tuple[Kind, TimestampUnit | None]:
        """Return a type of `columns.types`, nested ones included. Raises `UnknownType`."""
        try:
            return declared_type(name)
        except UnknownType:
            return nested_type(name), None

    def inferred_type(self, name: str) -> Kind:
        """Return a type that values say, nested ones included."""
        return nested_type(name)
