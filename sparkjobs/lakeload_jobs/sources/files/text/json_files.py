"""JSON files of a table: the records of any part of one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lakeload_jobs.core.yaml_lines import yaml_text
from lakeload_jobs.sources.base import UnreadableFile
from lakeload_jobs.sources.batch_sizes import shown_size
from lakeload_jobs.sources.files.text.batches import ALL_COLUMNS, Columns, TextBatch
from lakeload_jobs.sources.files.text.json import (
    MAX_RECORD,
    BrokenFile,
    LineBlocks,
    Records,
    RecordTooLong,
    ValueBlocks,
    WrappedBlocks,
    line_start,
    read_block,
)
from lakeload_jobs.sources.files.text.opening import open_text
from lakeload_jobs.sources.files.text.options import JsonOptions
from lakeload_jobs.sources.files.text.splits import Piece
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState

_FEW = 256
"""Blocks of fewer records become larger, up to `_LARGEST` bytes."""
_LARGEST = 4 << 20

AnyBlocks = LineBlocks | ValueBlocks | WrappedBlocks


@dataclass
class JsonPiece:
    """An open piece of a file. `end` and `line` are those of its end when it has been read.

    `names` are those of all records so far; where the piece was read before, those of the columns
    that are read.
    """

    file: FileState
    start: int
    first_line: int
    blocks: AnyBlocks
    loaded: Columns
    known: tuple[str, ...] | None = None
    checks: bool = True
    """Whether records may be broken."""
    notes: tuple[str, ...] = ()
    cuts: tuple[()] = ()
    """Records of JSON are found by their line feeds or brackets each time."""
    _seen: dict[str, None] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The keys of the records."""
        return tuple(self._seen) if self.known is None else self.known

    @property
    def end(self) -> int:
        """Where the next piece begins."""
        return self.blocks.end

    @property
    def line(self) -> int:
        """The line there."""
        return self.blocks.line

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
    """Reads pieces of JSON files; it travels to the tasks. `lines`: each record is a line;
    `loaded` are the columns that are read. `sets_aside`: broken records are set aside, so each read
    checks all of them."""

    files: FileBytes
    options: JsonOptions
    lines: bool
    loaded: Columns = ALL_COLUMNS
    sets_aside: bool = False

    @contextmanager
    def open(self, piece: Piece) -> Iterator[JsonPiece]:
        """Open a piece. Raises what opening raises."""
        with ExitStack() as stack:
            known = piece.names if piece.rows else None
            checks = known is None or self.sets_aside
            if piece.start > 0:
                start = piece.start
                if piece.guess:
                    with self.files.stream(piece.file, start - 1) as stream:
                        start = line_start(stream, start)
                stream = stack.enter_context(self.files.stream(piece.file, start))
                blocks: AnyBlocks
                blocks = LineBlocks(stream, start, piece.stop, piece.line)
                yield JsonPiece(piece.file, start, piece.line, blocks, self.loaded, known, checks)
                return
            text = stack.enter_context(open_text(self.files, piece.file, self.options.encoding))
            if self.lines:
                blocks = LineBlocks(text.stream, text.start, piece.stop)
            elif self.options.records:
                blocks = WrappedBlocks(text.stream, self.options.records, text.start)
            else:
                blocks = ValueBlocks(text.stream, text.start)
            yield JsonPiece(piece.file, text.start, 1, blocks, self.loaded, known, checks)
