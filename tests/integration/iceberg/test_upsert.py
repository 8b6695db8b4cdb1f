"""Upserts: the latest version of each key, deletes marked or done, replaced on demand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lakeload_jobs.contract.result import RowChanges
from lakeload_jobs.contract.spec import PartitionField, RunOptions, TableSpec
from tests.integration.iceberg.conftest import Loads, Row


def upsert(loads: Loads, rows: list[Row], **changes: Any) -> TableSpec:
    settings: dict[str, Any] = {
        "mode": "UPSERT",
        "primary_key": ("region", "id"),
        "cursor": "version",
        "deleted_when": "gone",
        "partition_by": (PartitionField("identity", "region"),),
    }
    return loads.table(loads.file(rows), **(settings | changes))


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

    assert first.changes == RowChanges(inserted=3, updated=0, deleted=0)
    assert (second.rows, second.changes) == (5, RowChanges(inserted=2, updated=2, deleted=0))
    assert [row["name"] for row in loads.rows(order="name")] == [
        "n1v1",
        "n1v3",
        "n2v2",
        "n9v2",
        "the last one of equals",
    ]
    assert [r["_supa_deleted"] for r in loads.tracking()].count(True) == 1
    assert len(loads.read().metadata.refs) == 1


def test_deleted_rows_leave_the_table_where_the_load_says_so(loads: Loads) -> None:
    loads.loaded(upsert(loads, [row(1, 1), row(2, 1)], deletes="DELETE"))

    result = loads.loaded(
        upsert(loads, [row(1, 2, gone=True), row(2, 2), row(7, 1, gone=True)], deletes="DELETE"),
        tracking_columns=("_supa_index",),
    )

    assert result.changes == RowChanges(inserted=0, updated=1, deleted=1)
    assert loads.rows() == [row(2, 2)]


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


def test_a_key_of_floats_is_refused_and_a_null_in_the_key_too(loads: Loads) -> None:
    floats = loads.load(upsert(loads, [row(1, 1) | {"id": 1.5}]))
    nulls = loads.load(upsert(loads, [row(1, 1), row(1, 1) | {"id": None}], primary_key=("id",)))

    assert floats.error is not None
    assert "`id` is `double`" in floats.error.message
    assert nulls.error is not None
    assert "`id` is null" in nulls.error.message
