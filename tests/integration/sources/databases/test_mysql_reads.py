"""Reads of MariaDB without Spark: one consistent read, its failures, and what they say."""

from __future__ import annotations

import pickle
import time
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakeload.sources.base import ColumnsRequest
from lakeload.sources.databases.inspection import checks, inspect, read_columns
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import LoadFailed, Refused
from lakeload_jobs.contract.secrets import Secret, SecretReference
from lakeload_jobs.contract.spec import (
    ColumnsSpec,
    DestinationSpec,
    JdbcInput,
    JobSpec,
    RunOptions,
    TableSpec,
)
from lakeload_jobs.sources.base import NO_COLUMNS
from lakeload_jobs.sources.databases.engines.mysql import catalog as product
from lakeload_jobs.sources.databases.engines.mysql import connection as product_connection
from lakeload_jobs.sources.databases.engines.mysql import types as product_types
from lakeload_jobs.sources.databases.engines.mysql.read import MysqlPart, ReadTable
from lakeload_jobs.sources.databases.identity import TaskIdentity
from lakeload_jobs.sources.readers import SourceReaders
from tests.servers.free_ports import free_ports
from tests.servers.mariadb import PASSWORD, USER, MariaDb


@dataclass(frozen=True)
class Database:
    """A database with the table `t` of 1000 rows."""

    server: MariaDb
    read: JdbcInput

    def run(self, *statements: str) -> None:
        """Run statements as the administrator."""
        self.server.run(*statements, database=self.read.name)

    def reader(self, table: str = "t", **changes: Any) -> ReadTable:
        """Return what reads a table, as a load makes it."""
        given = replace(self.read, table=table, **changes)
        with closing(product_connection.connect(given, identity().password(given))) as connection:
            relation = product.find_relation(connection, given)
            columns = product.columns(connection, relation, given)
        return ReadTable(given, identity(), relation, product_types.select(columns), "FAIL")


def identity() -> TaskIdentity:
    """Return who reads."""
    return TaskIdentity(DestinationSpec("bucket", "us-east-1"), "test", False)


def rows(reader: ReadTable) -> pa.Table:
    """Return all rows."""
    return pa.Table.from_batches(list(reader(MysqlPart())), reader.schema)


@pytest.fixture(scope="module")
def maria(mariadb: MariaDb, tmp_path_factory: pytest.TempPathFactory) -> Database:
    """The database of all tests; those that change it have tables of their own."""
    name, secret = mariadb.new_database(), tmp_path_factory.mktemp("secret") / "password"
    secret.write_text(PASSWORD, encoding="utf-8")
    mariadb.run("CREATE TABLE t AS SELECT seq AS id FROM seq_1_to_1000", database=name)
    password = SecretReference("file", str(secret))
    place = ("MYSQL", "127.0.0.1", mariadb.port, name, name, "t")
    given = JdbcInput(*place, user=USER, password=password)  # type: ignore[arg-type]
    return Database(mariadb, given)


def test_all_rows_are_those_of_the_moment_of_the_count(
    maria: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    maria.run("CREATE TABLE changes AS SELECT seq AS id FROM seq_1_to_1000")
    count = ReadTable._check

    def then_change(self: ReadTable, connection: Any) -> int:
        counted = count(self, connection)
        maria.run("DELETE FROM changes WHERE id <= 500", "UPDATE changes SET id = id + 5000")
        return counted

    monkeypatch.setattr(ReadTable, "_check", then_change)

    found = rows(maria.reader("changes")).sort_by("id")

    assert found["id"].to_pylist() == list(range(1, 1001))


def test_rows_that_are_not_as_many_as_were_counted_fail(maria: Database) -> None:
    # A view that has 5 rows less when it is read the first time.
    maria.run(
        "CREATE FUNCTION calls() RETURNS int NOT DETERMINISTIC NO SQL"
        " BEGIN SET @calls = IFNULL(@calls, 0) + 1; RETURN @calls; END",
        "CREATE VIEW changing AS SELECT id FROM t WHERE calls() > 5",
    )

    with pytest.raises(LoadFailed, match="995 rows were counted, and 1,000 were read") as raised:
        rows(maria.reader("changing"))

    assert raised.value.retryable


def test_a_query_is_read_in_one_transaction_or_rejected_by_the_server(maria: Database) -> None:
    query = (
        "SELECT CAST(id AS INT) AS number, 1.50 AS price, id > 3 AS b FROM t WHERE id < 6 -- some"
    )

    found = rows(maria.reader("", query=query))

    assert found.schema.types == [pa.int64(), pa.decimal128(3, 2), pa.int32()]
    assert found["number"].to_pylist() == [1, 2, 3, 4, 5]
    with pytest.raises(
        LoadFailed, match="reading the columns of `query`: Duplicate column"
    ) as twins:
        maria.reader("", query="SELECT id, id FROM t")
    assert "another name with `AS`" in str(twins.value.hint)
    with pytest.raises(LoadFailed, match="error 1064") as raised:
        maria.reader("", query="SELECT FROM t")
    assert raised.value.hint == "check the query: it is one SELECT"


def test_a_table_without_transactions_has_a_warning(maria: Database) -> None:
    maria.run("CREATE TABLE aria (id int) ENGINE = Aria", "CREATE VIEW v AS SELECT 1 AS one")

    assert "the engine Aria, which has no consistent read" in str(
        maria.reader("aria").relation.warnings
    )
    assert (maria.reader().relation.warnings, maria.reader("v").relation.warnings) == ((), ())
    assert rows(maria.reader("v")).to_pylist() == [{"one": 1}]


def test_a_source_is_checked_without_a_load(maria: Database) -> None:
    maria.run("CREATE TABLE checked (a int, b text)")
    destination = DestinationSpec("bucket", "us-east-1")
    readers = SourceReaders(destination, AwsSession(destination))
    read = replace(maria.read, table="checked")
    table = TableSpec("checked", "shop", "checked", read, "")

    details = {check.name: check.run() for check in checks([(table, read)], readers)}

    assert "MariaDB, TLSv1" in details.pop("source-login")
    assert details == {"source-table:checked": "2 columns"}


def test_a_plan_needs_no_spark(maria: Database) -> None:
    destination = DestinationSpec("bucket", "us-east-1")
    readers = SourceReaders(destination, AwsSession(destination, label="test"))
    columns = ColumnsSpec(exclude=("twice",), types={"id": "int"})
    maria.run(
        "CREATE TABLE planned (id bigint unsigned, twice int AS (id * 2), d decimal(65,30))",
        "INSERT INTO planned (id) VALUES (1), (2)",
        "ANALYZE TABLE planned",
    )
    given = replace(maria.read, table="planned")
    request = ColumnsRequest(
        JobSpec(1, "p", "j", "a", datetime.now(UTC), destination, (), "", ""),
        TableSpec("planned", "", "planned", given, "", columns=columns),
        NO_COLUMNS,
    )

    found = read_columns(given, request, readers)

    assert found is not None
    assert found.names == ("id", "twice", "d")
    assert found.types == {"id": "int", "d": "string"}
    inspected = inspect(given, request.table, RunOptions(), None, readers)
    assert (inspected.rows, inspected.bytes) == (2, 16384)
    maria.run("CREATE VIEW planned_view AS SELECT id FROM planned")
    of_a_view = inspect(
        replace(given, table="planned_view"), request.table, RunOptions(), None, readers
    )
    assert (of_a_view.rows, of_a_view.bytes) == (None, 0)


def test_a_name_is_the_exact_one(maria: Database) -> None:
    maria.run("CREATE TABLE `Ca``se \"%s\" 'q'` (`a``b %s` int, `é\\` int)")
    maria.run("CREATE TABLE `ca``se \"%s\" 'q'` (other int)")

    assert rows(maria.reader("Ca`se \"%s\" 'q'")).schema.names == ["a`b %s", "é\\"]
    with pytest.raises(LoadFailed, match="the user sees no table") as raised:
        maria.reader("T")
    assert "t" in (raised.value.hint or "")


def test_the_key_has_the_order_of_the_primary_key(maria: Database) -> None:
    maria.run("CREATE TABLE keyed (a int, b int, c int UNIQUE, PRIMARY KEY (b, a))")
    with closing(product_connection.connect(maria.read, Secret(PASSWORD))) as connection:
        found = [product.key_of(connection, maria.reader(name).relation) for name in ("keyed", "t")]
    assert found == [("b", "a"), ()]


@pytest.mark.parametrize(
    ("changes", "message", "retryable"),
    [
        ({"user": "nobody"}, "Access denied for user 'nobody'", False),
        ({"name": "absent"}, "Unknown database 'absent'", False),
        ({"host": "127.0.0.2"}, "connecting to MySQL at 127.0.0.2", True),
        ({"host": "no-such-host.invalid"}, "no-such-host.invalid", True),
        ({"parameters": {"sslmode": "verify-ca"}}, "certificate verify failed", False),
        ({"parameters": {"sslmode": "verify-full", "sslrootcert": "/no/such"}}, "/no/such", False),
    ],
)
def test_a_server_that_is_not_reached_says_why(
    maria: Database, changes: dict[str, Any], message: str, retryable: bool
) -> None:
    with pytest.raises(Refused) as raised:
        product_connection.connect(replace(maria.read, **changes), Secret(PASSWORD))

    assert message in raised.value.message
    assert raised.value.retryable is retryable
    assert PASSWORD not in repr((raised.value.message, raised.value.hint))


def test_a_wrong_password_is_not_in_the_message(maria: Database) -> None:
    with pytest.raises(Refused, match="Access denied for user 'admin'") as raised:
        product_connection.connect(maria.read, Secret("hunter2"))
    error = raised.value
    assert "hunter2" not in repr((error.message, error.hint, error.__context__))


def test_a_port_without_a_server_is_refused(maria: Database) -> None:
    (port,) = free_ports(1)
    with pytest.raises(Refused, match=f"127.0.0.1:{port} failed"):
        product_connection.connect(replace(maria.read, port=port), Secret(PASSWORD))


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full", "disable"])
def test_tls_is_as_asked(maria: Database, mode: str) -> None:
    parameters = {"sslmode": mode}
    if mode.startswith("verify"):
        parameters["sslrootcert"] = maria.server.ca
    given = replace(maria.read, parameters=parameters)

    with closing(product_connection.connect(given, Secret(PASSWORD))) as connection:
        ((_, cipher),) = product_connection.fetch(connection, "SHOW STATUS LIKE 'Ssl_cipher'")

    assert bool(cipher) is (mode != "disable")


def test_what_travels_to_tasks_has_no_password(maria: Database) -> None:
    assert PASSWORD.encode() not in pickle.dumps(maria.reader())


@pytest.fixture
def reader_user(maria: Database, tmp_path: Path) -> JdbcInput:
    """A user who may read one column of `t` and nothing else."""
    secret = tmp_path / "password"
    secret.write_text("pw")
    user = f"u{maria.server.port}"
    maria.run(f"CREATE OR REPLACE USER {user} IDENTIFIED BY 'pw' WITH MAX_USER_CONNECTIONS 1")
    maria.run("CREATE TABLE IF NOT EXISTS other (id int, secret int)")
    maria.run(f"GRANT SELECT (id) ON other TO {user}")
    return replace(maria.read, user=user, password=SecretReference("file", str(secret)))


def test_missing_grants_are_named(maria: Database, reader_user: JdbcInput) -> None:
    own = Database(maria.server, reader_user)
    with pytest.raises(LoadFailed, match="the user sees no table") as raised:
        own.reader("t")
    assert "let an administrator run ``GRANT SELECT ON" in (raised.value.hint or "")

    allowed = own.reader("other")
    assert rows(allowed).schema.names == ["id"]
    wider = replace(allowed, selected=maria.reader("other").selected)
    with pytest.raises(LoadFailed, match=r"SELECT command denied .*\(error 114[23]\)"):
        rows(wider)


def test_a_database_without_any_right_is_named(maria: Database, reader_user: JdbcInput) -> None:
    with pytest.raises(Refused, match="to database 'mysql'") as raised:
        product_connection.connect(replace(reader_user, name="mysql"), Secret("pw"))
    assert raised.value.hint == (
        f"let an administrator run ``GRANT SELECT ON `mysql`.* TO '{reader_user.user}'@'%'``, or "
        "name another database in `url`"
    )


def test_a_killed_session_fails_for_another_attempt(maria: Database) -> None:
    maria.run("CREATE TABLE long_one AS SELECT REPEAT('x', 5000) AS v FROM seq_1_to_20000")
    batches = maria.reader("long_one")(MysqlPart())
    next(batches)
    with closing(maria.server.connect()) as admin, admin.cursor() as cursor:
        cursor.execute(
            f"SELECT id FROM information_schema.processlist WHERE db = '{maria.read.name}'"
        )
        for (number,) in cursor.fetchall():
            cursor.execute(f"KILL {number}")
    with pytest.raises(LoadFailed, match="the connection to MySQL was lost") as raised:
        list(batches)
    assert raised.value.retryable


def test_rows_that_are_no_longer_wanted_are_not_read(maria: Database) -> None:
    maria.run("CREATE VIEW endless AS SELECT a.id FROM t a, t b, t c")
    reader = maria.reader("endless")
    with closing(
        product_connection.connect(maria.read, Secret(PASSWORD), streams=True)
    ) as connection:
        batches = reader._batches(connection)
        next(batches)
        started = time.monotonic()
        batches.close()  # type: ignore[attr-defined]
    assert time.monotonic() - started < 5


def test_the_key_of_a_table_with_system_versions_has_no_end_of_rows(maria: Database) -> None:
    maria.run(
        "CREATE TABLE named (a int PRIMARY KEY, b int NOT NULL UNIQUE,"
        " begins TIMESTAMP(6) GENERATED ALWAYS AS ROW START,"
        " ends TIMESTAMP(6) GENERATED ALWAYS AS ROW END,"
        " PERIOD FOR SYSTEM_TIME (begins, ends)) WITH SYSTEM VERSIONING",
        "INSERT INTO named (a, b) VALUES (1, 1)",
        "UPDATE named SET b = 2",
        "CREATE TABLE hidden (a int PRIMARY KEY) WITH SYSTEM VERSIONING",
        # A period of the application, whose end belongs to the key.
        "CREATE TABLE valid (a int, b date, ends date, PERIOD FOR p (b, ends),"
        " PRIMARY KEY (a, ends))",
    )
    with closing(product_connection.connect(maria.read, Secret(PASSWORD))) as connection:
        found = [
            product.key_of(connection, maria.reader(name).relation)
            for name in ("named", "hidden", "valid")
        ]
        listed = {one.name: one.keys for one in product.list_tables(connection, maria.read, None)}
    assert found == [("a",), ("a",), ("a", "ends")]
    assert listed["named"] == (("a",), ("b",))
