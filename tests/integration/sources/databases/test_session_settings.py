"""Settings of the server and of the user that change what a SELECT returns: no load depends on
them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakeload_jobs.contract.errors import LoadFailed, Refused
from lakeload_jobs.contract.secrets import Secret, SecretReference
from lakeload_jobs.contract.spec import DestinationSpec, JdbcInput
from lakeload_jobs.sources.databases.engines.mysql import catalog as mysql
from lakeload_jobs.sources.databases.engines.mysql import connection as mysql_connection
from lakeload_jobs.sources.databases.engines.mysql import types as mysql_types
from lakeload_jobs.sources.databases.engines.mysql.read import MysqlPart, ReadTable
from lakeload_jobs.sources.databases.engines.postgres import catalog as product
from lakeload_jobs.sources.databases.engines.postgres import connection as product_connection
from lakeload_jobs.sources.databases.engines.postgres import failures as product_failures
from lakeload_jobs.sources.databases.engines.postgres import types as product_types
from lakeload_jobs.sources.databases.engines.postgres.adbc import ReadPart
from lakeload_jobs.sources.databases.engines.postgres.connection import REFUSED, SETTINGS
from lakeload_jobs.sources.databases.engines.postgres.jvm import part_frames
from lakeload_jobs.sources.databases.engines.postgres.snapshot import ExportedSnapshot, PostgresPart
from lakeload_jobs.sources.databases.identity import TaskIdentity
from tests.servers.mariadb import MariaDb
from tests.servers.postgres import Postgres

IDENTITY = TaskIdentity(DestinationSpec("none", "us-east-1"), "test", on_executor=False)
WORD = "secret-1"

MARIA_WORST = {
    "sql_select_limit": "0",
    "max_join_size": "1",
    "sql_big_selects": "0",
    "time_zone": "'-11:00'",
    "sql_mode": "'ORACLE,ANSI_QUOTES,PAD_CHAR_TO_FULL_LENGTH,NO_UNSIGNED_SUBTRACTION,"
    "NO_BACKSLASH_ESCAPES,HIGH_NOT_PRECEDENCE,TIME_ROUND_FRACTIONAL'",
    "sql_auto_is_null": "1",
    "group_concat_max_len": "4",
    "max_sort_length": "64",
    "max_error_count": "0",
    "completion_type": "'RELEASE'",
    "innodb_table_locks": "0",
    "net_write_timeout": "1",
    "wait_timeout": "1",
    "idle_transaction_timeout": "1",
    "idle_readonly_transaction_timeout": "1",
    "max_recursive_iterations": "1",
    "system_versioning_asof": "'2020-01-01 00:00:00'",
    "wsrep_dirty_reads": "1",
    "autocommit": "0",
    "tx_isolation": "'READ-UNCOMMITTED'",
    "lock_wait_timeout": "0",
    "innodb_lock_wait_timeout": "0",
    "character_set_client": "'latin1'",
    "character_set_connection": "'latin1'",
    "character_set_results": "'latin1'",
    "collation_connection": "'latin1_bin'",
    "character_set_collations": "'utf8mb4=utf8mb4_turkish_ci'",
    "div_precision_increment": "0",
    "default_week_format": "7",
    "lc_time_names": "'en_GB'",
    "default_regex_flags": "'EXTENDED'",
    "old_mode": "'NO_PROGRESS_INFO,ZERO_DATE_TIME_CAST'",
    "sql_safe_updates": "1",
    "sql_buffer_result": "1",
    "big_tables": "1",
    "low_priority_updates": "1",
    "query_cache_wlock_invalidate": "0",
    "block_encryption_mode": "'aes-256-cbc'",
    "wsrep_sync_wait": "0",
}
"""The value of each variable of MariaDB that could do the most harm."""
MARIA_TABLES = (
    "CREATE TABLE t (a INT, b INT, c VARCHAR(9), d CHAR(5), at TIMESTAMP(6) NULL,"
    " n DECIMAL(9,3), f DOUBLE, PRIMARY KEY (a, b, c))",
    "INSERT INTO t VALUES (1, 1, 'x', 'é', '2024-02-29 12:00:00.5', 1.5, 0.1),"
    " (1, 1, 'y', 'a\\\\b', NULL, -1, 1e300), (2, 1, 'x', '', NULL, NULL, NULL)",
    "CREATE VIEW joined AS SELECT GROUP_CONCAT(c ORDER BY a, c SEPARATOR '---') AS j FROM t",
    "CREATE VIEW counted AS WITH RECURSIVE r (i) AS"
    " (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 50) SELECT i FROM r",
    "CREATE TABLE versioned (i INT) WITH SYSTEM VERSIONING",
    "INSERT INTO versioned VALUES (7)",
    "CREATE VIEW long_texts AS SELECT DISTINCT CONCAT(REPEAT('x', 100), c) AS c FROM t",
)


@pytest.fixture(scope="module")
def maria(mariadb: MariaDb, tmp_path_factory: pytest.TempPathFactory) -> JdbcInput:
    """The table `t` of a database, for a user for whom `init_connect` is run."""
    name, secret = mariadb.new_database(), tmp_path_factory.mktemp("secret") / "password"
    secret.write_text(WORD, encoding="utf-8")
    mariadb.run("SET sql_mode = ''", "SET time_zone = '+00:00'", *MARIA_TABLES, database=name)
    mariadb.run(
        f"CREATE USER '{name}'@'%' IDENTIFIED BY '{WORD}'",
        f"GRANT SELECT, LOCK TABLES ON {name}.* TO '{name}'@'%'",
    )
    password = SecretReference("file", str(secret))
    place = ("MYSQL", "127.0.0.1", mariadb.port, name, name, "t")
    return JdbcInput(*place, user=name, password=password)  # type: ignore[arg-type]


@contextmanager
def worst(server: MariaDb, user: str, variables: dict[str, str]) -> Iterator[None]:
    """Give variables values in all new sessions of a user, as if these were the global ones."""
    values = ",".join(
        # Its value for other users cannot be written; they have no such tables.
        f"{name}={value}"
        if name == "system_versioning_asof"
        else f"{name}=IF(USER()LIKE'{user}@%',{value},@@{name})"
        for name, value in variables.items()
    )
    server.run(f'SET GLOBAL init_connect = "SET {values}"')
    try:
        yield
    finally:
        server.run("SET GLOBAL init_connect = ''")


def maria_rows(read: JdbcInput, table: str) -> list[Any]:
    """Return the rows of a table as a load reads them, in their order."""
    read = replace(read, table=table)
    with closing(mysql_connection.connect(read, Secret(WORD))) as connection:
        relation = mysql.find_relation(connection, read)
        columns = mysql.columns(connection, relation, read)
    reader = ReadTable(read, IDENTITY, relation, mysql_types.select(columns), "FAIL")
    rows = pa.Table.from_batches(list(reader(MysqlPart())), reader.schema).to_pylist()
    return sorted(tuple(map(str, row.values())) for row in rows)


MARIA_ROWS = {
    "t": [
        ("1", "1", "x", "é", "2024-02-29 12:00:00.500000+00:00", "1.500", "0.1"),
        ("1", "1", "y", "a\\b", "None", "-1.000", "1e+300"),
        ("2", "1", "x", "", "None", "None", "None"),
    ],
    "joined": [("x---y---x",)],
    "counted": sorted((str(i),) for i in range(1, 51)),
    "versioned": [("7",)],
    "long_texts": [("x" * 101,), ("x" * 100 + "y",)],
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MARIA_WORST)
def test_no_variable_of_mariadb_changes_a_load(
    maria: JdbcInput, mariadb: MariaDb, name: str
) -> None:
    check_maria(maria, mariadb, {name: MARIA_WORST[name]})


@pytest.mark.parametrize("third", [0, 1, 2])
def test_the_worst_variables_of_mariadb_change_no_load(
    maria: JdbcInput, mariadb: MariaDb, third: int
) -> None:
    check_maria(maria, mariadb, dict([*MARIA_WORST.items()][third::3]))


def check_maria(maria: JdbcInput, server: MariaDb, variables: dict[str, str]) -> None:
    """Read the catalog and rows in sessions that begin with these variables."""
    with worst(server, maria.user or "", variables):
        with closing(mysql_connection.connect(maria, Secret(WORD))) as connection:
            tables = mysql.list_tables(connection, maria, None)
            relation = mysql.find_relation(connection, maria)
            columns = mysql.columns(connection, relation, maria)
            assert mysql.key_of(connection, relation) == ("a", "b", "c")
            assert "TLS" in mysql.describe_session(connection)
            # What `plan` does with a connection that it keeps.
            mysql_connection.fetch(
                connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
            )
            assert mysql.estimate_rows(connection, relation, "a > 0") == 3
            mysql_connection.fetch(connection, "ROLLBACK")
            assert mysql_connection.fetch(connection, "SELECT 1") == (("1",),)
        assert [table.name for table in tables] == sorted(MARIA_ROWS)
        assert [column.name for column in columns] == ["a", "b", "c", "d", "at", "n", "f"]
        for table, rows in MARIA_ROWS.items():
            assert maria_rows(maria, table) == rows, table


def test_worst_values_of_mariadb_do_harm_without_lakeload(
    maria: JdbcInput, mariadb: MariaDb
) -> None:
    login: dict[str, Any] = {"user": maria.user, "password": WORD}
    with (
        worst(mariadb, maria.user or "", {"sql_select_limit": "1"}),
        closing(mariadb.connect(maria.name, **login)) as plain,
        plain.cursor() as cursor,
    ):
        assert cursor.execute("SHOW COLUMNS FROM t") == 1


def test_a_value_that_the_server_cuts_fails_the_load(maria: JdbcInput) -> None:
    query = replace(maria, query="SELECT REPEAT(c, 1 << 28) AS big FROM t WHERE a = 2")
    with pytest.raises(LoadFailed, match="the server has cut a value") as failed:
        maria_rows(query, "")
    assert "raise `max_allowed_packet`" in (failed.value.hint or "")


def test_a_server_with_small_packets_is_refused(
    maria: JdbcInput, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mysql_connection, "_LEAST_PACKET", 1 << 40)
    with pytest.raises(Refused, match="sets `max_allowed_packet` to"):
        mysql_connection.connect(maria, Secret(WORD))


POSTGRES_WORST = {
    "TimeZone": "Pacific/Apia",
    "timezone_abbreviations": "India",
    "DateStyle": "German, DMY",
    "IntervalStyle": "sql_standard",
    "extra_float_digits": "-15",
    "bytea_output": "escape",
    "xmloption": "document",
    "xmlbinary": "hex",
    "standard_conforming_strings": "off",
    "transform_null_equals": "on",
    "array_nulls": "off",
    "gin_fuzzy_search_limit": "1",
    "exit_on_error": "on",
    "search_path": "evil, pg_catalog",
    "client_encoding": "LATIN1",
    "default_transaction_isolation": "serializable",
    "default_transaction_read_only": "on",
    "default_transaction_deferrable": "on",
    "idle_in_transaction_session_timeout": "1s",
    "idle_session_timeout": "1s",
    "transaction_timeout": "1s",
    "lock_timeout": "1",
    "enable_seqscan": "off",
    "enable_tidscan": "off",
    "synchronize_seqscans": "on",
    "session_replication_role": "replica",
    "row_security": "off",
    "lc_messages": "C",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "default_text_search_config": "pg_catalog.german",
    "backslash_quote": "off",
    "escape_string_warning": "off",
    "constraint_exclusion": "on",
}
POSTGRES_TABLES = r"""
CREATE TABLE t (a int, b int, c text, at timestamptz, i interval, f float8, h bytea, x xml,
                l text[], PRIMARY KEY (a, b, c));
INSERT INTO t VALUES
  (1, 1, 'x', '2024-02-29 12:00:00.5+00', '1 year 02:03:04', 0.1::float8 + 0.2, '\x5cff', '<a/>',
   ARRAY['NULL', NULL]), (1, 2, 'y\', NULL, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE tagged AS SELECT n, ARRAY[1] AS tags FROM generate_series(1, 2000) n;
CREATE INDEX ON tagged USING gin (tags);
CREATE VIEW with_tag AS SELECT n FROM tagged WHERE tags @> ARRAY[1];
CREATE SCHEMA evil;
CREATE FUNCTION evil.never(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.never);
CREATE FUNCTION evil.never(name, text) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE OPERATOR evil.= (LEFTARG = name, RIGHTARG = text, FUNCTION = evil.never);
CREATE DOMAIN evil.text AS varchar(1);
CREATE DOMAIN evil.int8 AS pg_catalog.int8 CHECK (VALUE < 0);
GRANT USAGE ON SCHEMA evil TO PUBLIC;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC;
VACUUM ANALYZE tagged;
"""


@pytest.fixture(scope="module")
def pg(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JdbcInput]:
    """The table `public.t` of a database, for a user of its own."""
    name, secret = postgres.new_database(), tmp_path_factory.mktemp("secret") / "password"
    secret.write_text(WORD, encoding="utf-8")
    with closing(postgres.connect(name)) as admin:
        for statement in POSTGRES_TABLES.split(";\n"):
            admin.execute(statement.encode())
        admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{WORD}'".encode())
    password = SecretReference("file", str(secret))
    place = ("POSTGRESQL", "127.0.0.1", postgres.port, name, "public", "t")
    yield JdbcInput(*place, user=name, password=password)  # type: ignore[arg-type]
    with closing(postgres.connect(name)) as admin:
        admin.execute(f"DROP OWNED BY {name}; DROP ROLE {name}".encode())


@contextmanager
def set_for(server: Postgres, read: JdbcInput, settings: dict[str, str]) -> Iterator[None]:
    """Give settings to all new sessions of the user, in this database."""
    role = f"ALTER ROLE {read.user} IN DATABASE {read.name}"
    with closing(server.connect()) as admin:
        for name, value in settings.items():
            # A list of names is no text.
            text = value if name == "search_path" else f"'{value}'"
            admin.execute(f"{role} SET {name} = {text}".encode())
        try:
            yield
        finally:
            admin.execute(f"{role} RESET ALL".encode())


def splits_of(
    snapshot: ExportedSnapshot, read: JdbcInput
) -> tuple[ReadPart, tuple[PostgresPart, ...]]:
    """Return what reads a table, and its parts."""
    relation = product.find_relation(snapshot.connection, read)
    columns = product_types.select(product.columns(snapshot.connection, relation, read))
    reader = ReadPart(read, IDENTITY, relation, snapshot.id, columns, "FAIL")
    return reader, snapshot.parts(relation, 1)


POSTGRES_ROWS = [
    ("1", "1", "x", "2024-02-29 12:00:00.500000+00:00", "P1YT2H3M4S", "0.30000000000000004",
     "b'\\\\\\xff'", "<a/>", '["NULL",null]'),
    ("1", "2", "y\\", *["None"] * 6),
]  # fmt: skip


def shown(table: pa.Table) -> list[tuple[str, ...]]:
    """Return rows as text, in an order."""
    return sorted(tuple(map(str, row.values())) for row in table.to_pylist())


def check_postgres(read: JdbcInput, spark: SparkSession | None = None) -> None:
    """Read the catalog and rows, with `spark` by its JDBC source too."""
    with closing(ExportedSnapshot(read, Secret(WORD))) as snapshot:
        relation = product.find_relation(snapshot.connection, read)
        assert product.key_of(snapshot.connection, relation) == ("a", "b", "c")
        for name, value in SETTINGS.items():
            row = snapshot.connection.execute("SELECT current_setting(%s, true)", (name,))
            assert row.fetchone() in ((value,), (None,)), name
        compared = snapshot.connection.execute("SELECT (NULL::int = NULL) IS NULL")
        assert compared.fetchone() == (True,)
        tables = product.list_tables(snapshot.connection, read, None)
        assert [table.name for table in tables] == ["t", "tagged", "with_tag"]
        product.server_of(snapshot.connection)
        for table, rows in (("t", POSTGRES_ROWS), ("with_tag", None)):
            reader, splits = splits_of(snapshot, replace(read, table=table))
            found = [pa.Table.from_batches(reader(splits[0]), reader.schema)]
            if spark is not None:
                found.append(part_frames(spark, snapshot, reader, splits).toArrow())
            for got in found:
                assert got.num_rows == 2000 if rows is None else shown(got) == rows


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", POSTGRES_WORST)
def test_no_setting_of_postgresql_changes_a_load(
    pg: JdbcInput, postgres: Postgres, name: str
) -> None:
    with closing(postgres.connect()) as admin:
        rows = admin.execute("SELECT 1 FROM pg_settings WHERE name ILIKE %s", (name,)).fetchall()
        if not rows:
            # A setting of another version: nobody can make it worse here.
            with pytest.raises(psycopg.errors.UndefinedObject):
                admin.execute(f"SET {name} = {POSTGRES_WORST[name]}".encode())
            return
    with set_for(postgres, pg, {name: POSTGRES_WORST[name]}):
        check_postgres(pg)


def test_the_worst_settings_of_postgresql_change_no_load_of_both_readers(
    pg: JdbcInput, postgres: Postgres, spark: SparkSession
) -> None:
    with closing(postgres.connect()) as admin:
        names = {name for (name,) in admin.execute("SELECT name FROM pg_settings").fetchall()}
    worst_settings = {n: v for n, v in POSTGRES_WORST.items() if n in names}
    with set_for(postgres, pg, worst_settings):
        check_postgres(pg, spark)


@pytest.mark.parametrize("name", REFUSED)
def test_a_setting_that_no_load_can_do_with_is_refused(
    pg: JdbcInput, postgres: Postgres, name: str
) -> None:
    with set_for(postgres, pg, {name: "on"}), pytest.raises(Refused) as refused:
        product_connection.connect(pg, Secret(WORD))
    assert f"`{name}` is on for the user {pg.user}" in refused.value.message
    statement = re.search(r"`(ALTER ROLE [^`]*)`", refused.value.hint or "")
    assert statement is not None
    with set_for(postgres, pg, {name: "on"}), closing(postgres.connect()) as admin:
        admin.execute(statement[1].encode())
        product_connection.connect(pg, Secret(WORD)).close()


class Pooled:
    """A client of a pool that runs the statements of all clients on one server connection."""

    def __init__(self, session: Any) -> None:
        self.execute = session.execute

    def close(self) -> None:
        """Close nothing: the other client uses the server connection too."""


def test_a_pool_that_mixes_sessions_is_found(
    pg: JdbcInput, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    product_connection.check_pool(pg, Secret(WORD))
    with closing(postgres.connect(pg.name)) as session:
        monkeypatch.setattr(product_connection, "connect", lambda *_: Pooled(session))
        with pytest.raises(Refused, match="keeps no session") as refused:
            product_connection.check_pool(pg, Secret(WORD))
    unprepared = product_failures.failure(
        "reading `t`", "26000", "prepared statement does not exist"
    )
    assert unprepared.hint == refused.value.hint
    assert "`pool_mode = session`" in (unprepared.hint or "")
