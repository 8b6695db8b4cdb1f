"""Rows that the source no longer has, by the keys of the table that are not among its keys."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import TRACKING_TYPES, JobSpec, RejectLimit, TableSpec
from lakeload_jobs.formats.base import PreparedRows
from lakeload_jobs.formats.spool import unpersist
from lakeload_jobs.rows.casts import quoted, without_null_keys, written_frame
from lakeload_jobs.rows.columns import ColumnMapping
from lakeload_jobs.rows.tracking import HELPER_PREFIX

_VERSION = HELPER_PREFIX + "version"
_SOURCE = HELPER_PREFIX + "source"
_ORDER = ("_supa_synced", "_supa_index", "_supa_deleted")
"""What orders the rows of a key, and says of the newest whether it is deleted."""


class TooManyDeleted(LoadFailed):
    """More rows would be deleted than `max_deleted` allows."""


@dataclass(frozen=True)
class DeletedKeys:
    """The keys that are deleted, one a row, in one partition on Spark's disks; close them.

    `frame` has the columns of the key, by their names in the table."""

    frame: DataFrame
    rows: int

    def close(self) -> None:
        """Give back the disk."""
        unpersist(self.frame)


def source_keys(
    spec: JobSpec,
    table: TableSpec,
    prepared: PreparedRows,
    mapping: ColumnMapping,
    *,
    lower: bool,
) -> DataFrame:
    """Return the key of every row of the source, under the names that it has in the table. A null
    in it fails with `InvalidInput` when it is read.

    Raises `LoadFailed` for a source that cannot tell the keys of all rows.
    """
    columns = tuple(column for column in mapping.columns if column.target in mapping.key)
    if prepared.rows.keys is None or not columns:
        raise LoadFailed(
            f"`detect_deletes`: the keys of all rows of `{table.source}` cannot be read",
            hint="remove `detect_deletes`",
        )
    frame = prepared.rows.keys([column.source for column in columns])
    only = ColumnMapping(columns, mapping.key)
    keys = written_frame(frame, only, nested=spec.nested, lower=lower)
    return without_null_keys(keys, mapping.key, table.source)


def newest_keys(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """Return the keys of a table of many versions whose newest row is not deleted."""
    parts = [
        F.col(name) if name in rows.columns else F.lit(None).cast(TRACKING_TYPES[name])
        for name in _ORDER
    ]
    version = F.struct(*(part.alias(name) for name, part in zip(_ORDER, parts, strict=True)))
    newest = rows.groupBy(*map(quoted, key)).agg(F.max(version).alias(_VERSION))
    deleted = F.coalesce(F.col(_VERSION).getField("_supa_deleted"), F.lit(False))
    return newest.where(~deleted).drop(_VERSION)


def find_deleted(
    live: DataFrame, keys: DataFrame, key: Sequence[str], limit: RejectLimit, target: str
) -> DeletedKeys | None:
    """Return the keys of `live`, those of the table's rows that are not deleted, that are not among
    `keys`, the source's; None for none. A row of the table without a key stays.

    Raises `TooManyDeleted`.
    """
    names = [quoted(name) for name in key]
    live = live.select(*names).dropna()
    there = keys.select(*names).toDF(*(f"{_SOURCE}_{place}" for place in range(len(key))))
    same: list[Column] = [
        live[name] == there[f"{_SOURCE}_{place}"] for place, name in enumerate(names)
    ]
    gone = live.join(there, functools.reduce(operator.and_, same), "left_anti").distinct()
    kept = gone.repartition(1).localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY)
    found = DeletedKeys(kept, kept.count())
    try:
        if found.rows:
            _check(found.rows, live, keys, limit, target)
    except BaseException:
        found.close()
        raise
    if found.rows:
        return found
    found.close()
    return None


def _check(rows: int, live: DataFrame, keys: DataFrame, limit: RejectLimit, target: str) -> None:
    if limit.rows is None and limit.percent == 100:
        return
    of = live.distinct().count()
    if rows == of and keys.isEmpty():
        raise TooManyDeleted(
            f"the source has no rows, and all {of:,} rows of `{target}` would be deleted",
            hint="check the source; to delete all rows, set `max_deleted: 100 %`",
        )
    if not limit.allows(rows, of):
        raise TooManyDeleted(
            f"the source no longer has {rows:,} of the {of:,} keys of `{target}` "
            f"({100 * rows / of:.3g} %), and `max_deleted` is {limit}: nothing was deleted",
            hint="check that the source is complete; if these rows were deleted, raise "
            "`max_deleted`",
        )
