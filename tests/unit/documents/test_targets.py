"""Target names over all tables of a pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeload.documents.cross import targets
from lakeload.documents.pipeline import Table
from tests.unit.documents.documents import PIPELINE, messages, problems_of


def table(source: str, name: str | None = None, namespace: str | None = None) -> Table:
    return Table(table=source, name=name, namespace=namespace)


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ([table("Orders"), table("orders"), table("ORDERS")], ["Orders", "orders_1", "ORDERS_2"]),
        ([table("a-b"), table("a b"), table("a_b_1")], ["a_b", "a_b_2", "a_b_1"]),
        ([table("a.b")], ["a_b"]),
        ([table("crème", name="2 für 1")], ["_2_fur_1"]),
        ([table("x y"), table("x-y"), table("z", name="x_y_1")], ["x_y", "x_y_2", "x_y_1"]),
    ],
)
def test_derived_names_are_numbered_and_given_names_are_kept(
    tables: list[Table], expected: list[str]
) -> None:
    found = targets(tables, namespace=None, destination_prefix="")

    assert [target.table for target in found] == expected


@pytest.mark.parametrize(
    ("namespace", "prefix", "own", "schema"),
    [
        (None, "", None, ""),
        (None, "postgres", None, "postgres"),
        ("sales data", "postgres", None, "sales_data"),
        ("sales", "postgres", "hr", "hr"),
        ("sales", "", "", ""),
    ],
)
def test_the_nearest_namespace_wins(
    namespace: str | None, prefix: str, own: str | None, schema: str
) -> None:
    [target] = targets([table("t", namespace=own)], namespace=namespace, destination_prefix=prefix)

    assert target.schema == schema


def test_names_collide_within_one_schema_only() -> None:
    found = targets(
        [table("t"), table("T", namespace="b"), table("T", namespace="A")],
        namespace="a",
        destination_prefix="",
    )

    assert [(target.schema, target.table) for target in found] == [
        ("a", "t"),
        ("b", "T"),
        ("A", "T_1"),
    ]


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (
            "[{table: a, path: x}, {table: b, name: A, path: x}]",
            "`A` is the target of the table `a` already",
        ),
        (
            "[{table: a, name: t, path: x}, {table: b, name: T, path: x}]",
            "`T` is the target of the table `a` already",
        ),
        ("[{table: a, path: x}, {table: a, path: y}]", "the table `a` is listed twice"),
        (
            "[{table: _lakeload, path: x}]",
            "the target table `_lakeload` is where lakeload stores its own log",
        ),
        (
            "[{table: t, namespace: _LakeLoad, path: x}]",
            "the target schema `_LakeLoad` is where lakeload stores its own log",
        ),
    ],
)
def test_two_tables_never_share_a_target(tables: str, message: str, tmp_path: Path) -> None:
    assert messages(problems_of(tmp_path, f"{PIPELINE}tables: {tables}\n")) == [message]


def test_invalid_table_does_not_hide_problems_of_others(tmp_path: Path) -> None:
    tables = "[{table: a, path: x}, {table: 5, path: x}, {table: a, path: y, mode: UPSET}, "
    found = problems_of(tmp_path, f"{PIPELINE}tables: {tables}{{table: b, name: A, path: z}}]\n")

    assert {problem.code for problem in found} == {
        "wrong-type",
        "unknown-value",
        "duplicate-target",
    }
