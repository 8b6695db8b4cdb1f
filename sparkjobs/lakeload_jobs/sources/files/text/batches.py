"""What a reader of text yields: batches of text columns, and records that are broken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

LineFinder = Callable[[Sequence[int]], list[int]]
"""Returns the lines on which the given rows of a batch begin."""

RecordFinder = Callable[[Sequence[int]], list[bytes]]
"""Returns the records that the given rows of a batch are, in UTF-8."""


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
    """Rows as text, and the broken records between them.

    Lines count from 1 at the beginning of what is read, which is a part of a file. They, and the
    records, are found when they are asked for: only bad values need them.
    """

    rows: pa.RecordBatch
    bad: tuple[BadRecord, ...]
    lines: LineFinder
    records: RecordFinder
