"""Output of the text readers: batches of columns as they are written, and records that are
broken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

LineFinder = Callable[[Sequence[int]], list[int]]
"""Returns the lines on which the given rows of a batch begin."""

RecordFinder = Callable[[Sequence[int]], list[bytes]]
"""Returns the records that the given rows of a batch are, in UTF-8 and without line break."""


@dataclass(frozen=True)
class Columns:
    """The columns that are read: those included, or all, and of these not the excluded ones."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def __contains__(self, name: object) -> bool:
        return (not self.include or name in self.include) and name not in self.exclude


ALL_COLUMNS = Columns()


@dataclass(frozen=True)
class BadRecord:
    """A record that is no row: `line` is where the problem shows, mostly where the record begins,
    and `raw` its bytes in UTF-8. `row` is how many rows of its batch come before it.

    `counts` is how many records it may have taken in: one with a quote that is never closed ends
    with the file.
    """

    line: int
    raw: bytes
    reason: str
    row: int = 0
    counts: int = 1


@dataclass(frozen=True)
class TextBatch:
    """Rows as they are written, and the broken records between them: of CSV as text, of JSON as the
    bytes of each value.

    `empty_lines` are those of records of CSV that are separators alone, but not as many as the
    header has: they are rows of nulls. Lines count from 1 at the beginning of what is read, which
    is a part of a file. Others, and the records, are found when they are asked for: only bad values
    need them.
    """

    rows: pa.RecordBatch
    bad: tuple[BadRecord, ...]
    lines: LineFinder
    records: RecordFinder
    empty_lines: tuple[int, ...] = ()


class RecordTooLong(Exception):
    """A record of more bytes than one may have; `line` is where it begins. `path` is that of the
    first list of objects in a record of JSON."""

    def __init__(self, line: int, path: str | None = None) -> None:
        super().__init__(line)
        self.line = line
        self.path = path


def count_lines(data: bytes) -> int:
    """Return how many lines end in the data."""
    # A third of the time of `bytes.count`.
    breaks = int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n")))
    if b"\r" in data:
        breaks += data.count(b"\r") - data.count(b"\r\n")
    return breaks
