"""The rows of a load: read from their source, and laid out as a table wants them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import NullType, StructType

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.contract.state import Bookmark
from lakeload_jobs.core.type_conflicts import split_variants
from lakeload_jobs.formats.base import ExpectedColumns, PreparedRows, Reporter, TableView
from lakeload_jobs.formats.data_files.parts import (
    of_frame,
    rows_in_arrow,
)
from lakeload_jobs.formats.spool import Spool, spooled
from lakeload_jobs.formats.type_conflicts import resolve_conflicts
from lakeload_jobs.rows.casts import null_columns, written_frame, written_schema
from lakeload_jobs.rows.columns import ColumnMapping, LoadedColumn, map_columns, source_names
from lakeload_jobs.rows.rejects import REJECTED_HELPER
from lakeload_jobs.sources.base import EarlierColumns, Rows, Slice, Source
from lakeload_jobs.sources.spark_frames import frame_of, is_empty

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)


class LoadInput:
    """The input of one load. What can be read once only is read once for all its rounds.

    `compares`: the keys that were read are compared with those of the table. `progress` returns the
    file in which tasks tell how far they are.
    """

    def __init__(
        self,
        source: Source,
        name: str,
        reporter: Reporter,
        compares: bool,
        progress: Callable[[], str | None],
    ) -> None:
        self.source = source
        self._name = name
        self._reporter = reporter
        self._compares = compares
        self._progress = progress
        self._spooled: tuple[Any, Slice, Spool] | None = None

    def slice(self, bookmark: Bookmark) -> Slice:
        """Return what is new since `bookmark`.

        Raises as `Source.slice` does, and `LoadFailed` when what was read goes on from a state that
        another load has moved since, or keys that were read would be compared with later ones.
        """
        if self._spooled is None:
            return self.source.slice(bookmark)
        state, found, _ = self._spooled
        if bookmark.state != state or self._compares:
            raise LoadFailed(
                f"another load of `{self._name}` was committed after this load had read its "
                "rows, which cannot be read twice",
                hint=(
                    "run again: nothing was committed, and the next load continues after the other"
                ),
                retryable=True,
            )
        return found

    def rows(self, table: TableView, found: Slice, state: Any, earlier: EarlierColumns) -> Rows:
        """Return the rows of the slice."""
        if self._spooled is not None:
            return self._spooled[2].rows
        rows = found.open(table.spark, earlier)
        if rows.repeatable or not rows.names:
            return rows
        self._reporter.on_message(f"`{self._name}` is read only once: its rows are stored on disk")
        kept = spooled(rows, self._progress())
        self._spooled = (state, found, kept)
        return kept.rows

    def close(self) -> None:
        """Give back what the rows took; what fails of that changes nothing about the load."""
        for held in (self._spooled and self._spooled[2], self.source):
            try:
                if held is not None:
                    held.close()
            except Exception:
                logger.warning("closing the source of %s failed", self._name, exc_info=True)


def prepare_rows(
    spec: JobSpec,
    table: TableSpec,
    rows: Rows,
    expected: ExpectedColumns,
    *,
    may_read: bool = True,
) -> PreparedRows:
    """Return the rows under their target names; without columns there are no rows either.

    `may_read`: rows may be looked into where they have no columns, or their types do not fit those
    of the table.

    Raises `InvalidInput` for settings that the source does not bear out, and `LoadFailed` for types
    that cannot be loaded as `on_type_conflict` says.
    """
    if not rows.names and REJECTED_HELPER in rows.schema.names:
        return _only_rejects(table, rows, expected)
    if not rows.names:
        return _without_columns(rows, may_read=may_read)
    mapping = map_columns(
        rows.names,
        table.columns,
        primary_key=table.primary_key,
        recorded=expected.recorded,
        existing=expected.names,
        lower=expected.lower,
        spellings=rows.spellings,
    )
    mapping = _with_types(mapping, rows.schema, expected)
    limit = spec.options.limit

    def written() -> DataFrame:
        frame = written_frame(
            frame_of(rows),
            mapping,
            nested=spec.nested,
            lower=expected.lower,
            where=table.where,
            deleted_when=table.deleted_when,
        )
        # One partition, read in order and only as far as needed; a shuffle would read them all.
        return frame if limit is None else frame.coalesce(1).limit(limit)

    frame, schema = None, None
    if table.where is None and table.deleted_when is None:
        schema = written_schema(rows.schema, mapping, nested=spec.nested, lower=expected.lower)
    if schema is None:
        # This also checks the conditions.
        frame = written()
        schema = frame.schema
    parts = rows_in_arrow(spec, table, rows, mapping, schema)
    if parts is None:
        counts = rows.counts if table.where is None and limit is None else None
        parts = of_frame(written() if frame is None else frame, counts)
    prepared = PreparedRows(rows, mapping, schema, parts)
    policy = spec.on_type_conflict_of(table)
    return resolve_conflicts(prepared, expected, table, policy, may_read=may_read)


def _with_types(
    mapping: ColumnMapping, schema: StructType, expected: ExpectedColumns
) -> ColumnMapping:
    """Leave out new columns without a type: as long as they have no value, any type may follow."""
    known = {name.lower() for name in expected.types} | {name.lower() for name in mapping.key}
    void = [
        column
        for column in mapping.columns
        if isinstance(schema[column.source].dataType, NullType)
        and column.target.lower() not in known
    ]
    if len(void) == len(mapping.columns):
        return mapping
    notes = [
        f"column `{column.source}` has no type and no value yet: it is not loaded"
        for column in void
    ]
    columns = tuple(column for column in mapping.columns if column not in void)
    return replace(mapping, columns=columns, notes=(*mapping.notes, *notes))


def _only_rejects(table: TableSpec, rows: Rows, expected: ExpectedColumns) -> PreparedRows:
    """Return rejected records of a source whose columns nobody knows, such as those that stand for
    damaged files, under the columns that this pipeline's earlier loads have written."""
    names, _ = split_variants(expected.recorded)
    sources = {target: name for name, target in names.items() if target in expected.types}
    if not sources:
        raise LoadFailed(
            f"no file can be read, and the table has no columns yet: {'; '.join(rows.warnings)}",
            hint="replace the files, or load them with one that can be read",
        )
    keys = source_names(table.primary_key, sources.values()).values()
    key = tuple(target for target, name in sources.items() if name in keys)
    columns = tuple(LoadedColumn(name, target) for target, name in sources.items())
    types = {target: expected.types[target] for target in sources}
    frame = null_columns(frame_of(rows), types, deleted=table.deleted_when is not None)
    return PreparedRows.of(rows, ColumnMapping(columns, key), frame, rows.counts)


def _without_columns(rows: Rows, *, may_read: bool) -> PreparedRows:
    """An empty CSV or JSON file: no columns, and so no rows either."""
    if may_read and not is_empty(rows):
        raise LoadFailed(
            "the source has rows but no columns",
            hint="check `format`, and whether all records are empty",
        )
    return PreparedRows.none(rows)
