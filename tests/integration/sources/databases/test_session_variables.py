"""No variable of a session changes which rows and columns are read, whoever has set it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.sources.databases import mysql, postgres
from lakeload_jobs.sources.databases.identity import TaskIdentity
from tests.integration.sources.databases.conftest import Database, MariaDatabase
from tests.servers.mariadb import PASSWORD

WORST_OF_MARIADB = {
    "sql_select_limit": "1",
    "max_join_size": "1",
    "sql_auto_is_null": "1",
    "sql_mode": "'ANSI,PAD_CHAR_TO_FULL_LENGTH,ORACLE'",
    "time_zone": "'-11:00'",
    "max_sort_length": "64",
    "completion_type": "'CHAIN'",
    "autocommit": "0",
    "character_set_results": "'latin1'",
    "collation_connection": "'latin1_bin'",
    "group_concat_max_len": "4",
    "div_precision_increment": "0",
    "sql_safe_updates": "1",
    "sql_quote_show_create": "0",
    "sql_big_selects": "0",
    "idle_transaction_timeout": "1",
    "low_priority_updates": "1",
    "sql_buffer_result": "1",
    "old_mode": "'ZERO_DATE_TIME_CAST'",
}
WORST_OF_POSTGRES = {
    "gin_fuzzy_search_limit": "1",
    "transform_null_equals": "on",
    "xmlbinary": "hex",
    "xmloption": "document",
    "DateStyle": "SQL, DMY",
    "IntervalStyle": "sql_standard",
    "TimeZone": "Pacific/Chatham",
    "extra_float_digits": "-15",
    "bytea_output": "escape",
    "search_path": "nowhere",
    "standard_conforming_strings": "off",
    "backslash_quote": "on",
    "array_nulls": "off",
    "default_transaction_isolation": "serializable",
    "default_transaction_deferrable": "on",
    "session_replication_role": "replica",
    "client_encoding": "LATIN1",
    "enable_seqscan": "off",
    "idle_session_timeout": "1s",
}


IDENTITY = TaskIdentity(DestinationSpec("bucket", "us-east-1"), "test", False)


@pytest.fixture
def odd_maria(maria: MariaDatabase) -> Iterator[MariaDatabase]:
    """A database of which the server changes the sessions of one user when they begin."""
    user, password = f"odd{maria.input.name}", PASSWORD.replace("'", "''")
    changes = ", ".join(
        f"SESSION {name} = IF(USER() LIKE '{user}@%', {value}, @@SESSION.{name})"
        for name, value in WORST_OF_MARIADB.items()
    )
    maria.run(
        f"CREATE USER '{user}'@'%' IDENTIFIED BY '{password}'",
        f"GRANT SELECT ON `{maria.input.name}`.* TO '{user}'@'%'",
        f'SET GLOBAL init_connect = "SET {changes}"',
    )
    try:
        yield replace(maria, input=replace(maria.input, user=user))
    finally:
        maria.run("SET GLOBAL init_connect = ''", f"DROP USER '{user}'@'%'")


def test_mariadb_reads_all_columns_keys_and_rows(odd_maria: MariaDatabase) -> None:
    odd_maria.run(
        "CREATE TABLE orders (a INT, b CHAR(9), c DATETIME, d TEXT, e TIMESTAMP NULL,"
        " PRIMARY KEY (a, b, c)) DEFAULT CHARSET utf8mb4",
        "INSERT INTO orders SELECT seq, 'x', '2024-01-01', 'é😀', '2024-01-01 12:00:00'"
        " FROM seq_1_to_500",
    )
    read = replace(odd_maria.input, table="orders")
    with closing(mysql.connect(read, IDENTITY.password(read))) as connection:
        ((limit,),) = mysql.fetch(connection, "SELECT @@SESSION.div_precision_increment")
        assert limit == "0", "the server did not change the session"
        relation = mysql.find_relation(connection, read)
        columns = mysql.columns(connection, relation, read)
        (key,) = mysql.fetch(connection, "SELECT count(*) FROM orders o JOIN orders p USING (a)")
    assert [column.name for column in columns] == ["a", "b", "c", "d", "e"]
    assert key == ("500",)
    reader = mysql.ReadTable(read, IDENTITY, relation, mysql.select(columns), "FAIL")
    table = pa.Table.from_batches(list(reader(mysql.Part())), reader.schema)
    assert table["a"].to_pylist() == list(range(1, 501))
    (first,) = table.slice(0, 1).to_pylist()
    assert (first["b"], first["d"]) == ("x", "é😀")
    assert first["e"] == datetime(2024, 1, 1, 12, tzinfo=UTC)


def test_mariadb_reads_the_rows_of_now(maria: MariaDatabase) -> None:
    maria.run(
        "CREATE TABLE orders (a INT PRIMARY KEY) WITH SYSTEM VERSIONING",
        "INSERT INTO orders VALUES (1), (2)",
    )
    read = replace(maria.input, table="orders")
    with closing(mysql.connect(read, IDENTITY.password(read))) as connection:
        ((asof,),) = mysql.fetch(connection, "SELECT @@SESSION.system_versioning_asof")
        mysql.fetch(connection, "SET SESSION system_versioning_asof = '2001-01-01'")
        assert mysql.fetch(connection, "SELECT a FROM orders") == ()
        mysql._set(connection, mysql._settings_of_this_server(connection, read))
        assert len(mysql.fetch(connection, "SELECT a FROM orders")) == 2
    assert asof == "DEFAULT"


def test_postgres_reads_all_rows_of_an_index(database: Database) -> None:
    role = f"odd_{database.input.name}"
    database.run(f"CREATE ROLE {role} LOGIN PASSWORD 'odd' IN ROLE pg_read_all_data")
    try:
        for name, value in WORST_OF_POSTGRES.items():
            database.run(f"ALTER ROLE {role} SET {name} = '{value}'")
        database.run(
            "CREATE TABLE orders AS SELECT n, ARRAY[1, n] AS tags, 'é' AS t"
            " FROM generate_series(1, 20000) n"
        )
        database.run("CREATE INDEX ON orders USING gin (tags)")
        database.run("ANALYZE orders")
        read = replace(database.input, user=role, password=None, parameters={"password": "odd"})
        with closing(postgres.connect(read, None)) as connection:
            settings = dict(connection.execute("SELECT name, setting FROM pg_settings").fetchall())
            assert settings["backslash_quote"] == "on", "the role has no settings"
            statement = "SELECT count(*) FROM public.orders WHERE tags @> ARRAY[1]"
            plan = connection.execute(f"EXPLAIN {statement}".encode()).fetchall()
            assert any("Bitmap Index Scan" in line for (line,) in plan), plan
            assert connection.execute(statement.encode()).fetchone() == (20000,)
            wrong = "SELECT count(*) FROM public.orders WHERE n = NULL"
            assert connection.execute(wrong.encode()).fetchone() == (0,)
            (relation,) = [postgres.find_relation(connection, read)]
            names = [column.name for column in postgres.columns(connection, relation, read)]
        assert names == ["n", "tags", "t"]
    finally:
        database.run(f"DROP ROLE {role}")
