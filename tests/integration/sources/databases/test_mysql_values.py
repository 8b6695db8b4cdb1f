"""Values of MariaDB as Arrow gets them, with PyMySQL as the oracle: none is silently wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import DestinationSpec, JdbcInput
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER
from lakeload_jobs.sources.databases.engines.mysql import catalog as product
from lakeload_jobs.sources.databases.engines.mysql import connection as product_connection
from lakeload_jobs.sources.databases.engines.mysql import types as product_types
from lakeload_jobs.sources.databases.engines.mysql.read import MysqlPart, ReadTable
from lakeload_jobs.sources.databases.identity import TaskIdentity
from tests.servers.mariadb import PASSWORD, USER, MariaDb

VALUES = {
    "tinyint(1)": ["5", "-128", "NULL"],
    "tinyint": ["-128", "127"],
    "tinyint unsigned": ["255"],
    "tinyint(3) unsigned zerofill": ["7"],
    "smallint": ["-32768"],
    "smallint unsigned": ["65535"],
    "mediumint": ["-8388608"],
    "mediumint unsigned": ["16777215"],
    "int": ["-2147483648", "2147483647"],
    "int(10) unsigned zerofill": ["4294967295", "42"],
    "bigint": ["-9223372036854775808", "9223372036854775807"],
    "bigint unsigned": ["18446744073709551615", "0"],
    "serial": ["18446744073709551614"],
    "boolean": ["TRUE", "FALSE"],
    "decimal(12,2)": ["-1234567890.05", "0", "NULL"],
    "decimal(38,38)": ["0.00000000000000000000000000000000000001"],
    "decimal(38,10)": ["9999999999999999999999999999.9999999999"],
    "decimal(39,0)": ["999999999999999999999999999999999999999"],
    "decimal(65,30)": ["-99999999999999999999999999999999999.999999999999999999999999999999"],
    "decimal(10,2) unsigned zerofill": ["1.5"],
    "float": ["1.1", "16777217", "123456.789", "3.40282e38", "1e-45", "-0e0", "NULL"],
    "float(7,2)": ["1234.56"],
    "double": ["0.1", "0.1e0 + 0.2e0", "1.7976931348623157e308", "5e-324", "-0e0", "1/3.0e0"],
    "double(10,2)": ["12345678.91"],
    "bit(1)": ["b'1'", "b'0'", "NULL"],
    "bit(8)": ["b'10101010'"],
    "bit(64)": ["0xFFFFFFFFFFFFFFFF", "0"],
    "year": ["2024", "0", "1901", "2155"],
    "date": ["'0001-01-01'", "'9999-12-31'", "'1500-02-28'", "'2024-02-29'", "NULL"],
    "date NOT NULL": ["'0000-00-00'", "'2024-00-15'", "'2024-02-00'", "'0000-01-01'"],
    "date COMMENT 'invalid'": ["'2023-02-29'", "'2024-02-31'", "'2024-04-31'"],
    "datetime": ["'2024-02-29 23:59:59'", "'0000-00-00 00:00:00'", "'2024-00-15 12:00:00'"],
    "datetime(6)": [
        *("'0001-01-01 00:00:00'", "'9999-12-31 23:59:59.999999'"),
        *("'1969-12-31 23:59:59.000001'", "NULL"),
    ],
    "datetime(3)": ["'2024-03-31 02:30:00.123'"],
    "timestamp NULL": [
        *("'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "'0000-00-00 00:00:00'", "NULL"),
    ],
    "timestamp(6) NULL": ["'2024-10-27 01:30:00.000001'"],
    "time": ["'838:59:59'", "'-838:59:59'", "'24:00:00'", "'-12:00:01'", "NULL"],
    "time(6)": ["'01:02:03.000004'", "'-00:00:00.500000'"],
    "char(5)": ["'ab'", "'ab   '", "''"],
    "char(4) CHARACTER SET latin1": ["'€é'"],
    "varchar(9)": ["'ab  '", "' '"],
    "varchar(9) CHARACTER SET latin1": ["'ÀÿŒ'"],
    "varchar(9) CHARACTER SET utf16": ["'e\u0301\U0001f600'"],
    "varchar(9) CHARACTER SET utf8mb3 COLLATE utf8mb3_bin": ["'日本語'"],
    "tinytext": ["''"],
    "text": ["'a\\tb\\n\\\\N\"q\\'\\0z'", "NULL", "'NULL'"],
    "mediumtext": ["REPEAT('ä', 500000)"],
    "longtext": ["'x'"],
    "enum('a','unsigned','it''s')": ["'a'", "'unsigned'", "3", "''", "NULL"],
    "set('a','b','c')": ["''", "'a,c'", "'b,a'"],
    "json": ['\'{"a": 1, "a":  1.10}\'', "'null'"],
    "binary(4)": ["'a'", "0x00FF"],
    "varbinary(9)": ["''", "'a\\0'"],
    "tinyblob": ["0xFF00"],
    "blob": ["'text'", "NULL"],
    "mediumblob": ["''"],
    "longblob": ["REPEAT(0xFF, 300000)"],
    "uuid": ["'00112233-4455-6677-8899-aabbccddeeff'"],
    "inet4": ["'10.0.0.1'"],
    "inet6": ["'::'", "'2001:db8::ff00:42:8329'", "'::ffff:192.0.2.128'"],
    "geometry": ["ST_GeomFromText('POINT(1 2)', 4326)"],
    "point": ["POINT(1, -2)"],
    "polygon": ["ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))')"],
}
"""Values of each type, written as SQL."""
FLOATS = [1.1, 16777217, 123456.789, 3.40282e38, 1e-45, -0.0, None]
"""What PyMySQL cannot tell: the server writes a `float` with 6 digits."""


class World:
    """A database with a table for each type, named by its place."""

    def __init__(self, server: MariaDb, database: str, password: Path) -> None:
        self.server, self.database = server, database
        self.oracle = server.connect(database, init_command="SET time_zone = '+00:00'")
        self.run("SET sql_mode = 'ALLOW_INVALID_DATES'")
        for number, (kind, values) in enumerate(VALUES.items()):
            self.run(f"CREATE TABLE t{number} (id int PRIMARY KEY, v {kind})")
            rows = ", ".join(f"({place}, {value})" for place, value in enumerate(values))
            self.run(f"INSERT INTO t{number} VALUES {rows}")
        secret = SecretReference("file", str(password))
        place = ("MYSQL", "127.0.0.1", server.port, database, database, "")
        self.read = JdbcInput(*place, user=USER, password=secret)  # type: ignore[arg-type]
        self.identity = TaskIdentity(DestinationSpec("bucket", "us-east-1"), "test", False)
        self.catalog = product_connection.connect(self.read, self.identity.password(self.read))

    def run(self, statement: str) -> tuple[tuple[Any, ...], ...]:
        """Run a statement as the administrator."""
        with self.oracle.cursor() as cursor:
            cursor.execute(statement)
            return tuple(cursor.fetchall())

    def reader(self, table: str, query: str | None = None) -> ReadTable:
        """Return what reads all columns of a table or query, with bad values as null."""
        given = replace(self.read, table=table, query=query)
        relation = product.find_relation(self.catalog, given)
        selected = product_types.select(product.columns(self.catalog, relation, given))
        return ReadTable(given, self.identity, relation, selected, "NULL")


@pytest.fixture(scope="module")
def values(mariadb: MariaDb, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The tables of all values."""
    password = tmp_path_factory.mktemp("secret") / "password"
    password.write_text(PASSWORD, encoding="utf-8")
    made = World(mariadb, mariadb.new_database(), password)
    with closing(made.oracle), closing(made.catalog):
        yield made


def read(reader: ReadTable) -> pa.Table:
    """Return all rows."""
    return pa.Table.from_batches(list(reader(MysqlPart())), reader.schema)


@pytest.mark.parametrize("kind", VALUES)
def test_a_value_is_what_the_driver_of_the_database_reads_or_is_bad(
    values: World, kind: str
) -> None:
    table = f"t{list(VALUES).index(kind)}"
    expected = [value for (value,) in values.run(f"SELECT v FROM {table} ORDER BY id")]

    found = read(values.reader(table)).sort_by("id")

    own = found["v"].to_pylist()
    if kind == "float":
        expected = list(FLOATS)
        assert str(own[5]) == "-0.0"
    kinds = found.schema.field("v").type
    assert own == [_as_loaded(value, kinds, kind) for value in expected]
    bad = [int(_is_bad(value, kinds)) for value in expected]
    counted = found[BAD_VALUES_HELPER].to_pylist() if BAD_VALUES_HELPER in found.schema.names else 0
    assert counted == (bad if pa.types.is_temporal(kinds) else 0)
    # The types of a query are those of the protocol, not of the catalog.
    of_query = values.reader("", f"SELECT * FROM {table} -- all")
    assert [column.type for column in of_query.selected] == [
        column.type for column in values.reader(table).selected
    ]
    assert read(of_query).sort_by("id") == found


def _is_bad(value: Any, kind: Any) -> bool:
    return pa.types.is_temporal(kind) and isinstance(value, str)


def _as_loaded(value: Any, kind: Any, declared: str) -> Any:
    """Return what PyMySQL reads as it is loaded."""
    if value is None or _is_bad(value, kind):
        return None
    if isinstance(value, bytes) and declared.startswith("bit"):
        number = int.from_bytes(value, "big")
        return bool(number) if declared == "bit(1)" else Decimal(number)
    if kind == pa.float32():
        return float(np.float32(value))
    if isinstance(value, timedelta):
        return _time_text(value, declared)
    if isinstance(value, datetime) and getattr(kind, "tz", None):
        return value.replace(tzinfo=UTC)
    if isinstance(value, Decimal) and pa.types.is_string(kind):
        return format(value, "f")
    if isinstance(value, str) and pa.types.is_binary(kind):
        return value.encode()
    return value


def _time_text(value: timedelta, declared: str) -> str:
    micros = abs(value) // timedelta(microseconds=1)
    seconds, fraction = divmod(micros, 10**6)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    sign = "-" if value < timedelta() else ""
    return f"{sign}{text}.{fraction:06}" if "(6)" in declared else f"{sign}{text}"
