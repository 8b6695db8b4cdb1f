"""The five tracking columns as Spark expressions, for writers that stay in the JVM (F62-F66)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakeload_jobs.contract.spec import TRACKING_COLUMNS
from lakeload_jobs.rows.row_id_sql import row_id
from lakeload_jobs.rows.tracking import DELETED_HELPER, HELPER_PREFIX

TRACKING_SQL_TYPES: dict[str, T.DataType] = {
    "_supa_synced": T.TimestampType(),
    "_supa_deleted": T.BooleanType(),
    "_supa_index": T.LongType(),
    "_supa_id": T.StringType(),
    "_supa_job_id": T.StringType(),
}

_POSITION_BITS = 33
"""Spark's monotonically increasing id is the partition above and the position in it below."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def with_tracking(
    frame: DataFrame,
    *,
    counts: Sequence[int],
    synced: datetime,
    job_id: str,
    key_columns: Sequence[str],
    columns: Sequence[str] = TRACKING_COLUMNS,
) -> DataFrame:
    """Return the frame with the tracking columns `columns` behind its data columns.

    `counts` are the rows of each partition of `frame`, as they were counted. Helpers stay, at the
    end. `key_columns` are target names; without any, all data columns make `_supa_id`.
    """
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    data = [name for name in frame.columns if not name.startswith(HELPER_PREFIX)]
    helpers = [name for name in frame.columns if name.startswith(HELPER_PREFIX)]
    makers: dict[str, Callable[[], Column]] = {
        "_supa_synced": lambda: F.timestamp_micros(F.lit(_micros(synced))),
        "_supa_deleted": lambda: deleted(frame),
        "_supa_index": lambda: _index(counts),
        "_supa_id": lambda: row_id([(F.col(name), kinds[name]) for name in key_columns or data]),
        "_supa_job_id": lambda: F.lit(job_id),
    }
    tracked = [makers[name]().alias(name) for name in TRACKING_COLUMNS if name in columns]
    return frame.select(*data, *tracked, *helpers)


def deleted(frame: DataFrame) -> Column:
    """Return whether the source says that a row is deleted."""
    if DELETED_HELPER not in frame.columns:
        return F.lit(False)
    return F.coalesce(F.col(DELETED_HELPER), F.lit(False))


def _index(counts: Sequence[int]) -> Column:
    """Number rows from 1: those of the partitions before, and the position in this one."""
    position = F.monotonically_increasing_id().bitwiseAND(F.lit((1 << _POSITION_BITS) - 1))
    if len(counts) <= 1:
        return position + F.lit(1)
    before = [sum(counts[:number]) + 1 for number in range(len(counts))]
    first = F.array(*(F.lit(number).cast("long") for number in before))
    return F.get(first, F.spark_partition_id()) + position


def _micros(instant: datetime) -> int:
    return (instant - _EPOCH) // timedelta(microseconds=1)
