"""Tables of databases that only a JDBC driver of the user knows: H2 and SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import ColumnsSpec, JdbcInput, RunOptions, TableSpec
from lakeload_jobs.sources.databases.columns import CatalogColumn, Fetch, Rule
from lakeload_jobs.sources.databases.engines.driver import source as jdbc_url
from lakeload_jobs.sources.databases.engines.oracle.engine import ORACLE, OracleDialect
from lakeload_jobs.sources.databases.engines.registry import ENGINES
from tests.integration.formats.worlds import World, load

PASSWORD = "h2 secret"

# The rows are the same below both formats; one test shows that Iceberg takes them.
parquet_only = pytest.mark.parametrize("world", ["parquet"], indirect=True)


@dataclass(frozen=True)
class H2:
    """A database in the memory of Spark's JVM."""

    connection: Any
    input: JdbcInput

    def run(self, *statements: str) -> None:
        """Execute SQL."""
        for statement in statements:
            self.connection.createStatement().execute(statement)

    def table(self, world: World, name: str = "ORDERS", **changes: Any) -> TableSpec:
        """Return the spec of a table of the schema `PUBLIC`."""
        cursor = changes.get("cursor")
        given = replace(self.input, table=name, incremental=cursor is not None)
        return replace(world.table("none", **changes), input=given)


@pytest.fixture
def h2(spark: SparkSession, jdbc_jars: tuple[Path, ...], tmp_path: Path) -> Iterator[H2]:
    """A database of the test's own."""
    url = f"jdbc:h2:mem:{uuid4().hex};DB_CLOSE_DELAY=-1"
    secret = tmp_path / "password"
    secret.write_text(PASSWORD, encoding="utf-8")
    driver, properties = jdbc_url._of_spark("org.h2.Driver")
    properties.setProperty("user", "sa")
    properties.setProperty("password", PASSWORD)
    connection = driver.connect(url, properties)
    given = JdbcInput(
        "OTHER", "", 0, "", "PUBLIC", "ORDERS", user="sa",
        password=SecretReference("file", str(secret)), url=url, jars=(str(jdbc_jars[0]),),
    )  # fmt: skip
    yield H2(connection, given)
    connection.createStatement().execute("SHUTDOWN")


ORDERS = """CREATE TABLE orders (
  id int PRIMARY KEY, "Note" varchar(20), "note" varchar(20), price numeric(10, 2),
  exactly numeric(50, 3), free decfloat, at timestamp, zoned timestamp with time zone, born date,
  noon time, paid boolean, body varbinary
)"""
ROW = """INSERT INTO orders VALUES (
  1, 'a', 'b', 1.50, 12345678901234567890123456789012345678901234567.125, 1.5,
  '2024-03-31 02:30:00.123456', '2024-01-01 10:00:00+02:00', '1582-10-15', '12:00:01', true, X'00ff'
)"""


def test_rows_are_read_once_with_the_values_of_the_database(world: World, h2: H2) -> None:
    h2.run(ORDERS, ROW, "INSERT INTO orders (id) VALUES (2)")

    result = load(world, h2.table(world))
    assert result.writer == "direct"

    assert result.error is None, result.error
    assert (result.status, result.rows, result.reader) == ("LOADED", 2, "jvm")
    assert ENGINES["OTHER"].facts.warning in result.warnings
    first, second = sorted(world.rows(), key=lambda row: row["ID"])
    assert {name: value for name, value in first.items() if not name.startswith("_supa")} == {
        "ID": 1, "Note": "a", "note_1": "b", "PRICE": Decimal("1.50"),
        "EXACTLY": "12345678901234567890123456789012345678901234567.125", "FREE": "1.5",
        "AT": datetime(2024, 3, 31, 2, 30, 0, 123456),
        "ZONED": datetime(2024, 1, 1, 8, tzinfo=UTC), "BORN": date(1582, 10, 15),
        "NOON": "12:00:01", "PAID": True, "BODY": b"\x00\xff",
    }  # fmt: skip
    assert second["Note"] is None
    assert sorted(row["_supa_index"] for row in (first, second)) == [1, 2]
    assert PASSWORD not in repr(result)


@parquet_only
def test_dates_that_java_moves_are_bad_values(world: World, h2: H2) -> None:
    h2.run(
        "CREATE TABLE orders (id int PRIMARY KEY, born date, at timestamp)",
        "INSERT INTO orders VALUES (1, '0001-01-01', '2024-01-01 00:00:00'),"
        " (2, '1582-10-14', '1500-01-01 00:00:00'), (3, '2024-01-01', null)",
    )

    failed = load(world, h2.table(world, primary_key=("ID",)))

    assert failed.error is not None
    assert "column `BORN`: the value `" in failed.error.message
    assert "row with ID = 2" in failed.error.message
    assert world.rows() == []
    loaded = load(world, h2.table(world), on_bad_value="NULL")
    assert any("3 values" in warning for warning in loaded.warnings), loaded.warnings
    assert [row["BORN"] for row in world.rows() if row["ID"] < 3] == [None, None]


@parquet_only
def test_an_empty_table_and_a_query_with_a_comment(world: World, h2: H2) -> None:
    h2.run("CREATE TABLE orders (id int)", "INSERT INTO orders VALUES (7)")
    h2.run("CREATE TABLE none (id int)")
    query = "SELECT id, 'x' AS word FROM orders -- all;"
    read = replace(h2.input, schema="", table="", query=query)

    asked = load(world, replace(world.table("none"), input=read))
    assert asked.error is None, asked.error
    assert [(row["ID"], row["WORD"]) for row in world.rows()] == [(7, "x")]

    empty = load(world, h2.table(world, "NONE"))
    assert (empty.error, empty.rows) == (None, 0)


@parquet_only
def test_rows_that_are_not_those_that_were_counted_are_not_committed(
    world: World, h2: H2, monkeypatch: pytest.MonkeyPatch
) -> None:
    h2.run("CREATE TABLE orders (id int)", "INSERT INTO orders VALUES (1), (2)")
    whole = jdbc_url.DriverSlice._frame

    def loses_one(self: jdbc_url.DriverSlice, spark: SparkSession) -> Any:
        return whole(self, spark).where("c0 = 1")

    monkeypatch.setattr(jdbc_url.DriverSlice, "_frame", loses_one)

    result = load(world, h2.table(world))

    assert result.error is not None
    assert "2 rows were counted, and 1 were read by the same statement" in result.error.message
    assert result.error.retryable
    assert (world.rows(), world.left()) == ([], [])


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("int", ["1", "2", "3"]),
        ("numeric(20)", ["1", "2", "30000000000000000000"]),
        ("date", ["'2024-01-01'", "'2024-01-02'", "'2024-01-03'"]),
        (
            "timestamp",
            ["'2024-01-01 10:00:00.5'", "'2024-01-01 10:00:01'", "'2024-02-01 00:00:00'"],
        ),
    ],
)
@parquet_only
def test_a_cursor_reads_new_rows_and_appends_none_twice(
    world: World, h2: H2, kind: str, values: list[str]
) -> None:
    one, two, three = values
    h2.run(
        f"CREATE TABLE orders (id int, version {kind})",
        f"INSERT INTO orders VALUES (1, {one}), (2, {two})",
    )
    table = h2.table(world, cursor="VERSION")

    first = load(world, table)
    idle = load(world, table)
    h2.run(f"INSERT INTO orders VALUES (3, {two}), (2, {two}), (4, {one})")
    again = load(world, table)
    h2.run(f"INSERT INTO orders VALUES (5, {three})")
    last = load(world, table)

    assert [one.error for one in (first, idle, again, last)] == [None] * 4
    assert (first.rows, idle.status, again.rows, last.rows) == (2, "NO_OP", 2, 1)
    assert sorted(row["ID"] for row in world.rows()) == [1, 2, 2, 3, 5]


@parquet_only
def test_a_load_begins_at_a_value_and_leaves_out_rows_by_where(world: World, h2: H2) -> None:
    h2.run(
        "CREATE TABLE orders (id int, version int)",
        "INSERT INTO orders VALUES (1, 1), (2, 2), (3, 3), (4, 3)",
    )
    table = h2.table(world, cursor="VERSION", where="ID <> 4")

    first = load(world, table, options=RunOptions(since="2"))
    late = load(world, table, options=RunOptions(since="4"))
    again = load(world, table, options=RunOptions(since="1"))

    assert (first.error, first.rows, again.error, again.rows) == (None, 2, None, 3)
    assert late.error is not None
    assert "the greatest `VERSION` is 3" in late.error.message
    assert sorted(row["ID"] for row in world.rows()) == [1, 2, 2, 3, 3]


@pytest.mark.parametrize("world", ["iceberg"], indirect=True)
def test_upsert_takes_the_newest_row(world: World, h2: H2) -> None:
    h2.run(
        "CREATE TABLE orders (id int, version int, note varchar(9))",
        "INSERT INTO orders VALUES (1, 1, 'a'), (2, 2, 'b')",
    )
    table = h2.table(world, cursor="VERSION", mode="UPSERT", primary_key=("ID",))
    first = load(world, table)
    h2.run("UPDATE orders SET version = 3, note = 'c' WHERE id = 1")
    second = load(world, table)

    assert (first.error, second.error) == (None, None)
    assert {row["ID"]: row["NOTE"] for row in world.rows()} == {1: "c", 2: "b"}


@parquet_only
def test_columns_are_cast_also_where_rows_are_appended_by_a_cursor(world: World, h2: H2) -> None:
    h2.run(
        "CREATE TABLE orders (id int, version int, amount varchar(9))",
        "INSERT INTO orders VALUES (1, 1, '1.5')",
    )
    columns = ColumnsSpec(types={"AMOUNT": "decimal(9,2)", "VERSION": "string"})
    table = h2.table(world, cursor="VERSION", columns=columns)
    load(world, table)
    h2.run("INSERT INTO orders VALUES (2, 1, '2.5')")

    result = load(world, table)

    assert (result.error, result.rows) == (None, 1)
    rows = sorted((row["ID"], row["AMOUNT"], row["VERSION"]) for row in world.rows())
    assert rows == [(1, Decimal("1.50"), "1"), (2, Decimal("2.50"), "1")]


@parquet_only
@pytest.mark.parametrize(
    ("changes", "message", "hint"),
    [
        ({"password": SecretReference("env", "PATH")}, "Wrong user name or password", "`user` and"),
        ({"table": "ORDER"}, "sees no table `PUBLIC.ORDER`", "did you mean `PUBLIC.ORDERS`"),
        ({"schema": "", "table": "LISTS"}, "[UNRECOGNIZED", ""),
        ({"jars": ("/nowhere/h2.jar",)}, "there is no file `/nowhere/h2.jar`", "relative to"),
        ({"driver": "org.h2.Drivr"}, "no class `org.h2.Drivr`", "did you mean `org.h2.Driver`"),
        ({"url": "jdbc:sqlite:none"}, "does not take the URL", "are of two databases"),
        ({"query": "SELECT 1 AS a, 2 AS a", "table": ""}, "Duplicate column name", "another name"),
        ({"query": "SELECT nothing", "table": ""}, "(SQLSTATE 42S22)", "check the names"),
        ({"query": "SELECT 1 / (id - id) AS a FROM orders", "table": ""}, "(SQLSTATE 22012)", ""),
    ],
)
def test_what_is_wrong_is_said(
    world: World, h2: H2, changes: dict[str, Any], message: str, hint: str
) -> None:
    h2.run("CREATE TABLE orders (id int)", "INSERT INTO orders VALUES (1)")
    h2.run("CREATE TABLE lists (a int array)")
    table = replace(h2.table(world), input=replace(h2.input, **changes))

    result = load(world, table)

    assert result.error is not None
    assert message.replace("[UNRECOGNIZED", "INTEGER ARRAY") in result.error.message
    assert hint in (result.error.hint or ""), result.error
    assert PASSWORD not in repr(result)
    assert (world.rows(), world.left()) == ([], [])


@parquet_only
def test_integers_of_sqlite_have_64_bits(
    world: World, jdbc_jars: tuple[Path, ...], tmp_path: Path
) -> None:
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, amount NUMERIC, note TEXT)"
        )
        connection.execute("INSERT INTO orders VALUES (1, 1.125, 'a'), (5000000000, 7, NULL)")
    read = JdbcInput(
        "OTHER", "", 0, "", "", "orders", url=f"jdbc:sqlite:{path}", jars=(str(jdbc_jars[1]),)
    )

    result = load(world, replace(world.table("none"), input=read))

    assert result.error is None, result.error
    rows = sorted((row["id"], row["amount"], row["note"]) for row in world.rows())
    assert rows == [(1, "1.125", "a"), (5000000000, "7", None)]
    assert result.target == "public.orders" or result.rows == 2


class OracleOfH2(OracleDialect):
    """The module of Oracle for H2, which runs its SELECT in `MODE=Oracle`."""

    driver = "org.h2.Driver"
    KINDS: Mapping[str, str] = {"NUMERIC": "NUMBER", "CHARACTER VARYING": "VARCHAR2"}

    def url_of(self, read: JdbcInput) -> str:
        return read.url or ""

    def properties_of(self, read: JdbcInput) -> dict[str, str]:
        return {}

    def session_of(self, read: JdbcInput, fetch: Fetch) -> tuple[str, tuple[str, ...]]:
        assert fetch("SELECT COUNT(*) FROM orders") == (("3",),)
        return "SET SCHEMA later", ("a warning of the session",)

    def rule_of(self, column: CatalogColumn, read: JdbcInput) -> tuple[Rule, str]:
        # What H2 calls DATE has no time of day.
        kind = "DATE" if column.name == "BORN" else self.KINDS.get(column.declared, column.declared)
        return super().rule_of(replace(column, declared=kind), read)


@parquet_only
def test_values_that_cross_as_text_are_exact_or_bad(
    world: World, h2: H2, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ORACLE, "dialect", OracleOfH2())
    h2.run(
        "CREATE SCHEMA later",
        "CREATE TABLE orders (id numeric(9) PRIMARY KEY, price numeric(10, 2), far numeric(50),"
        " born timestamp, at timestamp(9), zoned timestamp with time zone, note varchar(9))",
        "INSERT INTO orders VALUES (1, 1.50, 1e45, '2024-03-31 02:30:00',"
        " '9999-12-31 23:59:59.123456', '2024-01-01 10:00:00+02:00', 'a'), (2, -0.05, null,"
        " '1500-01-01 00:00:00', '2024-01-01 00:00:00.123456789', null, null),"
        " (3, null, null, null, null, null, null)",
    )
    read = replace(h2.input, database="ORACLE", url=f"{h2.input.url};MODE=Oracle")
    # H2 has no SYS_EXTRACT_UTC.
    columns = ColumnsSpec(exclude=("ZONED",))
    table = world.table("none", columns=columns, primary_key=("ID",))

    failed = load(world, replace(table, input=read))
    loaded = load(world, replace(table, input=read, on_bad_value="NULL"))

    assert failed.error is not None
    said = failed.error.message
    assert "row with ID = 2: column `BORN`: the value `1500-01-01 00:00:00` cannot be" in said
    assert "column `AT`: the value `2024-01-01 00:00:00.123456789` cannot be loaded" in said
    assert loaded.error is None, loaded.error
    assert {ENGINES["ORACLE"].facts.warning, "a warning of the session"} < set(loaded.warnings)
    assert any("2 values" in warning for warning in loaded.warnings), loaded.warnings
    first, second, _ = sorted(world.rows(), key=lambda row: row["ID"])
    assert (first["ID"], first["PRICE"], first["FAR"]) == (
        Decimal(1),
        Decimal("1.50"),
        "1" + "0" * 45,
    )
    assert first["BORN"] == datetime(2024, 3, 31, 2, 30)
    assert first["AT"] == datetime(9999, 12, 31, 23, 59, 59, 123456)
    assert (second["PRICE"], second["BORN"], second["AT"]) == (Decimal("-0.05"), None, None)
