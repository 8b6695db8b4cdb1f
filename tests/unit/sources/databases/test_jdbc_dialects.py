"""The SELECTs of SQL Server and Oracle, which no server of the tests runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlglot

from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.contract.spec import JdbcInput
from lakeload_jobs.sources.databases.columns import CatalogColumn
from lakeload_jobs.sources.databases.engines.driver import catalog as jdbc_driver
from lakeload_jobs.sources.databases.engines.driver.catalog import select, statement, table_of
from lakeload_jobs.sources.databases.engines.oracle import engine as oracle
from lakeload_jobs.sources.databases.engines.oracle.engine import ORACLE as ORACLE_ENGINE
from lakeload_jobs.sources.databases.engines.sqlserver import engine as sqlserver
from lakeload_jobs.sources.databases.engines.sqlserver.engine import SQLSERVER as SQLSERVER_ENGINE

GOLDEN = Path(__file__).with_name("jdbc_dialects")
SQLSERVER = JdbcInput("SQLSERVER", "db", 1433, "shop", "dbo", "Orders", user="sa")
ORACLE = JdbcInput("ORACLE", "::1", 1521, "ORCL", "SHOP", "ORDERS", user="sa")
MODULES: dict[str, Any] = {"SQLSERVER": sqlserver, "ORACLE": oracle}
ENGINES = {"SQLSERVER": SQLSERVER_ENGINE.dialect, "ORACLE": ORACLE_ENGINE.dialect}
DIALECTS = {"SQLSERVER": "tsql", "ORACLE": "oracle"}


UNPARSED = ("JSON", "XMLTYPE")
"""Oracle's types whose functions sqlglot does not know."""


def lines(select: str) -> str:
    """Return a SELECT with each column on a line."""
    return re.sub(r"( AS \"c\d+\"),? ", r"\1,\n  ", select) + "\n"


def of_type(kind: str, precision: int = 0, scale: int = 0) -> CatalogColumn:
    """Return a column as the driver describes it."""
    return CatalogColumn(f"a {kind}", "", kind, precision, scale)


def statement_of(read: JdbcInput, columns: Sequence[CatalogColumn]) -> str:
    """Return the SELECT of a table."""
    relation, dialect = table_of(read.schema, read.table, '"'), ENGINES[read.database]
    selected = select(dialect, read, relation, columns)
    return statement(dialect, relation, selected, '"id" > 5', '"id"')


@pytest.mark.parametrize("read", [SQLSERVER, ORACLE], ids=["sqlserver", "oracle"])
def test_the_select_is_sql_of_the_database(read: JdbcInput) -> None:
    module = MODULES[read.database]
    kinds = [rule.type for rule in module.RULES] + ["sql_variant", "rowid"]
    names = [kind if read.database == "SQLSERVER" else kind.upper() for kind in kinds]
    found = statement_of(read, [of_type(name, 12, 2) for name in names])

    path = GOLDEN / f"{read.database.lower()}.sql"
    assert lines(found) == path.read_text(encoding="utf-8")
    known = [of_type(name, 12, 2) for name in names if name not in UNPARSED]
    (parsed,) = sqlglot.parse(statement_of(read, known), dialect=DIALECTS[read.database])
    assert isinstance(parsed, sqlglot.exp.Select)
    # Nothing of it is text that the parser has passed over.
    assert not list(parsed.find_all(sqlglot.exp.Command))


@pytest.mark.parametrize(
    ("precision", "scale", "target"),
    [
        (12, 2, "decimal(12,2)"),
        (38, 0, "decimal(38,0)"),
        (38, 38, "decimal(38,38)"),
        (3, 5, "decimal(5,5)"),  # 0.00123
        (3, -2, "decimal(5,0)"),  # 12300
        (38, -2, "string"),
        (0, 0, "decimal(38,0)"),  # NUMBER(*)
        (0, -127, "string"),  # NUMBER
        (126, -127, "string"),  # FLOAT
    ],
)
def test_a_number_of_oracle_is_a_decimal_where_one_holds_it(
    precision: int, scale: int, target: str
) -> None:
    (column,) = select(
        ENGINES["ORACLE"], ORACLE, table_of("A", "B", '"'), [of_type("NUMBER", precision, scale)]
    )

    assert column.type == target
    assert "'TM9'" in column.expression


def test_what_the_drivers_are_given() -> None:
    password = Secret("hunter2")
    secure = replace(ORACLE, parameters={"sslmode": "verify-full", "connect_timeout": "5"})

    assert (
        jdbc_driver.driver_class(ENGINES[SQLSERVER.database], SQLSERVER)
        == "com.microsoft.sqlserver.jdbc.SQLServerDriver"
    )
    assert ENGINES[SQLSERVER.database].url_of(SQLSERVER) == "jdbc:sqlserver://db:1433"
    assert jdbc_driver.login_of(ENGINES[SQLSERVER.database], SQLSERVER, password) == {
        "databaseName": "shop", "applicationName": "lakeload", "loginTimeout": "15",
        "encrypt": "true", "trustServerCertificate": "false", "user": "sa", "password": "hunter2",
    }  # fmt: skip
    plain = replace(SQLSERVER, parameters={"sslmode": "disable"})
    assert jdbc_driver.login_of(ENGINES[plain.database], plain, None)["encrypt"] == "false"
    assert ENGINES[ORACLE.database].url_of(ORACLE) == "jdbc:oracle:thin:@//[::1]:1521/ORCL"
    assert ENGINES[secure.database].url_of(secure) == "jdbc:oracle:thin:@tcps://[::1]:1521/ORCL"
    assert jdbc_driver.login_of(ENGINES[secure.database], secure, None) == {
        "oracle.net.CONNECT_TIMEOUT": "5000", "v$session.program": "lakeload",
        "oracle.net.ssl_server_dn_match": "true", "user": "sa",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("row", "session", "warns"),
    [
        (("1", "0"), "SET TRANSACTION ISOLATION LEVEL SNAPSHOT; SET LOCK_TIMEOUT 60000", False),
        (("0", "1"), "SET LOCK_TIMEOUT 60000", False),
        (("0", "0"), "SET LOCK_TIMEOUT 60000", True),
    ],
)
def test_sql_server_reads_one_moment_where_it_can(
    row: tuple[str, str], session: str, warns: bool
) -> None:
    asked: list[str] = []

    def fetch(select: str) -> list[tuple[str, str]]:
        asked.append(select)
        return [row]

    found, warnings = SQLSERVER_ENGINE.dialect.session_of(SQLSERVER, fetch)

    assert (found, bool(warnings)) == (session, warns)
    sqlglot.parse_one(asked[0], dialect="tsql")
    assert ORACLE_ENGINE.dialect.session_of(ORACLE, fetch) == ("", ())
