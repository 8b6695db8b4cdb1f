"""What a load changes in the definition of its table, and when it does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import types as T

from lakeload.launch.run_folder import RunFolder
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import JobSpec, PartitionField, TableSpec
from lakeload_jobs.formats.base import RetryLoad
from lakeload_jobs.formats.iceberg.commits.definitions import order_of
from lakeload_jobs.formats.iceberg.commits.metadata import (
    Json,
    assert_definition,
    check,
    schema_of,
    spec_of,
    updated,
)
from lakeload_jobs.formats.iceberg.load.definition import definition
from lakeload_jobs.formats.iceberg.load.evolution import (
    TableChanges,
    plan_changes,
    requirements,
)
from lakeload_jobs.formats.iceberg.rules.facts import table_facts
from tests.unit.formats.iceberg.commits.evolutions import (
    ORDERS,
    Step,
    column,
    evolve,
    list_of,
    struct,
    table,
)
from tests.unit.formats.iceberg.rules.table import JOB
from tests.unit.launch.specs import job_spec

STAGING = "lakeload_shop"
DAY, REGION = PartitionField("day", "at"), PartitionField("identity", "region")
SNAPSHOT: Json = {"snapshot-id": 7, "timestamp-ms": 1, "summary": {"total-records": "3"}}


def columns(**kinds: T.DataType) -> T.StructType:
    return T.StructType([T.StructField(name, kind) for name, kind in kinds.items()])


LOADED = columns(
    id=T.LongType(), at=T.TimestampType(), region=T.StringType(), name=T.StringType(),
    price=T.DecimalType(10, 2), ratio=T.FloatType(), count=T.IntegerType(),
)  # fmt: skip
PLAIN = ORDERS[:7]


@dataclass
class Load:
    """A load into a table, planned on its metadata."""

    folder: Path
    metadata: Json
    columns: T.StructType = LOADED
    key: tuple[str, ...] = ()
    mode: Any = "APPEND"
    partition_by: tuple[PartitionField, ...] | None = None
    comment: str = ""
    bloom_filters: tuple[str, ...] = ()
    nulls: dict[str, int] = field(default_factory=dict)
    asked: list[tuple[str, ...]] = field(default_factory=list)
    """The columns whose nulls were counted."""

    @property
    def spec(self) -> JobSpec:
        return replace(job_spec(RunFolder(self.folder)), schema_changes="EVOLVE")

    @property
    def table(self) -> TableSpec:
        return replace(self.spec.tables[0], mode=self.mode)

    @property
    def changes(self) -> TableChanges:
        """What the load changes in the table as it is in `metadata`."""
        fitted: Any = SimpleNamespace(
            key=self.key,
            partition_by=self.partition_by,
            bloom_filters=self.bloom_filters,
            prepared=SimpleNamespace(misfits={}),
        )
        made = definition(
            self.spec, self.table, self.columns, self.key, self.partition_by or (), self.comment
        )
        facts = table_facts(self.metadata, None)

        def nulls(names: Sequence[str]) -> dict[str, int]:
            self.asked.append(tuple(names))
            return {name: self.nulls.get(name, 0) for name in names}

        plan = plan_changes(self.spec, self.table, facts, fitted, made, nulls)
        return TableChanges(self.table, "main", JOB, facts, fitted, made, plan)


def previewed(given: Load | TableChanges, metadata: Json) -> Json:
    """Return the metadata with the changes, of which there are some."""
    changes = given.changes if isinstance(given, Load) else given
    found = changes.preview(metadata)
    assert found is not None
    return dict(found)


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Load]:
    def made(metadata: Json | None = None, **given: Any) -> Load:
        return Load(tmp_path, table(PLAIN) if metadata is None else metadata, **given)

    return made


def after(metadata: Json, *steps: Step) -> Json:
    return updated(metadata, evolve(metadata, steps), replaces=None, now_ms=0)


def with_rows(metadata: Json, **refs: int) -> Json:
    at = {name: {"snapshot-id": 7, "type": "branch"} for name in ("main", *refs)}
    return {**metadata, "snapshots": [SNAPSHOT], "refs": at, "current-snapshot-id": 7}


def test_a_load_that_fits_changes_nothing(load: Callable[..., Load]) -> None:
    given = load()
    assert given.changes.updates(given.metadata, STAGING) == []
    assert given.changes.preview(given.metadata) is None
    assert given.changes.publish(given.metadata, STAGING, given.metadata) == []


def test_new_columns_are_added_and_types_widened(load: Callable[..., Load]) -> None:
    nested = T.StructType([T.StructField("x", T.LongType(), metadata={"comment": "inner"})])
    wider = columns(
        id=T.LongType(), Region=T.StringType(), count=T.LongType(), ratio=T.DoubleType(),
        price=T.DecimalType(12, 2), places=T.ArrayType(nested),
    )  # fmt: skip
    wider.fields[-1].metadata = {"comment": "where"}
    before = after(table(PLAIN), ("add", ("more",), "int"), ("delete", "more"))
    given = load(before, columns=wider)
    now = previewed(given, before)
    fields = {one["name"]: one for one in schema_of(now)["fields"]}
    assert [fields[name]["type"] for name in ("count", "ratio", "price")] == [
        "long", "double", "decimal(12, 2)",
    ]  # fmt: skip
    assert fields["places"]["id"] == before["last-column-id"] + 1
    assert fields["places"]["doc"] == "where"
    assert fields["places"]["type"]["element"]["fields"][0]["doc"] == "inner"
    assert [one["id"] for one in schema_of(now)["fields"][:7]] == [1, 2, 3, 4, 5, 6, 7]


def test_fields_are_added_in_structs_of_lists(load: Callable[..., Load]) -> None:
    before = table([column("id", "long"), column("Items", list_of(struct(column("x", "int"))))])
    item = T.StructType([T.StructField("X", T.LongType()), T.StructField("y", T.StringType())])
    given = load(before, columns=columns(id=T.LongType(), items=T.ArrayType(item)))
    [_, items] = schema_of(previewed(given, before))["fields"]
    assert [(one["name"], one["type"]) for one in items["type"]["element"]["fields"]] == [
        ("x", "long"), ("y", "string"),
    ]  # fmt: skip


def test_a_new_key_is_required_and_sorts_where_the_old_one_did(load: Callable[..., Load]) -> None:
    before = with_rows(table(PLAIN, ("id",), order=("id",)))
    given = load(before, key=("region", "name"), mode="UPSERT")
    now = previewed(given, before)
    schema = schema_of(now)
    assert schema["identifier-field-ids"] == [3, 4]
    assert [one["required"] for one in schema["fields"][:4]] == [False, False, True, True]
    assert [one["source-id"] for one in order_of(now)["fields"]] == [3, 4]
    # An order that is not that of the key stays.
    other = with_rows(table(PLAIN, ("id",), order=("at",)))
    given = load(other, key=("region",), mode="UPSERT")
    assert order_of(previewed(given, other)) == order_of(other)


def test_a_new_key_with_nulls_is_refused_or_left(load: Callable[..., Load]) -> None:
    before = with_rows(table(PLAIN, ("id",)))
    given = load(before, key=("region",), mode="UPSERT", nulls={"region": 2})
    with pytest.raises(LoadFailed, match="2 rows with null in `region`"):
        assert given.changes
    given = load(before, key=("region",), nulls={"region": 2})
    assert given.changes.updates(before, STAGING) == []


def test_nulls_are_counted_only_in_rows_that_may_have_some(load: Callable[..., Load]) -> None:
    rows = with_rows(table(PLAIN, ("id",)))
    for before, key, asked in (
        (rows, ("region", "id"), [("region",)]),
        (rows, ("id",), []),
        (table(PLAIN), ("region",), []),
    ):
        given = load(before, key=key, mode="UPSERT")
        assert given.changes.plan.require == ("region",) * ("region" in key)
        assert given.asked == asked


def test_partitions_change_with_the_columns(load: Callable[..., Load]) -> None:
    before = table(PLAIN, partitions=(DAY,))
    given = load(before, partition_by=(PartitionField("bucket", "name", 4), DAY))
    fields = spec_of(previewed(given, before))["fields"]
    assert [(one["name"], one["field-id"]) for one in fields] == [
        ("name_bucket_4", 1001), ("at_day", 1000),
    ]  # fmt: skip


def test_comments_and_bloom_filters_are_added_where_there_are_none(
    load: Callable[..., Load],
) -> None:
    described = T.StructType(
        [replaced(one, f"about {one.name}") for one in LOADED.fields[:3]] + LOADED.fields[3:]
    )
    given = load(columns=described, comment="all orders", bloom_filters=("id",))
    now = previewed(given, given.metadata)
    assert [one.get("doc") for one in schema_of(now)["fields"][:4]] == [
        "about id", "when", "about region", None,
    ]  # fmt: skip
    assert now["properties"] == {
        "comment": "all orders",
        "write.parquet.bloom-filter-enabled.column.id": "true",
        "write.parquet.bloom-filter-adaptive-enabled": "true",
    }
    again = load(now, columns=described, comment="other orders", bloom_filters=("id",))
    assert again.changes.updates(now, STAGING) == []


def replaced(one: T.StructField, comment: str) -> T.StructField:
    return T.StructField(one.name, one.dataType, one.nullable, {"comment": comment})


def test_rows_and_columns_are_replaced_and_what_fits_stays(load: Callable[..., Load]) -> None:
    before = with_rows(table(PLAIN, ("id", "at"), (REGION, DAY), ("id",)))
    other = columns(
        at=T.TimestampType(), region=T.LongType(), name=T.StringType(), extra=T.StringType()
    )
    given = load(before, columns=other, key=("name",), mode="OVERWRITE")
    changes = given.changes
    assert changes.plan.replace
    now = previewed(changes, before)
    fields = {one["name"]: one for one in schema_of(now)["fields"]}
    last = before["last-column-id"]
    assert {name: one["id"] for name, one in fields.items()} == {
        "at": 2, "name": 4, "region": last + 1, "extra": last + 2,
    }  # fmt: skip
    assert schema_of(now)["identifier-field-ids"] == [4]
    assert [name for name, one in fields.items() if one["required"]] == ["name"]
    # The table keeps the partitions that the new columns can have.
    assert [(one["name"], one["source-id"]) for one in spec_of(now)["fields"]] == [
        ("region", last + 1), ("at_day", 2),
    ]  # fmt: skip
    assert order_of(now)["fields"] == []
    check(before, requirements(before, changes.updates(before, STAGING)))


def test_a_filter_of_a_column_that_is_replaced_is_set_anew(load: Callable[..., Load]) -> None:
    filters = {
        f"write.parquet.bloom-filter-enabled.column.{name}": "true" for name in ("id", "region")
    } | {"write.parquet.bloom-filter-adaptive-enabled": "true"}
    before = with_rows(table(PLAIN, properties=filters))
    given = load(
        before, columns=columns(id=T.StringType()), mode="OVERWRITE", bloom_filters=("id",)
    )
    filters.pop("write.parquet.bloom-filter-enabled.column.region")
    assert previewed(given, before)["properties"] == filters


def test_structs_that_fit_stay_whatever_their_ids(load: Callable[..., Load]) -> None:
    place = struct(column("city", "string"), column("zip", "int"))
    before = table([column("a", "int"), column("gone", "int"), column("place", place)])
    before = with_rows(after(before, ("delete", "gone")))
    kind = T.StructType(
        [T.StructField("city", T.StringType()), T.StructField("zip", T.IntegerType())]
    )
    given = load(before, columns=columns(place=kind, a=T.StringType()), mode="OVERWRITE")
    fields = schema_of(previewed(given, before))["fields"]
    last = before["last-column-id"]
    assert [(one["name"], one["id"]) for one in fields] == [("place", 3), ("a", last + 1)]


def test_columns_are_not_replaced_while_another_load_is_under_way(
    load: Callable[..., Load],
) -> None:
    before = with_rows(table(PLAIN), lakeload_other=7, lakeload_shop=7)
    given = load(before, columns=columns(id=T.StringType()), mode="OVERWRITE")
    changes = given.changes
    with pytest.raises(LoadFailed, match="branch `lakeload_other`"):
        changes.updates(before, STAGING)
    with pytest.raises(LoadFailed, match="cannot be replaced"):
        changes.preview(before)
    assert changes.preview(before, None) is not None


@pytest.mark.parametrize(
    "step",
    [
        ("add", ("theirs",), "int"),
        ("delete", "count"),
        ("widen", ("count",), "long"),
        ("require", ("name",)),
        ("partition", 0, (DAY,)),
    ],
)
def test_a_table_that_others_have_changed_is_planned_anew(
    load: Callable[..., Load], step: Step
) -> None:
    before = table(PLAIN)
    changes = load(before, columns=columns(id=T.LongType(), extra=T.StringType())).changes
    staged = previewed(changes, before)
    now = after(before, step)
    said = "another writer has changed the definition"
    with pytest.raises(RetryLoad, match=said):
        changes.updates(now, STAGING)
    with pytest.raises(RetryLoad, match=said):
        changes.preview(now)
    with pytest.raises(RetryLoad, match=said):
        changes.publish(now, STAGING, staged)
    recreated = {**before, "table-uuid": "another"}
    with pytest.raises(RetryLoad):
        changes.publish(recreated, STAGING, staged)


def test_a_key_is_required_only_in_rows_that_were_counted(load: Callable[..., Load]) -> None:
    before = with_rows(table(PLAIN))
    changes = load(before, key=("id",), mode="UPSERT").changes
    assert changes.plan.require == ("id",)
    moved = {**before, "refs": {"main": {"snapshot-id": 8, "type": "branch"}}}
    with pytest.raises(RetryLoad):
        changes.updates(moved, STAGING)
    other = {**before, "refs": {**before["refs"], "theirs": {"snapshot-id": 7, "type": "branch"}}}
    assert changes.updates(other, STAGING)


def test_rows_are_published_with_the_ids_they_are_staged_for(load: Callable[..., Load]) -> None:
    before = table(PLAIN)
    changes = load(before, columns=columns(id=T.LongType(), extra=T.StringType())).changes
    staged = previewed(changes, before)
    updates = changes.publish(before, STAGING, staged)
    assert updates == changes.updates(before, STAGING)
    assert requirements(before, updates) == assert_definition(before)
    # Others have added a column and dropped it: the next id is another one.
    now = after(after(before, ("add", ("theirs",), "int")), ("delete", "theirs"))
    assert changes.updates(now, STAGING)
    with pytest.raises(RetryLoad):
        changes.publish(now, STAGING, staged)
    ordered = after(before, ("sort_by", ("id",)))
    with pytest.raises(RetryLoad):
        changes.publish(ordered, STAGING, staged)


def test_what_others_have_added_alike_is_no_change(load: Callable[..., Load]) -> None:
    before = table(PLAIN)
    given = load(before, comment="all orders")
    staged = previewed(given, before)
    assert requirements(before, given.changes.updates(before, STAGING)) == []
    assert given.changes.publish(staged, STAGING, staged) == []


def test_names_that_stand_in_each_others_way_are_told(load: Callable[..., Load]) -> None:
    before = table(PLAIN, partitions=(DAY,))
    changes = load(before, columns=columns(id=T.LongType(), at_day=T.StringType())).changes
    with pytest.raises(LoadFailed, match=r"changing the columns of `shop\.orders`: `at_day`"):
        changes.preview(before)
