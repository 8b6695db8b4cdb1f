"""Columns that come, grow and go, and a table that somebody moved."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any, Literal

import pyarrow as pa
import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import Mode, RunOptions
from lakeload_jobs.formats.iceberg.load import write
from lakeload_jobs.formats.iceberg.load.branches import drop_branch
from lakeload_jobs.formats.iceberg.load.publish import Publish
from tests.integration.formats.iceberg.conftest import Loads


def test_columns_are_added_and_widened_and_removed_ones_stay(loads: Loads) -> None:
    narrow_fields: list[pa.Field[Any]] = [
        pa.field("id", pa.int32()),
        pa.field("price", pa.decimal128(6, 2)),
        pa.field("ratio", pa.float32()),
        pa.field("old", pa.string()),
        pa.field("place", pa.struct([("city", pa.string()), ("zip", pa.int32())])),
    ]
    narrow = pa.schema(narrow_fields)
    wide_fields: list[pa.Field[Any]] = [
        pa.field("id", pa.int64()),
        pa.field("price", pa.decimal128(10, 2)),
        pa.field("ratio", pa.float64()),
        pa.field("place", pa.struct([("street", pa.string()), ("ZIP", pa.int64())])),
        pa.field("new", pa.string()),
    ]
    wide = pa.schema(wide_fields)
    one = {"id": 1, "price": Decimal("1.50"), "ratio": 0.5, "old": "a"}
    two = {"id": 5_000_000_000, "price": Decimal("12345678.25"), "ratio": 0.25, "new": "b"}
    loads.loaded(
        loads.table(loads.file([one | {"place": {"city": "x", "zip": 1}}], narrow)), nested="NATIVE"
    )

    result = loads.loaded(
        loads.table(loads.file([two | {"place": {"street": "y", "ZIP": 2}}], wide)), nested="NATIVE"
    )

    assert any("`old` is no longer in the source" in warning for warning in result.warnings)
    assert loads.rows() == [
        one | {"new": None, "place": {"city": "x", "zip": 1, "street": None}},
        two | {"old": None, "place": {"city": None, "zip": 2, "street": "y"}},
    ]


def test_a_change_that_the_policy_forbids_names_the_column_and_changes_nothing(
    loads: Loads,
) -> None:
    loads.loaded(loads.table(loads.file([{"id": 1}])))

    added = loads.load(loads.table(loads.file([{"id": 2, "b": 1}])), schema_changes="FAIL")
    typed = loads.load(loads.table(loads.file([{"id": "x"}])))

    assert added.error is not None
    assert "`b`" in added.error.message
    assert typed.error is not None
    assert "`id`" in typed.error.message
    assert loads.rows() == [{"id": 1}]
    assert list(loads.read().metadata.refs) == ["main"]


def test_new_key_replaces_the_old_one(loads: Loads) -> None:
    rows = [{"a": 1, "b": 2, "id": 1}]
    loads.loaded(loads.table(loads.file(rows), primary_key=("a",)))

    loads.loaded(
        loads.table(loads.file(rows), primary_key=("a", "b"), mode="OVERWRITE"),
        options=RunOptions(full_refresh=True),
    )

    assert loads.read().schema().identifier_field_names() == {"a", "b"}


def test_a_new_key_needs_rows_that_have_it(loads: Loads) -> None:
    loads.loaded(loads.table(loads.file([{"id": 1, "b": None}, {"id": 2, "b": 7}])))
    more = [{"id": 3, "b": 8}]

    refused = loads.load(loads.table(loads.file(more), primary_key=("id", "b"), mode="UPSERT"))
    kept = loads.loaded(loads.table(loads.file(more), primary_key=("id", "b")))
    more = [{"id": 3, "b": 9}]
    taken = loads.loaded(loads.table(loads.file(more), primary_key=("id",), mode="UPSERT"))

    assert refused.error is not None
    assert "has 1 row with null in `b`" in refused.error.message
    assert any("stay as they are" in note for note in kept.notes)
    assert taken.changes is not None
    assert (taken.changes.inserted, taken.changes.updated) == (0, 1)
    assert loads.read().schema().identifier_field_names() == {"id"}


def test_new_key_is_the_sort_order_too(loads: Loads) -> None:
    def sorted_by(name: str) -> list[str]:
        table = loads.read(name)
        schema, order = table.schema(), table.sort_order()
        return [schema.find_column_name(field.source_id) or "" for field in order.fields]

    rows = [{"a": 1, "b": 2, "c": 3}]
    for name in ("orders", "own"):
        table = loads.table(loads.file(rows), name=name, primary_key=("a",), mode="UPSERT")
        loads.loaded(table)
    loads.spark.sql(f"ALTER TABLE lake.`{loads.schema}`.own WRITE LOCALLY ORDERED BY c DESC")

    for name in ("orders", "own"):
        key = {"primary_key": ("b", "a"), "mode": "UPSERT"}
        loads.loaded(loads.table(loads.file(rows), name=name, **key))

    # An order that another has given to the table stays.
    assert (sorted_by("orders"), sorted_by("own")) == (["b", "a"], ["c"])
    assert loads.read().schema().identifier_field_names() == {"a", "b"}


def test_first_run_rejects_the_table_of_another_pipeline(loads: Loads) -> None:
    loads.loaded(loads.table(loads.file([{"id": 1}])))

    refused = loads.load(loads.table(loads.file([{"id": 2}])), pipeline="other")
    taken = loads.loaded(
        loads.table(loads.file([{"id": 3}])),
        pipeline="other",
        options=RunOptions(table_handling="APPEND"),
    )

    assert refused.error is not None
    assert "first run of pipeline `other`" in refused.error.message
    assert taken.rows == 1
    assert loads.rows() == [{"id": 1}, {"id": 3}]


def test_invalid_key_and_property_settings_are_named(loads: Loads) -> None:
    reserved = loads.load(
        loads.table(loads.file([{"id": 1}]), table_properties={"lakeload.seq": "9"})
    )
    cursor = loads.load(replace(loads.table(loads.file([{"id": 1}])), cursor="nope"))

    assert reserved.error is not None
    assert "`lakeload.seq`" in reserved.error.message
    assert cursor.error is not None
    assert "`nope`" in cursor.error.message


@pytest.mark.parametrize(
    ("mode", "other"), [("APPEND", {}), ("OVERWRITE", {}), ("OVERWRITE", {"old": "y"})]
)
@pytest.mark.parametrize("version", [2, 3])
def test_columns_change_with_the_rows_or_not_at_all(
    loads: Loads,
    monkeypatch: pytest.MonkeyPatch,
    mode: Mode,
    other: dict[str, str],
    version: Literal[2, 3],
) -> None:
    iceberg = replace(loads.destination.iceberg, format_version=version)
    loads.destination = replace(loads.destination, iceberg=iceberg)
    loads.loaded(loads.table(loads.file([{"id": 1, "old": 1}]), mode=mode))
    before = loads.read().metadata.schemas
    second = loads.table(loads.file([{"id": 2, "new": "x", **other}]), mode=mode)

    def refuse(given: Publish) -> None:
        drop_branch(given.tables, given.schema, given.table, given.staged.branch)
        raise LoadFailed("it may not be published")

    with monkeypatch.context() as patch:
        patch.setattr(write, "publish", refuse)
        failed = loads.load(second)
    assert failed.error is not None
    assert loads.read().metadata.schemas == before

    result = loads.loaded(second)

    table, snapshot = loads.read(), loads.read().current_snapshot()
    kept = [{"id": 1, "old": 1, "new": None}] if mode == "APPEND" else []
    assert loads.rows() == [*kept, {"id": 2, "old": None, "new": "x", **other}]
    assert (result.rows, len(result.files)) == (1, 1)
    assert snapshot is not None
    assert snapshot.schema_id == table.metadata.current_schema_id
