"""Types with the fields that structs have got since."""

from __future__ import annotations

import pytest

from lakeload_jobs.core.nested_types import first_difference, new_fields, with_new_fields

UNITED: list[tuple[str, str, str | None, tuple[str, ...]]] = [
    ("int", "int", "int", ()),
    ("int", "bigint", None, ()),
    ("struct<a:int>", "struct<a:int,b:string>", "struct<a:int,b:string>", ("s.b",)),
    ("struct<a:int,b:string>", "struct<a:int>", "struct<a:int,b:string>", ()),
    ("struct<a:int,b:date>", "struct<c:date,A:int>", "struct<a:int,b:date,c:date>", ("s.c",)),
    ("struct<a:int>", "struct<a:bigint,b:string>", None, ()),
    ("struct<a:int>", "int", None, ()),
    ("struct<a:int>", "array<int>", None, ()),
    ("array<int>", "array<bigint>", None, ()),
    (
        "array<struct<a:decimal(5,2)>>",
        "array<struct<a:decimal(5,2),b:map<string,int>>>",
        "array<struct<a:decimal(5,2),b:map<string,int>>>",
        ("s.element.b",),
    ),
    (
        "map<string,struct<x:struct<a:int>>>",
        "map<string,struct<x:struct<b:int>,y:int>>",
        "map<string,struct<x:struct<a:int,b:int>,y:int>>",
        ("s.value.x.b", "s.value.y"),
    ),
    ("map<int,string>", "map<bigint,string>", None, ()),
    ("struct<>", "struct<a:int>", "struct<a:int>", ("s.a",)),
    ("struct<a:int", "struct<a:int>", None, ()),
    ("struct<a:int>>", "struct<a:int>", None, ()),
    ("struct<a:int,A:int>", "struct<a:int>", None, ()),
]


@pytest.mark.parametrize(("before", "now", "united", "new"), UNITED)
def test_structs_get_fields_at_their_end(
    before: str, now: str, united: str | None, new: tuple[str, ...]
) -> None:
    assert with_new_fields(before, now) == united
    if united is not None:
        assert new_fields(before, united, "s") == new
        assert with_new_fields(united, before) == united


def test_a_type_that_did_not_change_is_not_read() -> None:
    assert with_new_fields("struct<<", "struct<<") == "struct<<"
    assert new_fields("struct<<", "struct<<", "s") == ()


@pytest.mark.parametrize(
    ("before", "now", "difference"),
    [
        ("int", "string", ((), "int", "string")),
        ("struct<x:int,y:int>", "struct<y:int,x:string>", (("x",), "int", "string")),
        (
            "struct<a:array<struct<b:int>>>",
            "struct<A:array<struct<b:date>>>",
            (("A", "element", "b"), "int", "date"),
        ),
        ("map<string,int>", "map<string,double>", (("value",), "int", "double")),
        ("map<int,int>", "map<string,int>", (("key",), "int", "string")),
        ("struct<x:int>", "array<int>", ((), "struct<x:int>", "array<int>")),
        ("struct<x:int>", "struct<new:int,x:date>", (("x",), "int", "date")),
    ],
)
def test_first_difference_is_the_path_of_the_first_part_of_another_type(
    before: str, now: str, difference: tuple[tuple[str, ...], str, str]
) -> None:
    assert first_difference(before, now) == difference
