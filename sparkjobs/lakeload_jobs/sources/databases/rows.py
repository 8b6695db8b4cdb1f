"""Rows of a table that is read once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, StructType

from lakeload_jobs.contract.spec import TableSpec
from lakeload_jobs.contract.state import StateChange
from lakeload_jobs.core.comments import NO_COMMENTS, Comments
from lakeload_jobs.rows.casts import quoted
from lakeload_jobs.rows.deferred_frame import DeferredFrame
from lakeload_jobs.sources.base import (
    CheckType,
    Keys,
    Reader,
    Spellings,
    Splits,
)
from lakeload_jobs.sources.settings import check_types


@dataclass(frozen=True)
class RowsReadOnce:
    """The rows of a table that is read once (`sources.base.Rows`)."""

    deferred: DeferredFrame
    names: tuple[str, ...]
    splits: Splits | None
    warnings: tuple[str, ...]
    on_end: Callable[[Sequence[Any]], None] | None = None
    why_no_splits: str = ""
    counts: tuple[int, ...] | None = None
    reader: Reader = "direct"
    repeatable: bool = False
    count_reads_all_columns: bool = False
    comments: Comments = NO_COMMENTS
    spellings: Spellings = ()
    check_type: CheckType | None = None

    @property
    def frame(self) -> DataFrame:
        """The rows as Spark gets them."""
        return self.deferred.frame

    @property
    def keys(self) -> Keys:
        """Those of `frame`, which has every row, or else in `KEY_ONLY_HELPER` the keys of all."""
        return lambda names: self.frame.select(*map(quoted, names))

    @property
    def schema(self) -> StructType:
        """The columns of `frame`."""
        return self.deferred.schema

    def check_unchanged(self) -> None:
        """Do nothing: the read was one transaction, which has ended."""

    def check_read(self, count: int | None) -> None:
        """Do nothing: a database checks its own pages, and cuts no result short."""

    def check_values(self) -> None:
        """Do nothing: the read has reported all bad values, in the transaction."""

    def finish(self, ends: Sequence[Any]) -> StateChange | None:
        """Return None: the slice knows the state. It keeps what the read has noted."""
        if self.on_end is not None:
            self.on_end(ends)
        return None


def casts_of(table: TableSpec, schema: StructType, names: tuple[str, ...]) -> dict[str, str]:
    """Return the types of `columns.types` that columns do not have already."""
    kinds = {field.name: field.dataType for field in schema}
    return {
        name: kind
        for name, kind in check_types(table.columns.types or {}, names).items()
        if name in kinds and DataType.fromDDL(kind) != kinds[name]
    }
