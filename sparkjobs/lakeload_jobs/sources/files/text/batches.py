"""What a reader of text yields: batches of text columns, and records that are broken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

LineFinder = Callable[[Sequence[int]], list[int]]
"""Returns the lines on which the given rows of a batch begin."""


@dataclass(frozen=True)
class BadRecord:
    """A record that is no row: `line` is where the problem shows, mostly where the record begins,
    and `raw` its bytes in UTF-8."""

    line: int
    raw: bytes
    reason: str


@dataclass(frozen=True)
class TextBatch:
    """Rows as text, and the broken records between them.

    Lines count from 1 at the beginning of what is read, which is a part of a file. They are found
    when they are asked for: only bad values need them.
    """

    rows: pa.RecordBatch
    bad: tuple[BadRecord, ...]
    lines: LineFinder
