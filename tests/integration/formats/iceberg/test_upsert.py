"""Upserts: the latest version of each key, deletes marked or done, replaced on demand."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from lakeload_jobs.contract.result import RowChanges, SameKey
from lakeload_jobs.contract.spec import PartitionField, RunOptions, TableSpec
from lakeload_jobs.formats.iceberg.load import stage
from lakeload_jobs.rows.key_filter import KeyFilter
from tests.integration.formats.iceberg.conftest import Loads, Row

SETTINGS: dict[str, Any] = {
    "mode": "UPSERT",
    "primary_key": ("region", "id"),
    "cursor": "version",
    "deleted_when": "gone",
    "partition_by": (PartitionField("identity", "region"),),
}


def upsert(loads: Loads, rows: list[Row], **changes: Any) -> TableSpec:
    return loads.table(loads.file(rows), **(SETTINGS | changes))


def row(number: int, version: int, *, gone: bool = False, region: str = "eu") -> Row:
    return {
        "region": region,
        "id": number,
        "version": version,
        "name": f"n{number}v{version}",
        "gone": gone,
    }


def test_the_latest_version_of_each_key_wins(loads: Loads) -> None:
    first = loads.loaded(upsert(loads, [row(1, 1), row(1, 3), row(1, 2), row(2, 1), row(9, 1)]))
    second = loads.loaded(
        upsert(
            loads,
            [
                row(2, 2),
                row(3, 1),
                row(3, 1) | {"name": "the last one of equals"},
                row(1, 1, region="us"),
                row(9, 2, gone=True),
            ],
        )
    )

    assert first.changes == RowChanges(3, 0, 0, unchanged=0, ignored=0)
    assert [w for w in first.warnings if "later row" in w] == [
        "2 of 5 rows were replaced by later rows of this load with the same `primary_key`, such as "
        "`region` = eu, `id` = 1; if they are different records, it lacks a column"
    ]
    assert (first.same_key, second.same_key) == (
        SameKey(2, "`region` = eu, `id` = 1"),
        SameKey(1, "`region` = eu, `id` = 3"),
    )
    assert (second.rows, second.changes) == (5, RowChanges(2, 2, 0, unchanged=0, ignored=0))
    assert [row["name"] for row in loads.rows(order="name")] == [
        "n1v1",
        "n1v3",
        "n2v2",
        "n9v2",
        "the last one of equals",
    ]
    assert [r["_supa_deleted"] for r in loads.tracking()].count(True) == 1
    assert len(loads.read().metadata.refs) == 1


def test_upsert_with_hard_deletes_removes_deleted_rows(loads: Loads) -> None:
    loads.loaded(upsert(loads, [row(1, 1), row(2, 1)], deletes="DELETE"))

    result = loads.loaded(
        upsert(loads, [row(1, 2, gone=True), row(2, 2), row(7, 1, gone=True)], deletes="DELETE"),
        tracking_columns=("_supa_index",),
    )

    assert result.changes == RowChanges(0, 1, 1, unchanged=0, ignored=0)
    assert loads.rows() == [row(2, 2)]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The keys of each MERGE with a filter, for which a table of 1,000 rows is large."""
    told: list[tuple[str, ...]] = []
    condition = KeyFilter.condition

    def tell(self: KeyFilter, key: Sequence[str], argument: str) -> str:
        told.append(tuple(key))
        return condition(self, key, argument)

    monkeypatch.setattr(KeyFilter, "condition", tell)
    monkeypatch.setattr(stage, "LARGE_TABLE", 1_000)
    return told


def test_few_changes_of_a_large_table_are_filtered_by_key(
    loads: Loads, told: list[tuple[str, ...]]
) -> None:
    first = [row(number, 1) for number in range(1_000)]
    loads.loaded(upsert(loads, first))
    assert told == []

    changed = [row(7, 2), row(500, 2), row(999, 0), row(7, 2, region="us"), row(1_000, 1)]
    result = loads.loaded(upsert(loads, changed))
    assert result.changes == RowChanges(2, 2, 0, unchanged=0, ignored=1)
    # The hash of a number depends on its type.
    kinds: dict[str, pa.DataType] = {"region": pa.string(), "id": pa.int32()}
    kinds |= {"version": pa.int64(), "name": pa.string(), "gone": pa.bool_()}
    schema = pa.schema(list(kinds.items()))
    narrow = loads.table(loads.file([row(8, 2), row(1_001, 1)], schema), **SETTINGS)
    assert loads.loaded(narrow).changes == RowChanges(1, 1, 0, unchanged=0, ignored=0)

    assert set(told) == {("t.`region`", "t.`id`")}
    merged = [*first[:7], changed[0], changed[3], row(8, 2), *first[9:500], changed[1]]
    merged += [*first[501:], changed[4], row(1_001, 1)]
    assert sorted(loads.rows(), key=lambda one: (one["id"], one["region"])) == merged


def test_keys_without_bounds_are_filtered_too(loads: Loads, told: list[tuple[str, ...]]) -> None:
    """Spark hashes keys: no value of them comes back as one of Python's."""

    def keyed(number: int, version: int) -> Row:
        at = datetime(1969, 12, 31, tzinfo=UTC) + timedelta(minutes=number, microseconds=1)
        return row(number, version) | {"at": at, "code": f"c{number}".encode()}

    key = ("at", "code")
    loads.loaded(upsert(loads, [keyed(number, 1) for number in range(2_000)], primary_key=key))

    changed = [keyed(7, 2), keyed(1_999, 2), keyed(2_000, 1)]
    result = loads.loaded(upsert(loads, changed, primary_key=key))

    assert told == [("t.`at`", "t.`code`")]
    assert result.changes == RowChanges(1, 2, 0, unchanged=0, ignored=0)
    assert [one for one in loads.rows() if one["id"] in (7, 1_999, 2_000)] == changed


def test_a_table_of_format_version_3_is_appended_to_merged_and_replaced(loads: Loads) -> None:
    iceberg = replace(loads.destination.iceberg, format_version=3)
    loads.destination = replace(loads.destination, iceberg=iceberg)
    first = [row(number, 1) for number in range(8)]
    loads.loaded(loads.table(loads.file(first)))
    loads.loaded(upsert(loads, [row(1, 2, gone=True), row(2, 2), row(8, 1)], deletes="DELETE"))

    table = loads.read()
    assert table.metadata.format_version == 3
    name = f"lake.`{loads.schema}`.orders"
    deletes = loads.spark.table(f"{name}.delete_files").collect()
    assert [one.file_format for one in deletes] == ["PUFFIN"]
    merged = [first[0], row(2, 2), *first[3:], row(8, 1)]
    seen = loads.spark.table(name).select("id", "version").orderBy("id").collect()
    assert [tuple(one) for one in seen] == [(one["id"], one["version"]) for one in merged]
    assert loads.rows() == merged

    loads.loaded(loads.table(loads.file([row(5, 7)]), mode="OVERWRITE"))
    assert loads.rows() == [row(5, 7)]


def test_a_full_refresh_replaces_the_table_by_the_latest_versions(loads: Loads) -> None:
    loads.loaded(upsert(loads, [row(1, 1), row(2, 1)]))

    loads.loaded(upsert(loads, [row(5, 1), row(5, 2)]), options=RunOptions(full_refresh=True))

    assert loads.rows() == [row(5, 2)]


def test_a_full_refresh_replaces_columns_that_do_not_fit(loads: Loads) -> None:
    loads.loaded(upsert(loads, [row(1, 1), row(2, 1)], partition_by=None))
    rows = [row(5, 2) | {"id": "five", "name": 7}, row(6, 2) | {"id": "six", "name": 8}]

    result = loads.loaded(
        upsert(loads, rows, partition_by=None), options=RunOptions(full_refresh=True)
    )

    assert (result.error, loads.rows()) == (None, rows)
    assert loads.read().schema().identifier_field_names() == {"id", "region"}
    loads.loaded(upsert(loads, [rows[0] | {"version": 3, "name": 9}], partition_by=None))
    assert [one["name"] for one in loads.rows()] == [9, 8]


def test_upsert_float_key_or_null_in_key_is_rejected(loads: Loads) -> None:
    floats = loads.load(upsert(loads, [row(1, 1) | {"id": 1.5}]))
    nulls = loads.load(upsert(loads, [row(1, 1), row(1, 1) | {"id": None}], primary_key=("id",)))

    assert floats.error is not None
    assert "`id` is `double`" in floats.error.message
    assert nulls.error is not None
    assert "`id` is null" in nulls.error.message


def test_a_late_row_never_replaces_a_newer_one(loads: Loads) -> None:
    loads.loaded(upsert(loads, [row(1, 9), row(2, 5), row(3, 5), row(4, 5)]))

    late = loads.loaded(
        upsert(
            loads,
            [
                row(1, 1),
                row(2, 5) | {"name": "as new, and another"},
                row(3, 5) | {"version": None},
                row(4, 4, gone=True),
                row(5, 1),
            ],
        )
    )

    assert [one["name"] for one in loads.rows()] == [
        "n1v9",
        "as new, and another",
        "n3v5",
        "n4v5",
        "n5v1",
    ]
    assert [one["_supa_deleted"] for one in loads.tracking()].count(True) == 0
    assert late.changes == RowChanges(inserted=1, updated=1, deleted=0, unchanged=0, ignored=3)


def test_row_with_a_null_cursor_is_replaced_by_any_row(loads: Loads) -> None:
    loads.loaded(upsert(loads, [row(1, 1) | {"version": None}, row(2, 1) | {"version": None}]))

    changed = loads.loaded(
        upsert(loads, [row(1, -5), row(2, 1) | {"version": None, "name": "later"}])
    )

    assert [one["name"] for one in loads.rows()] == ["n1v-5", "later"]
    assert changed.changes == RowChanges(0, 2, 0, unchanged=0, ignored=0)


def test_late_delete_keeps_a_newer_row_and_a_deleted_row_stays_deleted(
    loads: Loads,
) -> None:
    loads.loaded(upsert(loads, [row(1, 5), row(2, 5)], deletes="DELETE"))
    removed = loads.loaded(
        upsert(
            loads,
            [row(1, 4, gone=True), row(2, 6, gone=True), row(7, 1, gone=True)],
            deletes="DELETE",
        )
    )
    assert loads.rows() == [row(1, 5)]
    assert removed.changes == RowChanges(0, 0, 1, unchanged=0, ignored=1)

    loads.loaded(upsert(loads, [row(1, 6, gone=True)]))
    again = loads.loaded(upsert(loads, [row(1, 5), row(2, 5)]))

    # Marked, it is compared; removed, there is nothing left to compare with.
    assert loads.rows() == [row(1, 6, gone=True), row(2, 5)]
    assert again.changes == RowChanges(1, 0, 0, unchanged=0, ignored=1)


def test_equal_rows_are_not_rewritten_and_their_job_is_committed(loads: Loads) -> None:
    rows = [
        row(1, 1) | {"note": {"a": [None, 1.5], "m": [("k", None), ("l", 2)]}},
        row(2, 2) | {"name": None, "note": None},
    ]
    note = [("a", pa.list_(pa.float64())), ("m", pa.map_(pa.string(), pa.int64()))]
    fields: list[pa.Field[Any]] = [
        pa.field("region", pa.string()),
        pa.field("id", pa.int64()),
        pa.field("version", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("gone", pa.bool_()),
        pa.field("note", pa.struct(note)),
    ]
    schema = pa.schema(fields)
    table = loads.table(loads.file(rows, schema), **SETTINGS)
    loads.loaded(table, nested="NATIVE")
    first = loads.tracking()
    files = {file.file.file_path for file in loads.read().scan().plan_files()}

    same = loads.loaded(table, nested="NATIVE")

    assert same.changes == RowChanges(0, 0, 0, unchanged=2, ignored=0)
    assert loads.tracking() == first
    assert {file.file.file_path for file in loads.read().scan().plan_files()} == files
    assert same.snapshot_id == loads.read().metadata.current_snapshot_id
    assert loads.last is not None
    again = loads.run(replace(loads.last, attempt_id=str(uuid.uuid4())))
    assert [one.status for one in again.tables] == ["NO_OP"]
    assert again.tables[0].snapshot_id == same.snapshot_id

    changed = [{**rows[0], "note": {"a": [None, 1.5], "m": [("k", 3), ("l", 2)]}}, rows[1]]
    other = loads.loaded(loads.table(loads.file(changed, schema), **SETTINGS), nested="NATIVE")
    assert other.changes == RowChanges(0, 1, 0, unchanged=1, ignored=0)


def test_row_with_a_changed_delete_mark_is_written_although_its_data_is_equal(
    loads: Loads,
) -> None:
    rows = [row(1, 1), row(2, 1)]
    loads.loaded(upsert(loads, rows, deleted_when="id = 1"))
    marked = loads.loaded(upsert(loads, rows, deleted_when="id = 2"))

    assert marked.changes == RowChanges(0, 2, 0, unchanged=0, ignored=0)
