"""Hints about tables, followed literally: the setting that each names lets the rows be loaded."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from lakeload.config.yaml_tree import own_yaml
from lakeload_jobs.contract.spec import ColumnsSpec, PartitionField, TableSpec
from lakeload_jobs.formats.iceberg.rules.partitions import parse_partition_field
from tests.integration.formats.iceberg.conftest import Loads
from tests.integration.formats.worlds import IcebergWorld, World, load

_FIELDS: dict[str, Callable[[Any], Any]] = {
    "partition_by": lambda given: tuple(map(parse_partition_field, given)),
    "columns": lambda given: ColumnsSpec(
        exclude=tuple(given.get("exclude", ())), rename=given.get("rename")
    ),
    "columns.types": lambda given: ColumnsSpec(types=given),
}


class Walk:
    """Loads into one table, each first as it is refused and then as its hint says."""

    def __init__(self, world: World, **settings: Any) -> None:
        self.world, self.settings, self.number = world, settings, 0

    def table(self, rows: list[dict[str, Any]], **changes: Any) -> TableSpec:
        """Return the spec of a new file."""
        self.number += 1
        path = self.world.file(f"{self.number}.parquet", rows)
        return self.world.table(path, **{**self.settings, **changes})

    def loads(self, table: TableSpec) -> None:
        """Load a table without an error."""
        assert load(self.world, table, nested="NATIVE").error is None

    def refused(self, table: TableSpec) -> str:
        """Return the hint of a load that fails."""
        result = load(self.world, table, nested="NATIVE")
        assert result.error is not None
        return result.error.hint or ""

    def follow(self, table: TableSpec, line: str, *, value: str = "") -> None:
        """Load the table with the line of the hint that begins so; `value` fills it in."""
        hint = self.refused(table)
        found = re.search(rf"`({re.escape(line)}[^`]*)`", hint)
        assert found is not None, hint
        ((key, given),) = own_yaml(found[1].replace("…", value)).items()
        field = key.partition(".")[0]
        changes: dict[str, Any] = {field: _FIELDS.get(key, str)(given)}
        self.loads(replace(table, **changes))


def test_hints_about_columns_are_followed_and_load(world: World) -> None:
    walk = Walk(world)
    walk.loads(walk.table([{"id": 1, "A": {"x": 1}, "yes: no": 1}]))

    more = walk.table([{"id": 2, "new, one": 1}], schema_changes="FAIL")
    assert "with `columns.exclude`" in walk.refused(more)
    walk.loads(replace(more, columns=ColumnsSpec(exclude=("new, one",))))
    walk.follow(walk.table([{"id": 3, "new, one": 1}], schema_changes="FAIL"), "schema_changes: ")

    field = walk.table([{"id": 4, "A": {"x": 1, "y": 1}}], schema_changes="FAIL")
    walk.follow(field, "columns: {exclude: ")
    field = walk.table([{"id": 5, "A": {"x": 1, "y": 1}}], schema_changes="FAIL")
    walk.follow(field, "schema_changes: ")

    walk.follow(walk.table([{"id": 6, "-pos": 1}]), "columns: {rename: ", value="place")
    walk.follow(walk.table([{"id": 7, "yes: no": 1.0}]), "columns.types: ")
    walk.follow(walk.table([{"id": 8, "yes: no": "t"}]), "on_type_conflict: ")

    assert sorted(row["id"] for row in world.rows()) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_hints_about_keys_and_partitions_are_followed_and_load(
    loads: Loads, monkeypatch: pytest.MonkeyPatch
) -> None:
    iceberg = IcebergWorld(loads, monkeypatch.setattr)
    walk = Walk(iceberg, mode="UPSERT", primary_key=("id",))
    fields = (PartitionField("bucket", "a, b", 2), PartitionField("identity", "r"))
    row = {"id": 1, "a, b": 1, "r": "eu"}
    walk.loads(walk.table([row], partition_by=fields))

    other = walk.table([row | {"id": 2}], partition_by=fields[1:], schema_changes="FAIL")
    walk.follow(other, "partition_by: ")
    other = walk.table([row | {"id": 3}], partition_by=fields[1:], schema_changes="FAIL")
    walk.follow(other, "schema_changes: ")

    walk.follow(walk.table([row | {"id": 4}] * 2, on_same_key="FAIL"), "on_same_key: ")
    walk.follow(walk.table([row | {"id": "5"}]), "columns.types: ")

    null = walk.table([row | {"id": 6}, row | {"id": None}])
    assert "exclude such rows with `where`" in walk.refused(null)
    walk.loads(replace(null, where="id IS NOT NULL"))
    left_out = walk.table([row | {"id": 7}], columns=ColumnsSpec(exclude=("id",)))
    assert "remove it from `exclude`" in walk.refused(left_out)
    walk.loads(replace(left_out, columns=ColumnsSpec()))

    walk.follow(walk.table([row | {"id": 8, "_spec_id": 1}]), "columns: {rename: ", value="spec")

    assert sorted(row["id"] for row in iceberg.rows()) == [1, 2, 3, 4, 5, 6, 7, 8]
