"""Keys of tables of a database, and the names and globs by which a document means tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lakeload.sources.databases.table_names import matches, name_parts
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import JdbcInput
from lakeload_jobs.contract.state import Bookmark, StateChange
from lakeload_jobs.sources.databases.columns import UniqueIndex, keys_of
from lakeload_jobs.sources.databases.keys import key_change, remembered
from lakeload_jobs.sources.databases.table_names import written_name

READ = JdbcInput("POSTGRESQL", "localhost", 5432, "shop", "public", "orders")


def _mark(state: Any) -> Bookmark:
    return Bookmark(state, first_run=state is None, next_number=1, evidence=lambda _: ())


def test_the_preferred_key_is_the_primary_one_then_the_narrowest_then_the_first_by_name() -> None:
    wide, second = UniqueIndex("a", ("x", "y")), UniqueIndex("c", ("z",))
    first, primary = UniqueIndex("b", ("w",)), UniqueIndex("d", ("p", "q", "r"), primary=True)

    assert keys_of([wide, second, first, primary]) == (
        ("p", "q", "r"),
        ("w",),
        ("z",),
        ("x", "y"),
    )


def test_the_key_of_the_database_is_remembered_once() -> None:
    found = replace(READ, key=("id",))

    assert key_change(READ, _mark(None), replaces=False) is None
    assert key_change(found, _mark(None), replaces=False) == StateChange(None, {"key": ["id"]})
    assert key_change(found, _mark({"key": ["id"]}), replaces=False) is None
    assert key_change(found, _mark({"other": 1}), replaces=False) == StateChange(
        {"other": 1}, {"other": 1, "key": ["id"]}
    )
    # What replaces every row would leave a state of no load.
    assert key_change(found, _mark({"key": ["id"]}), replaces=True) == StateChange(
        {"key": ["id"]}, {"key": ["id"]}
    )


@pytest.mark.parametrize(
    ("known", "now", "message", "setting"),
    [
        (["id"], ("id", "part"), "is `id`, `part`, and the table was loaded with `id`", "[id]"),
        (["id"], (), "is none, and the table was loaded with `id`", "[id]"),
        ([], ("id",), "is `id`, and the table was loaded with none", "[]"),
    ],
)
def test_another_key_than_that_of_earlier_loads_is_refused(
    known: list[str], now: tuple[str, ...], message: str, setting: str
) -> None:
    with pytest.raises(InvalidInput) as raised:
        remembered(replace(READ, key=now), {"key": known})

    assert f"the key of `public.orders` in the database {message}" in raised.value.message
    assert f"`primary_key: {setting}`" in (raised.value.hint or "")
    # The document's own word counts, whatever the database says.
    assert remembered(READ, {"key": known}) == {}


@pytest.mark.parametrize(
    ("given", "schema", "table", "expected"),
    [
        ("public.*", "public", "orders", True),
        ("public.*", "sales", "orders", False),
        ("*.*", "sales", "a.b", True),
        ("shop.order_?", "shop", "order_1", True),
        ("shop.order_?", "shop", "order_12", False),
        ("shop.Order_*", "shop", "order_1", False),
        ('"a*".x', "a*", "x", True),
        ('"a*".x', "abc", "x", False),
        ("shop.a[b]", "shop", "a[b]", True),
        ("audit_*", "any", "audit_2024", True),
    ],
)
def test_a_glob_matches_each_part_of_a_name(
    given: str, schema: str, table: str, expected: bool
) -> None:
    assert matches(given, schema, table) is expected


@pytest.mark.parametrize(
    ("schema", "table", "written"),
    [
        ("public", "orders", "public.orders"),
        ("sales", "Line.Items", 'sales."Line.Items"'),
        ('o"dd', "a*b", '"o""dd"."a*b"'),
        ("ünï cödé", "%s", "ünï cödé.%s"),
    ],
)
def test_the_name_of_a_table_that_was_found_means_this_table(
    schema: str, table: str, written: str
) -> None:
    assert written_name(schema, table) == written
    assert [(part.text, part.glob) for part in name_parts(written)] == [
        (schema, False),
        (table, False),
    ]
