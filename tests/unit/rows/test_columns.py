"""Source columns → target columns."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pyspark.ml.linalg import VectorUDT
from pyspark.sql import types as T

from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import TRACKING_COLUMNS, ColumnsSpec
from lakeload_jobs.core.names import spelling
from lakeload_jobs.core.yaml_lines import yaml_text
from lakeload_jobs.rows.casts import written_schema
from lakeload_jobs.rows.columns import earlier_types, map_columns, source_names, types_of
from tests.hints import follow, follows


def _map(names: list[str], spec: ColumnsSpec | None = None, **settings: object) -> dict[str, str]:
    mapping = map_columns(names, spec or ColumnsSpec(), **settings)  # type: ignore[arg-type]
    return mapping.column_map


def test_names_are_normalised_and_numbered_in_source_order() -> None:
    assert _map(["Größe", "a b", "A-B", "日本", "a_b_1"]) == {
        "Größe": "Grosse",
        "a b": "a_b",
        "A-B": "A_B_2",
        "日本": "_",
        "a_b_1": "a_b_1",
    }


def test_columns_keep_the_order_of_the_source() -> None:
    names = [f"c{i}" for i in (3, 1, 2)]
    assert list(_map(names, ColumnsSpec(include=("c2", "c3")))) == ["c3", "c2"]


def test_exclude_wins_over_include() -> None:
    spec = ColumnsSpec(include=("a", "b"), exclude=("b",))
    assert _map(["a", "b", "c"], spec) == {"a": "a"}


def test_excluded_columns_reserve_no_name() -> None:
    assert _map(["a b", "a-b"], ColumnsSpec(exclude=("a b",))) == {"a-b": "a_b"}


def test_a_renamed_column_gets_its_name_and_others_are_numbered_around_it() -> None:
    spec = ColumnsSpec(rename={"b": "a", "c": "É x"})
    assert _map(["a", "b", "c"], spec) == {"a": "a_1", "b": "a", "c": "E_x"}


def test_two_columns_cannot_be_renamed_to_one() -> None:
    with pytest.raises(InvalidInput, match=r"makes column `b` `X`, which is the target of `a`"):
        _map(["a", "b"], ColumnsSpec(rename={"a": "x", "b": "X"}))


def test_recorded_names_override_computed_ones() -> None:
    recorded = {"A b": "a_b_1", "a b": "a_b"}
    assert _map(["A b", "a b", "a-b"], recorded=recorded) == {**recorded, "a-b": "a_b_2"}


def test_columns_of_the_table_keep_their_spelling() -> None:
    table = ("first name", "émail", "a-b", "Total", "_supa_id")
    assert _map(["First_Name", "émail", "a-b", "a b", "new one"], existing=table) == {
        "First_Name": "first name",
        "émail": "émail",
        "a-b": "a-b",
        "a b": "a_b",
        "new one": "new_one",
    }
    spec = ColumnsSpec(rename={"x": "total"})
    assert _map(["x", "total"], spec, existing=table) == {"x": "Total", "total": "total_1"}
    assert _map(["a b"], recorded={"c": "a-b"}, existing=table) == {"a b": "a_b"}


def test_a_spelling_of_two_columns_of_the_table_is_refused_and_the_hint_works() -> None:
    table = ("a-b", "a b")
    with pytest.raises(InvalidInput, match="another spelling of more than one") as refused:
        _map(["a_b"], existing=table)
    assert "`columns: {rename: {a_b: a-b}}`" in str(refused.value.hint)
    assert _map(["a_b"], ColumnsSpec(rename={"a_b": "a-b"}), existing=table) == {"a_b": "a-b"}


def test_name_of_a_removed_column_stays_reserved() -> None:
    assert _map(["b"], recorded={"a": "b"}) == {"b": "b_1"}


@pytest.mark.parametrize(
    ("before", "now", "lower"),
    [
        ({"Order ID": "order_id"}, "order_id", True),
        ({"Order ID": "Order_ID"}, "order id", False),
        ({"id": "id"}, "ID", False),
        ({"Größe": "Grosse"}, "grosse", False),
        ({"a b": "a_b_1"}, "a-b", False),
        ({"Order ID": "number"}, "order_id", True),
        ({"Order ID": "order_id", "order_id": "order_id"}, "ORDER-ID", True),
    ],
)
def test_another_spelling_of_a_recorded_name_is_the_same_column(
    before: dict[str, str], now: str, *, lower: bool
) -> None:
    target = next(iter(before.values()))
    found = map_columns(["x", now], ColumnsSpec(), recorded=before, lower=lower)
    assert found.column_map == {"x": "x", now: target}
    assert found.notes == (
        f"column `{now}` is loaded into `{target}`, as `{next(iter(before))}` was: another "
        "spelling of it",
    )
    again = map_columns([now], ColumnsSpec(), recorded={**before, now: target}, lower=lower)
    assert (again.column_map, again.notes) == ({now: target}, ())


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("日本", "中国"),
        ("Amount %", "Amount $"),
        ("Δ x", "Ω x"),
        ("½", "¼"),
        ("कि", "की"),
        ("a b", "a_b_1"),
        ("id", "id_"),
    ],
)
def test_names_equal_only_in_ascii_are_two_columns(before: str, now: str) -> None:
    recorded = map_columns([before], ColumnsSpec()).column_map
    found = map_columns([now], ColumnsSpec(), recorded=recorded).column_map
    assert found[now] not in recorded.values()


def test_the_exact_name_wins_over_another_spelling_of_it() -> None:
    recorded = {"id": "id"}
    found = map_columns(["ID", "id"], ColumnsSpec(), recorded=recorded)
    assert found.column_map == {"ID": "ID_1", "id": "id"}
    assert found.warnings == ("column `ID` is loaded as `ID_1`: `ID` is column `id`",)


def test_two_spellings_of_one_column_in_one_source_are_two_columns_with_a_warning() -> None:
    recorded = {"Order ID": "order_id", "order_id": "order_id"}
    found = map_columns(["order_id", "Order ID"], ColumnsSpec(), recorded=recorded, lower=True)
    assert found.column_map == {"order_id": "order_id", "Order ID": "order_id_1"}
    assert found.warnings == (
        "column `Order ID` is loaded as `order_id_1`: `order_id` is column `order_id`",
    )
    new = map_columns(["a b", "a-b"], ColumnsSpec())
    assert new.warnings == ("column `a-b` is loaded as `a_b_1`: `a_b` is column `a b`",)
    known = map_columns(["a b", "a-b"], ColumnsSpec(), recorded=new.column_map)
    assert (known.column_map, known.warnings) == (new.column_map, ())


def test_many_columns_with_a_number_are_few_warnings() -> None:
    found = map_columns([f"a{mark}b" for mark in " -.+/*"], ColumnsSpec())

    assert [warning.partition(" is loaded")[0] for warning in found.warnings] == [
        "column `a-b`",
        "column `a.b`",
        "column `a+b`",
        "2 more columns have a number behind their name, for the same reason",
    ]


def test_a_spelling_of_two_columns_is_refused_and_the_hint_works() -> None:
    recorded = {"a b": "a_b", "a-b": "a_b_1"}
    with pytest.raises(
        InvalidInput, match=r"`a\.b` is another spelling of more than one"
    ) as raised:
        _map(["a.b"], recorded=recorded)
    assert "`a_b` (from `a b`), `a_b_1` (from `a-b`)" in str(raised.value)
    hint = raised.value.hint or ""
    follows(__file__, "another spelling of two columns", hint)
    document = {"source": {"type": "FILES"}, "tables": [{"table": "orders"}]}
    changed = follow(document, hint.partition(", or")[0], "tables[0].table")
    chosen = ColumnsSpec(rename=changed["tables"][0]["columns"]["rename"])
    assert _map(["a.b"], chosen, recorded=recorded) == {"a.b": "a_b"}
    assert hint.endswith("or give it a name of its own there")
    own = ColumnsSpec(rename={"a.b": "c"})
    assert _map(["a.b"], own, recorded=recorded) == {"a.b": "c"}
    assert _map(["a b", "a.b"], recorded=recorded) == {"a b": "a_b", "a.b": "a_b_1"}


def test_a_type_that_cannot_be_written_is_left_out_or_cast_as_the_hint_says() -> None:
    schema = T.StructType().add("id", T.LongType()).add("v", VectorUDT())
    document = {"source": {"type": "FILES"}, "tables": [{"table": "orders"}]}

    def written(changed: dict[str, Any]) -> list[str]:
        columns = changed["tables"][0].get("columns", {})
        types = {"string": T.StringType()}
        given = {name: types[kind] for name, kind in columns.get("types", {}).items()}
        read = T.StructType(
            [T.StructField(f.name, given.get(f.name, f.dataType)) for f in schema.fields]
        )
        spec = ColumnsSpec(exclude=tuple(columns.get("exclude", ())))
        found = written_schema(read, map_columns(read.names, spec), nested="NATIVE", lower=False)
        return [] if found is None else found.names

    with pytest.raises(InvalidInput, match="which cannot be written") as failed:
        written(document)
    hint = failed.value.hint or ""
    follows(__file__, "a type that cannot be written", hint)
    ways: dict[str, dict[str, Any]] = {
        "`columns.exclude`": {"columns.exclude": ["v"]},
        "give it another type with `columns.types`": {"columns.types": {"v": "string"}},
    }
    loaded = [
        written(follow(document, clause, "tables[0].table", **ways[clause])) for clause in ways
    ]
    assert all(clause in hint for clause in ways)
    assert loaded == [["id"], ["id", "v"]]


def test_earlier_types_are_those_of_any_spelling() -> None:
    earlier = {"Order ID": "bigint", "a b": "int", "a-b": "string"}
    names = ["Order ID", "a-b", "a.b"]
    assert types_of(names, earlier) == {"Order ID": "bigint", "a-b": "string", "a.b": "int"}
    assert types_of(["order_id", "a.b"], earlier) == {"order_id": "bigint"}


def test_columns_that_another_pipeline_has_loaded_have_the_types_of_the_table() -> None:
    types = {"id": "int", "order_id": "bigint", "note": "string"}
    assert earlier_types(types, {"Order ID": "order_id"}, {}) == {
        "id": "int",
        "Order ID": "bigint",
        "note": "string",
    }
    assert earlier_types(types, {}, {"No": "id", "note": "remark"}) == {
        "No": "int",
        "order_id": "bigint",
    }


def test_a_column_beside_the_one_of_that_name_has_no_earlier_type() -> None:
    assert types_of(["é", "e"], {"é": "int"}) == {"é": "int"}
    assert types_of(["E", "e"], {"é": "int"}) == {}


def test_a_rename_may_repeat_what_is_recorded() -> None:
    assert _map(["a"], ColumnsSpec(rename={"a": "b"}), recorded={"a": "b"}) == {"a": "b"}


def test_a_rename_that_contradicts_what_is_recorded_is_refused() -> None:
    with pytest.raises(InvalidInput, match="`a` was loaded as `a` before, but `rename` is now `b`"):
        _map(["a"], ColumnsSpec(rename={"a": "b"}), recorded={"a": "a"})


def test_a_rename_onto_a_recorded_target_is_refused_while_its_column_is_there() -> None:
    spec, recorded = ColumnsSpec(rename={"c": "b"}), {"a": "b"}
    with pytest.raises(InvalidInput, match="`c` `b`, which is the target of `a`"):
        _map(["a", "c"], spec, recorded=recorded)
    assert _map(["c"], spec, recorded=recorded) == {"c": "b"}


@pytest.mark.parametrize(
    "name",
    [*TRACKING_COLUMNS, "_SUPA_ID", "_file", "_pos", "_partition", "-pos", "lakeload_partition"],
)
def test_reserved_names_are_refused_with_the_setting_that_helps(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"column `{name}` would become") as raised:
        _map(["id", name])
    assert f"rename: {{{yaml_text(name)}: …}}" in (raised.value.hint or "")
    assert _map(["id", name], ColumnsSpec(rename={name: "other"}))[name] == "other"
    assert _map(["id", name], ColumnsSpec(exclude=(name,))) == {"id": "id"}


def test_all_reserved_names_are_refused_at_once() -> None:
    names = sorted(TRACKING_COLUMNS)[:3]
    with pytest.raises(InvalidInput) as raised:
        _map(["id", *names])
    assert all(f"column `{name}` would become `{name}`" in raised.value.message for name in names)
    renamed = ", ".join(f"{name}: …" for name in names)
    assert raised.value.hint == f"give them other names with `columns: {{rename: {{{renamed}}}}}`"


def test_a_rename_to_a_reserved_name_is_refused() -> None:
    with pytest.raises(InvalidInput, match="`a` would become `_supa_id`"):
        _map(["a"], ColumnsSpec(rename={"a": "_supa_id"}))


@pytest.mark.parametrize(
    ("setting", "spec", "key"),
    [
        ("columns.include", ColumnsSpec(include=("custmer",)), ()),
        ("columns.exclude", ColumnsSpec(exclude=("custmer",)), ()),
        ("columns.rename", ColumnsSpec(rename={"custmer": "x"}), ()),
        ("columns.types", ColumnsSpec(types={"custmer": "int"}), ()),
        ("primary_key", ColumnsSpec(), ("custmer",)),
    ],
)
def test_setting_for_an_unknown_column_suggests_the_nearest(
    setting: str, spec: ColumnsSpec, key: tuple[str, ...]
) -> None:
    with pytest.raises(InvalidInput, match=f"`{setting}` names the column `custmer`") as raised:
        map_columns(["id", "customer"], spec, primary_key=key)
    assert raised.value.hint == "did you mean `customer`?"


def test_setting_for_an_unknown_column_lists_all_without_a_near_one() -> None:
    with pytest.raises(InvalidInput) as raised:
        map_columns([f"c{i}" for i in range(12)], ColumnsSpec(include=("zzzzz",)))
    assert (raised.value.hint or "").startswith("the columns are `c0`, `c1`")
    assert (raised.value.hint or "").endswith("`c9` and 2 more")


def test_the_primary_key_is_given_in_target_names_and_its_own_order() -> None:
    mapping = map_columns(["Id", "Größe", "x"], ColumnsSpec(), primary_key=["Größe", "Id"])
    assert mapping.key == ("Grosse", "Id")


def test_a_key_column_that_is_not_loaded_is_refused() -> None:
    with pytest.raises(InvalidInput, match="`id` is not among the columns that are loaded"):
        map_columns(["id", "x"], ColumnsSpec(exclude=("id",)), primary_key=["id"])


def test_a_table_without_columns_is_refused() -> None:
    with pytest.raises(InvalidInput, match="excludes every column"):
        map_columns(["a"], ColumnsSpec(exclude=("a",)))


def test_a_source_with_one_name_twice_is_refused() -> None:
    with pytest.raises(InvalidInput, match="two columns named `a`"):
        map_columns(["a", "b", "a"], ColumnsSpec())


@given(
    st.lists(st.text("aAb _1é", max_size=3), min_size=1, max_size=8, unique=True),
    st.lists(st.text("aAb _1é", max_size=3), min_size=1, max_size=8, unique=True),
)
def test_targets_never_change_and_never_collide_over_two_loads(
    first: list[str], second: list[str]
) -> None:
    recorded = map_columns(first, ColumnsSpec()).column_map
    try:
        again = map_columns(second, ColumnsSpec(), recorded=recorded).column_map
    except InvalidInput as error:
        assume("more than one column" not in error.message)
        raise
    assert all(again[name] == recorded[name] for name in second if name in recorded)
    assert len({target.lower() for target in again.values()}) == len(again)
    for name, target in again.items():
        owners = [source for source, known in recorded.items() if known.lower() == target.lower()]
        assert all(spelling(owner) == spelling(name) for owner in owners)


def test_settings_may_name_columns_as_the_table_does() -> None:
    spec = ColumnsSpec(
        exclude=("left_out",), rename={"total_eur": "total"}, types={"order_id": "int"}
    )
    names = ["Order ID", "Total EUR", "Left Out"]

    mapping = map_columns(names, spec, primary_key=["order_id"], lower=True)

    assert [(column.source, column.target) for column in mapping.columns] == [
        ("Order ID", "order_id"),
        ("Total EUR", "total"),
    ]
    assert mapping.key == ("order_id",)


def test_a_setting_names_a_column_by_its_own_name_first() -> None:
    names = ["ID", "id"]

    assert source_names(["id"], names) == {"id": "id"}
    assert source_names(["Id"], names) == {"Id": "Id"}
    assert source_names(["ID", "iD"], ["ID"]) == {"ID": "ID", "iD": "iD"}
    with pytest.raises(InvalidInput) as failure:
        map_columns(names, ColumnsSpec(exclude=("Id",)))
    assert failure.value.hint == "it may be `ID` or `id`: write the name exactly as in the source"
