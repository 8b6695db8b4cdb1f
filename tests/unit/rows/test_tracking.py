"""The five tracking columns of a batch."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from lakeload_jobs.contract.spec import TRACKING_COLUMNS
from lakeload_jobs.rows.row_id import row_ids
from lakeload_jobs.rows.tracking import (
    BAD_VALUES_HELPER,
    DELETED_HELPER,
    add_tracking,
    bad_values,
    tracked_schema,
)

SYNCED = datetime(2026, 11, 21, 10, 15, 30, 123456, tzinfo=UTC)
BATCH = pa.record_batch(
    {"id": pa.array([7, 8, 9]), "name": pa.array(["a", None, "c"]), "flag": [True, None, False]}
)


def _tracked(batch: pa.RecordBatch, **changes: Any) -> pa.RecordBatch:
    settings: dict[str, Any] = {"first_index": 1, "key_columns": ["id"], **changes}
    tracked = add_tracking(batch, synced=SYNCED, job_id="job-1", **settings)
    tracked.validate(full=True)
    return tracked


def test_all_five_columns_follow_the_data_in_their_order() -> None:
    tracked = _tracked(BATCH, first_index=41)
    assert tracked.schema.names == ["id", "name", "flag", *TRACKING_COLUMNS]
    assert tracked.select(BATCH.schema.names).equals(BATCH)
    assert tracked.column("_supa_synced").to_pylist() == [SYNCED] * 3
    assert tracked.column("_supa_deleted").to_pylist() == [False] * 3
    assert tracked.column("_supa_index").to_pylist() == [41, 42, 43]
    assert tracked.column("_supa_id").equals(row_ids([BATCH.column("id")]))
    assert tracked.column("_supa_job_id").to_pylist() == ["job-1"] * 3


def test_tracking_columns_have_the_documented_types() -> None:
    types = {field.name: field.type for field in _tracked(BATCH).schema}
    assert types["_supa_synced"] == pa.timestamp("us", tz="UTC")
    assert types["_supa_deleted"] == pa.bool_()
    assert types["_supa_index"] == pa.int64()
    assert types["_supa_id"] == types["_supa_job_id"] == pa.string()


def test_the_schema_is_known_before_the_first_batch() -> None:
    assert tracked_schema(BATCH.schema, TRACKING_COLUMNS) == _tracked(BATCH).schema


def test_without_a_key_all_data_columns_make_the_id() -> None:
    ids = _tracked(BATCH, key_columns=[]).column("_supa_id")
    assert ids.equals(row_ids(BATCH.columns))


def test_the_key_is_taken_in_its_own_order() -> None:
    ids = _tracked(BATCH, key_columns=["name", "id"]).column("_supa_id")
    assert ids.equals(row_ids([BATCH.column("name"), BATCH.column("id")]))


def test_deleted_is_false_where_the_source_does_not_say() -> None:
    tracked = _tracked(BATCH, deleted="flag")
    assert tracked.column("_supa_deleted").to_pylist() == [True, False, False]
    assert "flag" in tracked.schema.names


def test_helper_columns_are_dropped_and_excluded_from_the_id() -> None:
    helped = BATCH.append_column(DELETED_HELPER, pa.array([None, True, False]))
    helped = helped.append_column(BAD_VALUES_HELPER, pa.array([0, 2, 1], pa.int32()))
    tracked = _tracked(helped, deleted=DELETED_HELPER, key_columns=[])
    assert tracked.schema == _tracked(BATCH).schema
    assert tracked.column("_supa_deleted").to_pylist() == [False, True, False]
    assert tracked.column("_supa_id").equals(row_ids(BATCH.columns))
    assert bad_values(helped) == 3
    assert bad_values(helped.slice(0, 0)) == bad_values(BATCH) == 0


@pytest.mark.parametrize(
    "columns", [(), ("_supa_id",), ("_supa_job_id", "_supa_synced"), TRACKING_COLUMNS]
)
def test_a_subset_is_added_in_the_order_of_all(columns: tuple[str, ...]) -> None:
    tracked = _tracked(BATCH, columns=columns)
    assert tracked.schema.names[3:] == [name for name in TRACKING_COLUMNS if name in columns]


def test_an_empty_batch_gets_empty_columns() -> None:
    tracked = _tracked(BATCH.slice(0, 0))
    assert tracked.num_rows == 0
    assert tracked.schema == _tracked(BATCH).schema


def test_an_index_beyond_32_bits_is_kept() -> None:
    assert _tracked(BATCH, first_index=1 << 40).column("_supa_index").to_pylist()[0] == 1 << 40
