"""Which tables a query names, and what DuckDB makes of it."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from lakeload.app import app
from lakeload.lake.query import Answer, names_in, query
from lakeload.lake.tables import chosen
from lakeload.ui.lake import show_answer
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import TableFormat
from lakeload_jobs.core.layout import TableLocation


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("select 1", set()),
        ("from shop.orders select id", {"shop.orders"}),
        ('select * from "Shop".Orders o join b using (id)', {"Shop.Orders", "b"}),
        ("with b as (from a) select (select max(x) from c) from b", {"a", "c"}),
        ("describe shop.orders", {"shop.orders"}),
    ],
)
def test_names_in_a_query_are_its_tables(sql: str, names: set[str]) -> None:
    assert names_in(sql) == names


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("selec 1", "syntax error"),
        ("drop table a", "changes something"),
        ("show tables", "nothing to list"),
    ],
)
def test_names_in_what_is_no_query_raises(sql: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as raised:
        names_in(sql)
    assert raised.value.hint


def test_query_returns_numbers_as_such_and_all_else_as_text_in_utc() -> None:
    when = datetime(2026, 3, 1, 8, tzinfo=UTC)
    rows = pa.table({"n": [1, None], "at": [when, None], "d": pa.array([{"a": [1.5]}, None])})

    found = query({"shop.t": rows, "t": rows}, "select s.*, t.n from shop.t s join t using (n)")

    assert found.columns == ("n", "at", "d", "n")
    assert found.rows == ((1, "2026-03-01 08:00:00+00:00", '{"a": [1.5]}', 1),)


def test_query_that_duckdb_rejects_raises_its_message() -> None:
    with pytest.raises(InvalidInput, match='"nope" not found'):
        query({"t": pa.table({"n": [1]})}, "select nope from t")


def test_table_is_chosen_by_its_name_where_only_one_has_it() -> None:
    there: list[tuple[TableFormat, TableLocation]] = [
        ("PARQUET", TableLocation("", "shop", "orders")),
        ("PARQUET", TableLocation("", "old", "orders")),
        ("PARQUET", TableLocation("", "shop", "rides")),
        ("ICEBERG", TableLocation("", "shop", "rides")),
        ("ICEBERG", TableLocation("", "shop", "cities")),
    ]
    assert chosen("SHOP.orders", there) == there[0]
    assert chosen("cities", there) == there[4]
    for name, message, hint in (
        (
            "orders",
            "several schemas have a table `orders`",
            "name one: `old.orders`, `shop.orders`",
        ),
        ("shop.rides", "is a Parquet table and an Iceberg table", "`--table-format PARQUET`"),
        ("citis", "the lake has no table `citis`", "did you mean `shop.cities`?"),
        ("x", "the lake has no table `x`", "there are `old.orders`, `shop.cities`, "),
    ):
        with pytest.raises(InvalidInput, match=message) as raised:
            chosen(name, there)
        assert hint in str(raised.value.hint)
    with pytest.raises(InvalidInput, match="no table `a`") as raised:
        chosen("a", [])
    assert "lakeload sync" in str(raised.value.hint)


def test_nested_and_binary_values_are_text_that_other_programs_read() -> None:
    day, amount = date(2026, 3, 1), Decimal("1.50")
    rows = pa.table(
        {"s": [{"tags": ["ä", None], "day": day, "amount": amount}], "b": [b"\x00\xff"]}
    )

    [(nested, binary)] = query({"t": rows}, "select s, b from t").rows

    assert json.loads(str(nested)) == {"tags": ["ä", None], "day": "2026-03-01", "amount": "1.50"}
    assert binary == "\\x00ff"


def test_rows_of_a_pipe_are_whole_lines(capsys: pytest.CaptureFixture[str]) -> None:
    wide = "x" * 200
    show_answer(Answer(("a", "b"), (("1", wide),)))

    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == ["a", "b"]
    assert f"1    {wide}" in row


def test_numbers_of_a_query_are_shown_without_marks(capsys: pytest.CaptureFixture[str]) -> None:
    numbers = (2024, -1234567, 12345678901234567890, None)
    show_answer(Answer(("a", "b", "c", "d"), (numbers,)))
    show_answer(Answer(("a", "w"), ((2024, "x" * 200),)))
    show_answer(Answer(("deleted",), ((True,), (False,))))

    printed = capsys.readouterr().out.split()
    assert printed[-2:] == ["true", "false"]
    assert printed[4:8] == ["2024", "-1234567", "12345678901234567890", "null"]
    assert printed[10] == "2024"


def test_small_decimals_are_plain_numbers() -> None:
    rows = pa.table({"d": [Decimal("0.0000000"), Decimal("0.0000001"), None]})

    assert query({"t": rows}, "select d, [d] as l from t").rows == (
        ("0.0000000", '["0.0000000"]'),
        ("0.0000001", '["0.0000001"]'),
        (None, "[null]"),
    )


def test_statement_without_quotes_is_refused_with_the_quotes() -> None:
    done = CliRunner().invoke(app, ["lake", "query", "SELECT", "1"])

    assert done.exit_code == 2
    assert "2 arguments" in done.output
    assert "in quotes" in done.output
