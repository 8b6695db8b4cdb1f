"""Records that were rejected, in the place of the files that they are from.

They are read as files are, but for what comes before the first record. Their columns are those of
the file, and their lines are those that they have in it.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import IO

from lakeload_jobs.sources.files.text.batches import TextBatch, count_lines
from lakeload_jobs.sources.files.text.splits import OpenPart, PartProxy, PartReader, TextPart
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState
from lakeload_jobs.sources.paths.source_bytes import Bytes


@dataclass(frozen=True)
class StoredText:
    """The rejected records of one file, one after the other. `places` are the line on which each
    begins, here and in the file."""

    data: bytes
    names: tuple[str, ...]
    places: tuple[tuple[int, int], ...]

    def line(self, line: int) -> int:
        """Return the line of the file that a line here was."""
        at = max(bisect_right(self.places, line, key=lambda place: place[0]) - 1, 0)
        here, there = self.places[at]
        return there + line - here


@dataclass(frozen=True)
class StoredFiles(FileBytes):
    """Opens rejected records in the place of their files; it travels to the tasks."""

    texts: Mapping[str, StoredText] = field(default_factory=dict)

    @contextmanager
    def stream(self, file: FileState, start: int = 0) -> Iterator[Bytes]:
        """Open the records of a file from byte `start` on."""
        yield io.BytesIO(self.texts[file.path].data[start:])

    @contextmanager
    def seekable(self, file: FileState) -> Iterator[IO[bytes]]:
        """Open the records of a file."""
        yield io.BytesIO(self.texts[file.path].data)


@dataclass(frozen=True)
class StoredReader:
    """Reads rejected records with the lines that they have in their files."""

    reader: PartReader
    files: StoredFiles

    @contextmanager
    def open(self, part: TextPart) -> Iterator[OpenPart]:
        """Open the records of a file. Raises what the reader raises."""
        with self.reader.open(part) as opened:
            yield _StoredPart(opened, self.files.texts[part.file.path].line)


@dataclass
class _StoredPart(PartProxy):
    line_of: Callable[[int], int]

    def batches(self) -> Iterator[TextBatch]:
        for batch in self.opened.batches():
            bad = tuple(replace(one, line=self.line_of(one.line)) for one in batch.bad)
            empty = tuple(map(self.line_of, batch.empty_lines))
            yield replace(batch, bad=bad, lines=self._lines(batch), empty_lines=empty)

    def _lines(self, batch: TextBatch) -> Callable[[Sequence[int]], list[int]]:
        return lambda rows: [self.line_of(line) for line in batch.lines(rows)]


def stored_text(
    names: Sequence[str], records: Iterable[tuple[int, bytes]], line_break: bytes = b"\n"
) -> StoredText:
    """Put the records of a file, each with its line there, one after the other."""
    data, places = bytearray(), []
    line = 1
    for there, record in records:
        places.append((line, there))
        data += record + line_break
        line += count_lines(record) + 1
    return StoredText(bytes(data), tuple(names), tuple(places))
