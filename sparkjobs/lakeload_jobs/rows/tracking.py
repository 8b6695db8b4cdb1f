"""The five tracking columns, added to Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import pyarrow as pa

from lakeload_jobs.contract.spec import TRACKING_COLUMNS, TRACKING_TYPES
from lakeload_jobs.rows.arrow import Column, pc
from lakeload_jobs.rows.row_id import row_ids

HELPER_PREFIX = "__lakeload_"
"""Columns the Spark side hands over beside the data; they are never written. No source column
is called so: runs of underscores collapse in target names."""

DELETED_HELPER = HELPER_PREFIX + "deleted"
"""Boolean: what `deleted_when` says of the row."""

BAD_VALUES_HELPER = HELPER_PREFIX + "bad_values"
"""Integer: how many values of the row became null because `on_bad_value` is NULL."""

KEY_ONLY_HELPER = HELPER_PREFIX + "key_only"
"""Boolean: this is no row of the load, but the key of a row that the source has."""

PLACE_HELPER = HELPER_PREFIX + "place"
"""Struct: `source_file`, `row_group` and `row_number` that a row is from, the latter two null where
nobody knows; `rows.casts.cast_types` ends it."""

POSITION_BITS = 33
"""An index with gaps is the number of the partition above, and the position in it in so many bits:
Spark's `monotonically_increasing_id`."""

_SYNCED_TYPE = pa.timestamp("us", tz="UTC")

_KINDS: dict[str, pa.DataType] = {
    "timestamp": _SYNCED_TYPE,
    "boolean": pa.bool_(),
    "bigint": pa.int64(),
    "string": pa.string(),
}
ARROW_TYPES: dict[str, pa.DataType] = {name: _KINDS[kind] for name, kind in TRACKING_TYPES.items()}


def tracked_schema(data: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """Return the schema that `add_tracking` gives batches of schema `data`."""
    fields = [field for field in data if not field.name.startswith(HELPER_PREFIX)]
    added = [pa.field(name, ARROW_TYPES[name]) for name in TRACKING_COLUMNS if name in columns]
    return pa.schema([*fields, *added])


def add_tracking(
    batch: pa.RecordBatch,
    *,
    first_index: int,
    synced: datetime,
    job_id: str,
    key_columns: Sequence[str],
    deleted: str | None = None,
    columns: Sequence[str] = TRACKING_COLUMNS,
) -> pa.RecordBatch:
    """Return the batch with the tracking columns `columns` at its end and without helpers. Those
    that it has already stay.

    The first row gets `_supa_index` `first_index`. `key_columns` are target names; without any,
    all data columns make `_supa_id`. `deleted` is a boolean column; null means not deleted.
    """
    count = batch.num_rows
    schema = tracked_schema(batch.schema, columns)
    data = [field.name for field in schema if field.name not in ARROW_TYPES]
    makers: dict[str, Callable[[], Column]] = {
        "_supa_synced": lambda: pa.repeat(pa.scalar(synced, _SYNCED_TYPE), count),
        "_supa_deleted": lambda: _deleted(batch, deleted),
        "_supa_index": lambda: pa.arange(first_index, first_index + count),  # type: ignore[attr-defined]
        "_supa_id": lambda: row_ids([batch.column(name) for name in key_columns or data]),
        "_supa_job_id": lambda: pa.repeat(pa.scalar(job_id), count),
    }
    arrays = [
        makers[field.name]() if field.name in columns else batch.column(field.name)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def bad_values(batch: pa.RecordBatch) -> int:
    """Return how many values of the batch became null under `on_bad_value: NULL`."""
    if BAD_VALUES_HELPER not in batch.schema.names:
        return 0
    return int(pc.sum(batch.column(BAD_VALUES_HELPER)).as_py() or 0)


def _deleted(batch: pa.RecordBatch, deleted: str | None) -> Column:
    if deleted is None:
        return pa.repeat(pa.scalar(value=False), batch.num_rows)
    return pc.fill_null(batch.column(deleted), fill_value=False)
