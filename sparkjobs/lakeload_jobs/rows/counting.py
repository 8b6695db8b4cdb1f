"""Counts of the rows of a load, and the bounds of columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lakeload_jobs.rows.arrow import Kind, pc
from lakeload_jobs.rows.rejects import NONE_REJECTED, Rejected

Bounds = Mapping[str, tuple[Any, Any]]
"""The least and greatest value of columns; those without a value are not among them."""


def _has_bounds(kind: Kind) -> bool:
    """Whether values of a type come back from Python to Spark as they went: instants would take its
    time zone."""
    exact = pt.is_integer(kind) or pt.is_decimal(kind)
    return bool(exact or pt.is_string(kind) or pt.is_date(kind))


def bounds_of(batch: pa.RecordBatch, columns: Sequence[str]) -> Bounds:
    """Return the bounds of columns of a batch, of those whose types have any."""
    found = {}
    for name in columns:
        column = batch.column(name)
        if _has_bounds(column.type) and column.null_count < len(column):
            both = pc.min_max(column)
            found[name] = both["min"].as_py(), both["max"].as_py()
    return found


def united(bounds: Iterable[Bounds]) -> dict[str, tuple[Any, Any]]:
    """Return bounds that hold for all of several bounds."""
    joined: dict[str, tuple[Any, Any]] = {}
    for one in bounds:
        for name, (low, high) in one.items():
            least, most = joined.get(name, (low, high))
            joined[name] = min(low, least), max(high, most)
    return joined


@dataclass(frozen=True)
class Counted:
    """`partitions` are the rows of each part, in their order, of which `rejected` are set aside
    under QUARANTINE."""

    partitions: tuple[int, ...]
    rejected: int = 0

    @property
    def rows(self) -> int:
        """All rows."""
        return sum(self.partitions)

    @property
    def loaded(self) -> int:
        """The rows that are not rejected."""
        return self.rows - self.rejected


@dataclass(frozen=True)
class RowsReport:
    """What tasks found in rows that they have read: how many there are, `dropped` ones not counted,
    how many values became null, the records that are rejected, and the bounds of the key, where
    somebody asks for them."""

    rows: int = 0
    dropped: int = 0
    bad_values: int = 0
    rejected: Rejected = NONE_REJECTED
    bounds: Bounds = field(default_factory=dict)

    def __add__(self, other: RowsReport) -> RowsReport:
        return RowsReport(
            self.rows + other.rows,
            self.dropped + other.dropped,
            self.bad_values + other.bad_values,
            self.rejected + other.rejected,
            united((self.bounds, other.bounds)),
        )


NO_ROWS = RowsReport()
