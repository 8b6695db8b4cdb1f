"""docs/schema-changes.md is the specification of the comparison: every row and message of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import Mode, PartitionField, SchemaChanges
from lakeload_jobs.core.type_conflicts import Misfit
from lakeload_jobs.formats.iceberg.rules.schema import (
    SchemaPlan,
    compare,
    key_is_null,
    spelled_in,
    with_nulls,
    with_partitions,
)

_PAGE = (Path(__file__).parents[5] / "docs" / "schema-changes.md").read_text(encoding="utf-8")
_POLICIES = ("EVOLVE", "ADD_COLUMNS", "FAIL")


def _compare(
    table: dict[str, str],
    load: dict[str, str],
    policy: str = "EVOLVE",
    mode: Mode = "APPEND",
    **more: Any,
) -> SchemaPlan:
    return compare(table, load, cast(SchemaChanges, policy), mode, target="shop.orders", **more)


def _rows(heading: str) -> Iterator[list[str]]:
    section = _PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    for line in lines[1:]:
        yield [cell.strip().strip("`") for cell in line.strip("|").split(" | ")]


def _outcome(ask: Callable[[], SchemaPlan]) -> str:
    """Say in the page's words what becomes of a load."""
    try:
        plan = ask()
    except LoadFailed:
        return "refused"
    for word, steps in {
        "replaced": plan.replace,
        "identifiers set": plan.set_identifiers,
        "added": plan.add,
        "widened": plan.widen,
        "made optional": plan.make_optional,
        "kept, null": plan.removed,
    }.items():
        if steps:
            return word
    assert not plan.changes_table
    return "as it is"


_TYPES = list(_rows("Types"))


@pytest.mark.parametrize(("table", "load", "cells"), [(r[0], r[1], r[2:]) for r in _TYPES])
def test_a_pair_of_types_ends_as_the_page_says(table: str, load: str, cells: list[str]) -> None:
    before, now = {"id": "long", "x": table}, {"id": "long", "X": load}
    told = [_outcome(partial(_compare, before, now, policy)) for policy in _POLICIES]
    told.append(_outcome(lambda: _compare(before, now, "EVOLVE", "OVERWRITE")))
    assert told == cells


@pytest.mark.parametrize("row", _TYPES, ids=lambda row: f"{row[0]} {row[1]}")
def test_an_upsert_that_refreshes_in_full_replaces_as_an_overwrite_does(row: list[str]) -> None:
    before, now = {"x": row[0]}, {"x": row[1]}
    assert _outcome(lambda: _compare(before, now, mode="UPSERT", full_refresh=True)) == row[5]


_CHANGES: dict[str, dict[str, Any]] = {
    "a column is new": {"load": {"id": "long", "x": "int", "new": "string"}},
    "a column is gone": {"load": {"id": "long"}},
    "a required column is gone": {"load": {"id": "long"}, "required": {"X"}},
    "a required column may be null": {"required": {"x"}},
    "an identifier column is gone, and the load has no key": {
        "load": {"x": "int"},
        "required": {"id"},
        "identifiers": ["id"],
    },
    "the key of an UPSERT has other columns, which the table has": {
        "mode": "UPSERT",
        "required": {"id"},
        "identifiers": ["id"],
        "keys": ["id", "X"],
    },
    "the key of an UPSERT has a column that the table does not have": {
        "load": {"id": "long", "x": "int", "new": "string"},
        "mode": "UPSERT",
        "required": {"id"},
        "identifiers": ["id"],
        "keys": ["id", "new"],
    },
    "the key of an APPEND has other columns, which the table has": {
        "required": {"id"},
        "identifiers": ["id"],
        "keys": ["id", "X"],
    },
    "the key of an APPEND has a column that the table does not have": {
        "load": {"id": "long", "x": "int", "new": "string"},
        "required": {"id"},
        "identifiers": ["id"],
        "keys": ["id", "new"],
    },
    "the load has no key, and the table has identifiers": {
        "required": {"id"},
        "identifiers": ["id"],
        "incoming_required": {"id"},
    },
}


@pytest.mark.parametrize(("change", "cells"), [(r[0], r[1:]) for r in _rows("Columns and keys")])
def test_a_change_of_columns_ends_as_the_page_says(change: str, cells: list[str]) -> None:
    case = dict(_CHANGES[change])
    table = {"id": "long", "x": "int"}
    load = case.pop("load", table)
    mode: Mode = case.pop("mode", "APPEND")
    told = [_outcome(partial(_compare, table, load, name, mode, **case)) for name in _POLICIES]
    whole: Mode = "UPSERT" if mode == "UPSERT" else "OVERWRITE"
    case["full_refresh"] = mode == "UPSERT"
    told.append(_outcome(partial(_compare, table, load, "EVOLVE", whole, **case)))
    assert told == cells


def test_the_page_has_a_row_for_each_change_that_is_tried() -> None:
    assert {row[0] for row in _rows("Columns and keys")} == set(_CHANGES)


def test_changes_within_nested_columns_are_found_where_they_are() -> None:
    plan = _compare(
        {"Items": "list<struct<1: price: optional float, 2: gone: required int>>"},
        {"items": "list<struct<PRICE: double, tax: decimal(5, 2)>>"},
    )
    assert [(step.path, step.before, step.now) for step in plan.widen] == [
        (("Items", "element", "price"), "float", "double")
    ]
    assert [(step.path, step.type) for step in plan.add] == [
        (("Items", "element", "tax"), "decimal(5, 2)")
    ]
    assert plan.removed == plan.make_optional == (("Items", "element", "gone"),)


def test_a_path_is_spelled_as_the_load_spells_it() -> None:
    columns = {"id": "int", "ITEMS": "list<struct<PRICE: double, M: map<string, struct<a: int>>>>"}
    assert spelled_in(columns, ("Items", "element", "price")) == ("ITEMS", "element", "PRICE")
    path = ("items", "element", "m", "value", "A")
    assert spelled_in(columns, path) == ("ITEMS", "element", "M", "value", "a")
    with pytest.raises(KeyError):
        spelled_in(columns, ("items", "element", "tax"))


def test_the_values_of_a_map_change_and_its_keys_do_not() -> None:
    plan = _compare({"m": "map<long, int>"}, {"m": "map<int, long>"})
    assert [step.path for step in plan.widen] == [("m", "value")]
    with pytest.raises(LoadFailed, match=r"`m\.key` is `int` in the table and `long`"):
        _compare({"m": "map<int, int>"}, {"m": "map<long, int>"})


def test_a_new_key_is_spelled_as_in_the_table_and_made_required() -> None:
    table = {"Id": "long", "Region": "string"}
    plan = _compare(table, {"id": "long", "region": "string"}, keys=["REGION", "id"])
    assert plan.set_identifiers == ("Region", "Id")
    assert plan.require == ("Region", "Id")


def test_a_key_in_another_order_is_the_same_key() -> None:
    columns = {"a": "int", "b": "int"}
    plan = _compare(columns, columns, identifiers=["a", "b"], required={"a", "b"}, keys=["B", "a"])
    assert plan == SchemaPlan()


def test_the_old_key_becomes_optional_once_it_is_no_identifier() -> None:
    columns = {"a": "int", "b": "int"}
    plan = _compare(columns, columns, identifiers=["a"], required={"a"}, keys=["b"])
    assert (plan.set_identifiers, plan.require, plan.make_optional) == (("b",), ("b",), (("a",),))


def test_nulls_in_the_new_key_stop_an_upsert_and_leave_other_loads_without_it() -> None:
    columns = {"a": "int", "b": "int"}
    plan = _compare(columns, columns, identifiers=["a"], required={"a"}, keys=["b"])
    left = partial(with_nulls, plan, target="shop.orders", identifiers=["A"])
    assert left({"b": 0}, "UPSERT") == plan
    with pytest.raises(LoadFailed, match=r"`shop\.orders` has 3 rows with null in `b`"):
        left({"b": 3}, "UPSERT")
    kept = left({"b": 3}, "APPEND")
    assert not kept.changes_table
    assert "stay as they are: `shop.orders` has 3 rows with null in `b`" in kept.notes[0]


def test_an_empty_table_takes_a_key_of_new_columns() -> None:
    plan = _compare({"a": "int"}, {"a": "int", "b": "int"}, mode="UPSERT", keys=["b"], empty=True)
    assert (plan.set_identifiers, plan.require) == (("b",), ("b",))


@pytest.mark.parametrize("kind", ["float", "double", "list<int>", "struct<a: int>", "variant"])
def test_only_exact_single_values_make_a_key(kind: str) -> None:
    columns = {"id": kind}
    with pytest.raises(LoadFailed, match="key column `id` is"):
        _compare(columns, columns, mode="UPSERT", keys=["id"])
    plan = _compare(columns, columns, mode="APPEND", keys=["id"])
    assert plan.set_identifiers is None
    assert "key column `id` is" in plan.notes[0]


def test_a_key_column_stays_required_also_where_it_is_no_identifier() -> None:
    columns = {"id": "double"}
    assert not _compare(columns, columns, required={"id"}, keys=["ID"]).make_optional


def test_a_replaced_table_has_the_key_of_the_load() -> None:
    plan = _compare({"a": "int"}, {"A": "string", "b": "int"}, mode="OVERWRITE", keys=["b"])
    assert plan.replace
    assert plan.set_identifiers == ("b",)


def test_schema_plan_describes_each_step() -> None:
    plan = _compare(
        {"id": "int", "old": "int", "r": "int"},
        {"id": "long", "new": "string", "r": "int"},
        keys=["id"],
        required={"r"},
    )
    assert plan.lines() == (
        "adds `new` as `string`",
        "widens `id` from `int` to `long`",
        "lets `r` be null",
        "makes `id` required",
        "sets the identifier fields to `id`",
        "keeps `old`, which is null in new rows",
    )


def test_a_load_that_replaces_columns_names_those_that_are_dropped_or_of_another_type() -> None:
    plan = _compare(
        {"id": "int", "old": "int", "amount": "long", "at": "struct<x: int, y: int>"},
        {"ID": "long", "amount": "string", "new": "int", "at": "struct<x: int>"},
        mode="OVERWRITE",
    )
    assert plan.lines() == (
        "replaces the columns of the table by those of the load",
        "drops `at.y`, which the load does not have",
        "drops `old`, which the load does not have",
        "replaces `id`, a `int`, by a `long`",
        "replaces `amount`, a `long`, by a `string`",
        "adds `new` as `int`",
    )
    assert plan.replacement_warnings() == (
        "column `at.y` is no longer in the source: the load drops it from the table, as it "
        "replaces rows and columns",
        "column `old` is no longer in the source: the load drops it from the table, as it "
        "replaces rows and columns",
        "column `id` was `int` and is `long`: the load replaces rows and columns",
        "column `amount` was `long` and is `string`: the load replaces rows and columns",
    )
    kept = _compare({"id": "int", "old": "int"}, {"id": "int"}, mode="OVERWRITE")
    assert (kept.removed, kept.replacement_warnings()) == ((("old",),), ())


_TABLE = {"id": "long", "amount": "decimal(10, 2)", "city": "string"}

_MESSAGES: dict[str, Callable[[], Any]] = {
    "A type that Iceberg cannot change": lambda: _compare(
        _TABLE,
        {"id": "long", "amount": "double", "city": "int"},
        misfits={
            "amount": Misfit(
                "amount",
                "decimal(10,2)",
                "the first value that does not fit is `19.999`, reading `day2.parquet`, row 7",
            ),
            "city": Misfit("City", "string", None),
        },
    ),
    "The same where every value fits the table's type": lambda: _compare(
        _TABLE,
        {**_TABLE, "amount": "double"},
        misfits={"amount": Misfit("Amount", "decimal(10,2)", None)},
    ),
    "The same in a column of the key": lambda: _compare(
        _TABLE,
        {**_TABLE, "id": "string"},
        keys=["id"],
        misfits={"id": Misfit("id", "bigint", "the first value that does not fit is `n/a`")},
    ),
    "The same where rows are replaced, and `schema_changes` is not EVOLVE": lambda: _compare(
        _TABLE, {"id": "long", "amount": "double", "city": "string"}, "ADD_COLUMNS", "OVERWRITE"
    ),
    "A wider type under ADD_COLUMNS": lambda: _compare(
        _TABLE, {"id": "long", "amount": "decimal(20, 2)", "city": "string"}, "ADD_COLUMNS"
    ),
    "A new column under FAIL": lambda: _compare(_TABLE, {**_TABLE, "tax": "double"}, "FAIL"),
    "A required column that is gone, under FAIL": lambda: _compare(
        _TABLE, {"id": "long", "amount": "decimal(10, 2)"}, "FAIL", required={"city"}
    ),
    "An identifier column that is gone": lambda: _compare(
        _TABLE, {"amount": "decimal(10, 2)", "city": "string"}, identifiers=["id"], required={"id"}
    ),
    "Another key under ADD_COLUMNS": lambda: _compare(
        _TABLE,
        _TABLE,
        "ADD_COLUMNS",
        "UPSERT",
        identifiers=["id"],
        required={"id"},
        keys=["id", "city"],
    ),
    "A key with a new column": lambda: _compare(
        _TABLE,
        {**_TABLE, "region": "string"},
        mode="UPSERT",
        identifiers=["id"],
        required={"id"},
        keys=["id", "region"],
    ),
    "A key that is not exact": lambda: _compare(
        {"id": "double"}, {"id": "double"}, mode="UPSERT", keys=["id"]
    ),
    "Rows of the table without the new key": lambda: _raise(
        key_is_null("shop.orders", "region", 12)
    ),
    "Other partitions under FAIL": lambda: with_partitions(
        SchemaPlan(),
        ["day(at)"],
        [PartitionField("bucket", "id", 16)],
        "FAIL",
        target="shop.orders",
        columns=_TABLE,
    ),
}


def _raise(error: LoadFailed) -> None:
    raise error


def _messages() -> str:
    parts = []
    for title, ask in _MESSAGES.items():
        with pytest.raises(LoadFailed) as caught:
            ask()
        assert caught.value.hint
        parts.append(f"{title}:\n\n```text\n{caught.value}\nhint: {caught.value.hint}\n```\n")
    return "\n".join(parts)


def test_the_page_shows_the_messages_that_are_raised() -> None:
    section = _PAGE.split("Each message names every column with both of its types.\n\n")[1]
    assert section.split("\n## ")[0] == _messages()


def test_hints_do_not_suggest_the_current_setting() -> None:
    shown = re.findall(r"```text\n(.*?)```", _messages(), re.DOTALL)
    assert len(shown) == len(_MESSAGES)
    assert not [text for text in shown if "`schema_changes` is EVOLVE" in text]


@pytest.mark.parametrize("kind", ["time", "timestamp_ns", "list<struct<1: a: optional time>>"])
def test_types_that_spark_cannot_read_are_refused_or_replaced(kind: str) -> None:
    table = {"id": "long", "at": kind}
    for load in ({"id": "long"}, {"id": "long", "at": "string"}):
        with pytest.raises(LoadFailed, match=r"`at.*a type that Spark cannot read") as refused:
            _compare(table, load)
        assert "`mode: OVERWRITE`" in str(refused.value.hint)
        with pytest.raises(LoadFailed, match="a type that Spark cannot read"):
            _compare(table, load, "ADD_COLUMNS", "OVERWRITE")
        assert _compare(table, load, mode="OVERWRITE").replace


def test_columns_that_differ_in_case_alone_are_refused_unless_they_are_replaced() -> None:
    table = {"id": "long", "ID": "long", "v": "struct<3: a: optional int, 4: A: optional int>"}

    for mode, policy in (("APPEND", "EVOLVE"), ("UPSERT", "EVOLVE"), ("OVERWRITE", "FAIL")):
        with pytest.raises(LoadFailed) as failed:
            _compare(table, {"id": "long"}, policy, cast(Mode, mode))
        assert "`id` and `ID` differ in nothing but case" in failed.value.message
        assert "`v.a` and `v.A` differ in nothing but case" in failed.value.message

    assert _compare(table, {"id": "long"}, mode="OVERWRITE").replace


def test_identifier_field_in_a_struct_and_its_struct_stay_required() -> None:
    table = {"v": "struct<2: a: required long, 3: b: required long>", "w": "long"}
    load = {"v": "struct<2: a: optional long, 3: b: optional long>", "w": "long"}
    keyed = partial(_compare, identifiers=["v.a"], required={"v", "w"})

    assert keyed(table, load).make_optional == (("v", "b"), ("w",))
    for lacking in ({"w": "long"}, {"v": "struct<3: b: optional long>", "w": "long"}):
        with pytest.raises(LoadFailed, match="is an identifier field of the table but missing"):
            keyed(table, lacking)


def test_hint_for_a_tracking_column_of_another_type_names_its_setting() -> None:
    with pytest.raises(LoadFailed) as failed:
        _compare({"_supa_index": "string"}, {"_supa_index": "long"})

    assert (failed.value.hint or "").startswith("leave `_supa_index` out of `tracking_columns`, or")
