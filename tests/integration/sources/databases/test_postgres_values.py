"""Values of PostgreSQL as Arrow gets them, with psycopg as the oracle: none is silently wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from lakeload_jobs.contract.secrets import Secret, SecretReference
from lakeload_jobs.contract.spec import DestinationSpec, JdbcInput, OnBadValue
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER
from lakeload_jobs.sources.base import BadValuesFound
from lakeload_jobs.sources.databases.engines.postgres import catalog as product
from lakeload_jobs.sources.databases.engines.postgres import types as product_types
from lakeload_jobs.sources.databases.engines.postgres.adbc import ReadPart
from lakeload_jobs.sources.databases.engines.postgres.jvm import part_frames
from lakeload_jobs.sources.databases.engines.postgres.snapshot import ExportedSnapshot, PostgresPart
from lakeload_jobs.sources.databases.identity import TaskIdentity
from tests.servers.postgres import PASSWORD, USER, Postgres

VALUES = {
    "numeric(12,2) NaN": "'NaN'::numeric(12,2)",
    "numeric(12,2)": "-1234567890.05::numeric(12,2)",
    "numeric free 1e-30": "0.000000000000000000000000000001::numeric",
    "numeric free 40 digits": "1234567890123456789012345678901234567890::numeric",
    "numeric infinity": "'Infinity'::numeric",
    "numeric free NaN": "'NaN'::numeric",
    "numeric free 1/3": "(1::numeric/3)",
    "numeric(38,10) max": "9999999999999999999999999999.9999999999::numeric(38,10)",
    "numeric(38,0) min": "-99999999999999999999999999999999999999::numeric(38)",
    "numeric(50,20)": "123456789012345678901234567890.12345678901234567890::numeric(50,20)",
    "numeric(5,-2)": "12300::numeric(5,-2)",
    "numeric(5,-2) max": "9999900::numeric(5,-2)",
    "numeric(3,5)": "0.00123::numeric(3,5)",
    "timestamp infinity": "'infinity'::timestamp",
    "timestamp -infinity": "'-infinity'::timestamp",
    "timestamp BC": "'0044-03-15 BC'::timestamp",
    "timestamp year 20000": "'20000-01-01'::timestamp",
    "timestamp 294276": "'294276-12-31 23:59:59'::timestamp",
    "timestamp first": "'0001-01-01 00:00:00'::timestamp",
    "timestamp last": "'9999-12-31 23:59:59.999999'::timestamp",
    "timestamp micros": "'1969-12-31 23:59:59.000001'::timestamp",
    "timestamp(0)": "'2024-02-29 12:00:00.4'::timestamp(0)",
    "timestamptz infinity": "'infinity'::timestamptz",
    "timestamptz -infinity": "'-infinity'::timestamptz",
    "timestamptz BC": "'0001-12-31 BC'::timestamptz",
    "timestamptz first": "'0001-01-01 00:00:00+00'::timestamptz",
    "timestamptz last": "'9999-12-31 23:59:59.999999+00'::timestamptz",
    "timestamptz zone": "'2024-03-31 02:30:00.123456+05:30'::timestamptz",
    "date infinity": "'infinity'::date",
    "date -infinity": "'-infinity'::date",
    "date BC": "'0044-03-15 BC'::date",
    "date 5000000": "'5874897-01-01'::date",
    "date first": "'0001-01-01'::date",
    "date last": "'9999-12-31'::date",
    "date before 1582": "'1500-02-28'::date",
    "time 24:00": "'24:00:00'::time",
    "time micros": "'01:02:03.000004'::time",
    "timetz": "'12:00:00+02'::timetz",
    "interval": "'1 year 2 mons 3 days 04:05:06.789'::interval",
    "interval negative": "'-1 year -3 days 04:05:06'::interval",
    "uuid": "'00112233-4455-6677-8899-aabbccddeeff'::uuid",
    "json": """'{"a": 1, "a":  1.10}'::json""",
    "jsonb": """'{"a": 12345678901234567890.10}'::jsonb""",
    "int[]": "'{1,2,NULL}'::int[]",
    "int[] empty": "'{}'::int[]",
    "text[]": """'{a,"b,c",NULL,"NULL","q\\"\\\\"}'::text[]""",
    "int[][]": "'{{1,2},{3,4}}'::int[]",
    "numeric[]": "'{1.10,2.2,12345678901234567890.123456789}'::numeric[]",
    "timestamptz[]": "array['2024-01-01 00:00+02'::timestamptz]",
    "uuid[]": "array['00112233-4455-6677-8899-aabbccddeeff'::uuid]",
    "enum": "'ok'::mood",
    "enum[]": "array['ok'::mood]::mood[]",
    "bytea": "'\\xdead00beef'::bytea",
    "bytea empty": "''::bytea",
    "money": "'$1,234.56'::money",
    "money min": "'-92233720368547758.08'::money",
    "inet": "'10.0.0.1/8'::inet",
    "citext": "'CiText'::citext",
    "hstore": "'a=>1,b=>NULL'::hstore",
    "composite": "row(1,'x y')::comp",
    "domain": "5::posint",
    "domain of numeric": "1.5::price",
    "real": "1.1::real",
    "real largest": "3.4028235e38::real",
    "double": "0.1::float8",
    "double NaN": "'NaN'::float8",
    "double infinity": "'-Infinity'::float8",
    "double smallest": "5e-324::float8",
    "bit(4)": "B'1010'",
    "varbit": "B'10101'::varbit",
    "xml": "'<a>é</a>'::xml",
    "oid": "4294967295::oid",
    "char(5)": "'ab'::char(5)",
    "varchar(9)": "'ab  '::varchar(9)",
    '"char"': "'x'::\"char\"",
    "int4range": "'[1,5)'::int4range",
    "tstzmultirange": "'{[2024-01-01 00:00+02,infinity)}'::tstzmultirange",
    "point": "'(1,2)'::point",
    "int2": "(-32768)::int2",
    "int4": "(-2147483648)::int4",
    "int8": "9223372036854775807::int8",
    "bool": "false",
    "name": "'nm'::name",
    "tsvector": "'a fat cat'::tsvector",
    "null": "null",
    "null date": "null::date",
    "null numeric": "null::numeric(9,3)",
    "text nul-ish": "E'a\\tb\\n\\\\N\"q'",
    "text in other planes": "E'\\U0001F600e\\u0301'",
    "text empty": "''::text",
    "text of a megabyte": "repeat('ä', 500000)",
}  # fmt: skip
KNOWN: dict[str, Any] = {
    "enum[]": ["ok"],
    "hstore": {"a": "1", "b": None},
    "composite": {"a": 1, "b": "x y"},
}
"""What psycopg has no Python values for without being told."""


class World:
    """A database with one table for each value, read in one snapshot."""

    def __init__(self, server: Postgres, database: str, password_file: str) -> None:
        self.oracle = server.connect(database)
        for setting in ("TimeZone = UTC", "IntervalStyle = iso_8601", "DateStyle = ISO"):
            self.oracle.execute(f"SET {setting}".encode())
        self.oracle.execute(
            "CREATE EXTENSION citext; CREATE EXTENSION hstore; CREATE TYPE mood AS ENUM ('ok');"
            "CREATE TYPE comp AS (a int, b text); CREATE DOMAIN posint AS int CHECK (value > 0);"
            "CREATE DOMAIN amount AS numeric(9,3); CREATE DOMAIN price AS amount"
        )
        for number, expression in enumerate(VALUES.values()):
            self.oracle.execute(
                f"CREATE TABLE t{number} AS SELECT {expression} AS v, 7 AS id".encode()
            )
        values = ", ".join(f"{text} AS v{place}" for place, text in enumerate(VALUES.values()))
        self.oracle.execute(f"CREATE TABLE t_all AS SELECT {values}".encode())
        self.read = JdbcInput(
            "POSTGRESQL",
            "127.0.0.1",
            server.port,
            database,
            "public",
            "t0",
            user=USER,
            password=SecretReference("file", password_file),
        )
        self.snapshot = ExportedSnapshot(self.read, Secret(PASSWORD))

    def reader(self, table: str, on_bad_value: OnBadValue) -> ReadPart:
        """Return what reads a table."""
        read = replace(self.read, table=table)
        relation = product.find_relation(self.snapshot.connection, read)
        found = product.columns(self.snapshot.connection, relation, read)
        identity = TaskIdentity(DestinationSpec("none", "us-east-1"), "test", on_executor=False)
        columns = product_types.select(found)
        return ReadPart(read, identity, relation, self.snapshot.id, columns, on_bad_value)

    def close(self) -> None:
        """End the connections."""
        self.snapshot.close()
        self.oracle.close()


@pytest.fixture(scope="module")
def world(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    secret = tmp_path_factory.mktemp("secret") / "password"
    secret.write_text(PASSWORD, encoding="utf-8")
    with closing(World(postgres, postgres.new_database(), str(secret))) as made:
        yield made


@pytest.mark.parametrize("name", VALUES)
def test_a_value_is_the_one_that_psycopg_reads_or_it_is_bad(world: World, name: str) -> None:
    table = f"t{list(VALUES).index(name)}"
    reader = world.reader(table, "NULL")

    rows = pa.Table.from_batches(reader(PostgresPart("", 1))).to_pylist()

    (row,) = rows
    column = reader.selected[0]
    expected, bad = _expected(world.oracle, table, name, column.type)
    assert row["id"] == 7
    assert row.get(BAD_VALUES_HELPER, 0) == bad
    assert _same(row["v"], expected), (row["v"], expected)
    if bad:
        with pytest.raises(BadValuesFound):
            list(world.reader(table, "FAIL")(PostgresPart("", 1)))
        texts, count = product.bad_values(
            world.snapshot.connection, reader.relation, [column], reader.read
        )
        assert count == 1
        assert len(texts) == 1
        assert "column `v`: the value `" in str(texts[0])


def test_spark_reads_the_same_values_and_counts_the_same_bad_ones(
    world: World, spark: SparkSession
) -> None:
    reader, all_rows = world.reader("t_all", "NULL"), [PostgresPart("", 1)]

    frame = part_frames(spark, world.snapshot, reader, all_rows)

    found, direct = frame.toArrow(), pa.Table.from_batches(reader(all_rows[0]))
    assert direct.num_rows == 1
    assert direct[BAD_VALUES_HELPER].to_pylist() == [13]
    assert found.schema.names == direct.schema.names
    for name in direct.schema.names:
        # NaN is not itself.
        own, other = repr(found[name].to_pylist()), repr(direct[name].to_pylist())
        assert (found[name].type, own) == (direct[name].type, other), name
    with pytest.raises(PythonException, match="BadValuesFound"):
        part_frames(spark, world.snapshot, world.reader("t_all", "FAIL"), all_rows).collect()


def _expected(
    oracle: psycopg.Connection[Any], table: str, name: str, target: str
) -> tuple[Any, int]:
    """Return the value as psycopg reads it, and 1 where the target has no such value."""
    if name in KNOWN:
        return KNOWN[name], 0
    # `char(5)` has its blanks, and the cast to text takes them off.
    shown = "v" if name == "char(5)" or target != "string" or "[]" in name else "v::text"
    try:
        ((value,),) = oracle.execute(f"SELECT {shown} FROM {table}".encode()).fetchall()
    except psycopg.DataError:
        # Python's dates end where those of the lake do.
        return None, 1
    if name.startswith("money"):
        return Decimal(value.replace("$", "").replace(",", "")), 0
    if isinstance(value, Decimal) and not value.is_finite():
        return None, 1
    if name.startswith("time ") and value is not None:
        # As everywhere in the lake: all six digits of the fraction.
        return f"{value}.000000" if "." not in value else value.ljust(15, "0"), 0
    return value, 0


def _same(own: Any, expected: Any) -> bool:
    if name_of := {float: _same_float, list: _same_json, dict: _same_json}.get(type(expected)):
        return name_of(own, expected)
    if isinstance(expected, datetime) and expected.tzinfo is not None:
        return bool(own == expected.astimezone(UTC))
    return type(own) is type(expected) and bool(own == expected)


def _same_float(own: Any, expected: float) -> bool:
    if math.isnan(expected):
        return math.isnan(own)
    return bool(own == expected) or bool(np.float32(own) == np.float32(expected) == own)


def _same_json(own: Any, expected: Any) -> bool:
    return _matches(json.loads(own, parse_float=Decimal), expected)


def _matches(read: Any, expected: Any) -> bool:
    if isinstance(expected, list):
        return len(read) == len(expected) and all(map(_matches, read, expected))
    if isinstance(expected, datetime):
        return datetime.fromisoformat(read) == expected
    if isinstance(expected, UUID):
        return bool(read == str(expected))
    return bool(read == expected)
