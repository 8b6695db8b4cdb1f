"""Definitions of tables and their changes; tests/integration/formats/iceberg/test_definitions.py
makes the same with Iceberg's Java library."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.table.metadata import TableMetadataUtil

from lakeload_jobs.contract.spec import PartitionField
from lakeload_jobs.formats.iceberg.commits.definitions import (
    NAME_MAPPING,
    Evolution,
    InvalidDefinition,
    check_schema,
    column_ids,
    new_schema,
    order_of,
    partition_spec,
    same_definition,
    same_schema,
    with_fresh_ids,
)
from lakeload_jobs.formats.iceberg.commits.errors import Unsupported
from lakeload_jobs.formats.iceberg.commits.metadata import (
    Json,
    highest_id,
    schema_of,
    spec_of,
    updated,
)
from tests.unit.formats.iceberg.commits.evolutions import (
    ORDERS,
    Step,
    column,
    evolve,
    list_of,
    map_of,
    random_steps,
    struct,
    table,
)

BUCKET = PartitionField("bucket", "id", 16)
DAY, HOUR = PartitionField("day", "at"), PartitionField("hour", "at")
REGION = PartitionField("identity", "region")


def after(metadata: Json, *steps: Step) -> Json:
    return updated(metadata, evolve(metadata, steps), replaces=None, now_ms=0)


def names_of(metadata: Json) -> list[str]:
    return [field["name"] for field in schema_of(metadata)["fields"]]


def test_fields_of_a_struct_are_numbered_before_what_is_in_them() -> None:
    kind = struct(
        column("a", list_of(struct(column("x", "int")))),
        column("b", map_of(struct(column("k", "int")), struct(column("v", "int")))),
    )
    number = itertools.count(10)
    found = with_fresh_ids(kind, lambda: next(number))
    [a, b] = found["fields"]
    assert (a["id"], b["id"]) == (10, 11)
    assert (a["type"]["element-id"], a["type"]["element"]["fields"][0]["id"]) == (12, 13)
    assert (b["type"]["key-id"], b["type"]["value-id"]) == (14, 15)
    assert b["type"]["key"]["fields"][0]["id"] == 16
    assert b["type"]["value"]["fields"][0]["id"] == 17


def test_new_schema_has_its_identifiers_required() -> None:
    schema = new_schema([column("a", "int"), column("b", "string"), column("c", "int")], ["c", "a"])
    assert schema["identifier-field-ids"] == [1, 3]
    assert [field["required"] for field in schema["fields"]] == [True, False, True]
    assert "identifier-field-ids" not in new_schema([column("a", "int")])


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("double", "not exact"),
        (struct(column("x", "int")), "no single value"),
        (list_of("int"), "no single value"),
    ],
)
def test_new_schema_of_a_key_that_cannot_be_one_is_refused(kind: Any, said: str) -> None:
    with pytest.raises(InvalidDefinition, match=said):
        new_schema([column("a", kind)], ["a"])


def test_identifier_in_an_optional_struct_or_a_list_is_refused() -> None:
    def schema(kind: Any, number: int, *, required: bool) -> Json:
        made = new_schema([column("a", kind, required=required)])
        return {**made, "identifier-field-ids": [number]}

    inner = struct(column("x", "int", required=True))
    check_schema(schema(inner, 2, required=True))
    for wrong, said in (
        (schema(inner, 2, required=False), "may be null"),
        (schema(list_of(inner, required=True), 3, required=True), "in a list or map"),
        (schema(inner, 9, required=True), "no column"),
    ):
        with pytest.raises(InvalidDefinition, match=said):
            check_schema(wrong)


def test_columns_are_called_by_their_way_and_a_shorter_one() -> None:
    kind = list_of(struct(column("price", "int"), column("tags", list_of("string"))))
    schema = new_schema(
        [column("items", kind), column("at", map_of("string", struct(column("x", "int"))))]
    )
    ids = column_ids(schema)
    assert ids["items.element.price"] == ids["items.price"]
    assert ids["items.element.tags.element"] == ids["items.tags.element"]
    assert ids["at.value.x"] == ids["at.x"]
    assert set(ids) == {
        "items", "items.element", "items.element.price", "items.price", "items.element.tags",
        "items.tags", "items.element.tags.element", "items.tags.element", "at", "at.key",
        "at.value", "at.value.x", "at.x",
    }  # fmt: skip


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidDefinition, match=r"two columns are called `a\.b`"):
        new_schema([column("a.b", "int"), column("a", struct(column("b", "int")))])


@pytest.mark.parametrize("kind", ["variant", "timestamp_ns", "timestamptz_ns", "unknown"])
def test_types_of_version_3_are_of_version_3(kind: str) -> None:
    schema = new_schema([column("a", list_of(kind))])
    check_schema(schema, 3)
    with pytest.raises(InvalidDefinition, match=f"`a.element` is of the type `{kind}`"):
        check_schema(schema, 2)


def test_schemas_are_the_same_whatever_is_not_said() -> None:
    schema = schema_of(table(key=["id"]))
    fields = [{"doc": None, **field} for field in schema["fields"]]
    assert same_schema(schema, {**schema, "fields": fields, "schema-id": 9})
    assert not same_schema(schema, {**schema, "identifier-field-ids": []})
    renamed = [{**fields[0], "name": "other"}, *fields[1:]]
    assert not same_schema(schema, {**schema, "fields": renamed})


def test_partition_fields_are_called_as_in_java() -> None:
    schema = new_schema([column("id", "long"), column("at", "timestamp"), column("d", "date")])
    fields = [
        BUCKET, PartitionField("truncate", "id", 10), HOUR, PartitionField("year", "d"),
        PartitionField("identity", "id"),
    ]  # fmt: skip
    spec = partition_spec(schema, fields)
    assert [(one["name"], one["transform"]) for one in spec["fields"]] == [
        ("id_bucket", "bucket[16]"), ("id_trunc", "truncate[10]"), ("at_hour", "hour"),
        ("d_year", "year"), ("id", "identity"),
    ]  # fmt: skip
    assert [one["field-id"] for one in spec["fields"]] == [1000, 1001, 1002, 1003, 1004]
    assert [one["source-id"] for one in spec["fields"]] == [1, 1, 2, 3, 1]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ([PartitionField("bucket", "nosuch", 4)], "no column"),
        ([BUCKET, PartitionField("bucket", "id", 8)], "two partition fields"),
        ([DAY, HOUR], "redundant"),
        ([REGION, REGION], "two partition fields"),
        ([PartitionField("bucket", "address", 4)], "no single value"),
        ([PartitionField("identity", "items.element.price")], "no single value"),
        ([PartitionField("truncate", "name", 4)], "`name_trunc` is the name of a column"),
    ],
)
def test_partitions_that_a_table_cannot_have_are_refused(
    fields: list[PartitionField], said: str
) -> None:
    schema = new_schema([*ORDERS, column("name_trunc", "string")])
    with pytest.raises(InvalidDefinition, match=said):
        partition_spec(schema, fields)


def test_nothing_changed_is_no_update() -> None:
    metadata = table(key=["id"], partitions=[DAY], order=["id"])
    assert evolve(metadata, []) == []
    same: tuple[Step, ...] = (
        ("widen", ("id",), "long"),
        ("require", ("id",)),
        ("make_optional", ("region",)),
        ("describe", ("at",), "when"),
        ("identify", ("id",)),
        ("partition", 1, ()),
        ("partition", 0, (DAY,)),
        ("sort_by", ("id",)),
    )
    assert evolve(metadata, same) == []


def test_added_columns_have_ids_that_no_column_ever_had() -> None:
    metadata = after(table(), ("add", ("note",), struct(column("x", "int"))))
    note = schema_of(metadata)["fields"][-1]
    last = metadata["last-column-id"]
    assert (note["id"], note["type"]["fields"][0]["id"]) == (last - 1, last)
    metadata = after(metadata, ("delete", "note"))
    assert metadata["last-column-id"] == last
    [update, current] = evolve(metadata, [("add", ("note",), "int")])
    assert update["last-column-id"] == last + 1
    assert update["schema"]["fields"][-1] == {
        "id": last + 1, "name": "note", "required": False, "type": "int",
    }  # fmt: skip
    assert current == {"action": "set-current-schema", "schema-id": -1}


def test_last_column_id_of_an_update_counts_columns_that_are_gone() -> None:
    metadata = after(table(), ("delete", "address"))
    last = metadata["last-column-id"]
    assert last > highest_id(schema_of(metadata))
    [update, _] = evolve(metadata, [("describe", ("id",), "one")])
    assert update["last-column-id"] == last


def test_a_schema_that_the_table_had_is_used_again() -> None:
    metadata = after(table(), ("require", ("id",)))
    [update] = evolve(metadata, [("make_optional", ("id",))])
    assert update == {"action": "set-current-schema", "schema-id": 0}


def test_defaults_follow_a_wider_type() -> None:
    field = column("a", "float") | {"initial-default": 1.1, "write-default": 0.5}
    metadata = table([field])
    [field] = schema_of(after(metadata, ("widen", ("a",), "double")))["fields"]
    assert (field["initial-default"], field["write-default"]) == (1.100000023841858, 0.5)


def test_partition_fields_have_their_ids_again() -> None:
    metadata = table(partitions=[DAY, BUCKET])
    metadata = after(metadata, ("partition", 0, (REGION,)))
    assert [one["field-id"] for one in spec_of(metadata)["fields"]] == [1002]
    metadata = after(metadata, ("partition", 1, (BUCKET,)))
    assert [one["field-id"] for one in spec_of(metadata)["fields"]] == [1002, 1001]
    assert metadata["last-partition-id"] == 1002
    # The first spec, with its own id.
    [update] = evolve(metadata, [("partition", 0, (DAY, BUCKET))])
    assert update == {"action": "set-default-spec", "spec-id": 0}


def test_partition_fields_that_are_added_are_called_by_their_width() -> None:
    wide = PartitionField("bucket", "id", 32), PartitionField("truncate", "name", 2)
    fields = spec_of(after(table(partitions=[BUCKET]), ("partition", 1, wide)))["fields"]
    assert [one["name"] for one in fields] == ["id_bucket", "id_bucket_32", "name_trunc_2"]


def test_what_version_1_left_of_a_field_makes_room() -> None:
    metadata = table(partitions=[REGION, DAY])
    [spec] = metadata["partition-specs"]
    voided = [spec["fields"][0] | {"transform": "void"}, spec["fields"][1]]
    left = {**metadata, "partition-specs": [{**spec, "fields": voided}]}
    fields = spec_of(after(left, ("partition", 1, (REGION,))))["fields"]
    assert [(one["name"], one["transform"], one["field-id"]) for one in fields] == [
        ("region_1000", "void", 1000), ("at_day", "day", 1001), ("region", "identity", 1002),
    ]  # fmt: skip
    # A field that is there again takes its own place: no two have one id.
    specs = [spec, {"spec-id": 1, "fields": voided}]
    left = {**metadata, "partition-specs": specs, "default-spec-id": 1}
    fields = spec_of(after(left, ("partition", 1, (REGION,))))["fields"]
    assert [(one["name"], one["transform"], one["field-id"]) for one in fields] == [
        ("at_day", "day", 1001), ("region", "identity", 1000),
    ]  # fmt: skip


def test_partitions_of_an_unknown_transform_do_not_change() -> None:
    metadata = table(partitions=[DAY])
    metadata["partition-specs"][0]["fields"][0]["transform"] = "zorder[4]"
    assert evolve(metadata, [("add", ("x",), "int")])
    with pytest.raises(InvalidDefinition, match=r"zorder\[4\]"):
        evolve(metadata, [("partition", 1, (BUCKET,))])


def test_partitions_of_a_table_of_version_1_do_not_change() -> None:
    with pytest.raises(Unsupported):
        evolve({**table(), "format-version": 1}, [("partition", 0, (BUCKET,))])


def test_a_deleted_column_is_let_go_by_partitions_and_order_first() -> None:
    metadata = table(partitions=[REGION, DAY], order=["region"])
    steps: list[Step] = [
        ("delete", "region"),
        ("add", ("region",), "int"),
        ("partition", 0, (REGION, DAY)),
        ("sort_by", ("region",)),
    ]
    actions = [one["action"] for one in evolve(metadata, steps)]
    spec, order = ["add-spec", "set-default-spec"], ["add-sort-order", "set-default-sort-order"]
    assert actions == [*spec, *order, "add-schema", "set-current-schema", *spec, *order]
    now = after(metadata, *steps)
    new = schema_of(now)["fields"][-1]["id"]
    assert [one["source-id"] for one in spec_of(now)["fields"]] == [new, 2]
    assert [one["source-id"] for one in order_of(now)["fields"]] == [new]
    assert (now["default-spec-id"], now["default-sort-order-id"]) == (2, 2)
    for left in (steps[:2], steps[:3], [steps[0], ("partition", 1, ())]):
        with pytest.raises(InvalidDefinition, match="is deleted"):
            evolve(metadata, left)


def test_an_order_by_no_column_is_refused() -> None:
    with pytest.raises(InvalidDefinition, match="`nosuch`, which is no column"):
        evolve(table(), [("sort_by", ("nosuch",))])


def test_no_order_has_the_id_of_none() -> None:
    metadata = table(order=["id"])
    updates = evolve(metadata, [("sort_by", ())])
    assert updates[0]["sort-order"] == {"order-id": 0, "fields": []}
    metadata = updated(metadata, updates, replaces=None, now_ms=0)
    assert evolve(metadata, [("sort_by", ("id",))]) == [
        {"action": "set-default-sort-order", "sort-order-id": 1}
    ]


def test_definitions_are_the_same_with_the_same_ids() -> None:
    metadata = table(partitions=[DAY], order=["id"])
    assert same_definition(metadata, after(metadata, ("partition", 1, ())))
    for step in (("describe", ("id",), "x"), ("partition", 0, ()), ("sort_by", ())):
        assert not same_definition(metadata, after(metadata, step))
    other = json.loads(json.dumps(metadata))
    other["partition-specs"][0]["fields"][0]["field-id"] = 1001
    assert not same_definition(metadata, other)


def test_properties_of_deleted_columns_go_and_others_stay() -> None:
    prefix = "write.metadata.metrics.column."
    metadata = table(properties={f"{prefix}region": "full", f"{prefix}id": "none", "owner": "me"})
    metadata = after(metadata, ("delete", "region"))
    assert metadata["properties"] == {f"{prefix}id": "none", "owner": "me"}


def test_properties_are_set_and_removed_as_they_differ() -> None:
    metadata = table(properties={"a": "1", "b": "2"})
    evolution = Evolution(metadata)
    evolution.properties |= {"a": "1", "c": "3"}
    del evolution.properties["b"]
    assert evolution.updates() == [
        {"action": "remove-properties", "removals": ["b"]},
        {"action": "set-properties", "updates": {"c": "3"}},
    ]


def test_a_name_mapping_knows_new_columns_and_gives_them_their_names() -> None:
    mapping = [
        {"field-id": 1, "names": ["number", "note"]},
        {"field-id": 2, "names": ["moment"]},
        {"names": ["left"]},
    ]
    metadata = table(properties={NAME_MAPPING: json.dumps(mapping)})
    number = metadata["last-column-id"] + 1
    steps: tuple[Step, ...] = (("add", ("note",), list_of("int")), ("describe", ("id",), "one"))
    found = json.loads(after(metadata, *steps)["properties"][NAME_MAPPING])
    inner = [{"field-id": number + 1, "names": ["element"]}]
    assert found == [
        {"field-id": 1, "names": ["number", "id"]},
        {"field-id": 2, "names": ["moment"]},
        {"names": ["left"]},
        {"field-id": number, "names": ["note"], "fields": inner},
    ]
    # A text that is no mapping stays.
    assert (
        evolve(table(properties={NAME_MAPPING: "?"}), steps)[-1]["action"] == "set-current-schema"
    )


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (("add", ("id",), "int"), "already"),
        (("add", ("address", "zip"), "int"), "already"),
        (("add", ("id", "x"), "int"), "has no fields"),
        (("add", ("places", "key", "x"), "int"), "there is no column"),
        (("add", ("nosuch", "x"), "int"), "there is no column"),
        (("delete", "nosuch"), "there is no column"),
        (("widen", ("id",), "int"), "cannot become"),
        (("widen", ("price",), "decimal(9, 2)"), "cannot become"),
        (("widen", ("price",), "decimal(12, 3)"), "cannot become"),
        (("widen", ("address",), "string"), "cannot become"),
        (("widen", ("price",), "string"), "cannot become"),
        (("widen", ("id",), "decimal(19, 0)"), "cannot become"),
        (("widen", ("nosuch", "x", "y"), "long"), "there is no column"),
        (("identify", ("region",)), "may be null"),
        (("add", ("v",), "variant"), "format version 2"),
        (("add", ("at_day",), "int"), "`at_day` is the name of a column"),
        (("add", ("address.zip",), "int"), "two columns"),
        (("make_optional", ("id",)), "may be null"),
        (("delete", "id"), "no column"),
        (("partition", 1, (DAY,)), "there already"),
        (("partition", 1, (PartitionField("year", "address"),)), "no single value"),
    ],
)
def test_changes_that_iceberg_does_not_take_are_refused(step: Step, said: str) -> None:
    metadata = table(key=["id"], partitions=[DAY])
    with pytest.raises(InvalidDefinition, match=said):
        evolve(metadata, [step])


@given(st.randoms(use_true_random=False), st.sampled_from((2, 3)))
def test_columns_keep_their_ids_whatever_changes(chance: random.Random, version: int) -> None:
    metadata = table(key=["id"], partitions=[DAY, BUCKET], order=["id"], version=version)
    for _ in range(4):
        steps = random_steps(chance, metadata)
        before, metadata = metadata, after(metadata, *steps)
        old, new = column_ids(schema_of(before)), column_ids(schema_of(metadata))
        assert old.items() <= new.items()
        fresh = set(new.values()) - set(old.values())
        assert all(number > before["last-column-id"] for number in fresh)
        assert metadata["last-column-id"] == before["last-column-id"] + len(fresh)
        assert {field["source-id"] for field in spec_of(metadata)["fields"]} <= set(new.values())
        # A transform of a column has one id in all specs.
        known: dict[Any, int] = {}
        for spec in metadata["partition-specs"]:
            for one in spec["fields"]:
                source = (one["source-id"], one["transform"])
                assert known.setdefault(source, one["field-id"]) == one["field-id"]
        assert len(set(known.values())) == len(known)
        assert evolve(metadata, []) == []
        assert evolve(before, []) == []
        TableMetadataUtil.parse_obj(metadata)
