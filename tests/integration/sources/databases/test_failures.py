"""Sources that cannot be read: each failure has its own message, and nothing is committed or left.

Errors that only a broken server has are raised by a function of a view, in the middle of the read.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import trustme

from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import JdbcInput
from lakeload_jobs.sources.databases.engines.mysql import catalog as mysql
from lakeload_jobs.sources.databases.engines.postgres import catalog as postgres
from lakeload_jobs.sources.databases.engines.postgres.sql import literal
from tests.integration.formats.worlds import World, load
from tests.integration.sources.databases.conftest import Database
from tests.servers.free_ports import free_ports
from tests.servers.mariadb import PASSWORD as MARIA_PASSWORD
from tests.servers.mariadb import USER as MARIA_USER
from tests.servers.mariadb import MariaDb
from tests.servers.postgres import PASSWORD, Postgres

pytestmark = [
    pytest.mark.usefixtures("warm_spark"),
    # What fails is the source: one table format shows it.
    pytest.mark.parametrize("world", ["parquet"], indirect=True),
]


@dataclass
class Given:
    """A source that a case makes unreadable."""

    run: Callable[[str], object]
    """Executes SQL as the administrator."""
    input: JdbcInput
    folder: Path
    stack: ExitStack
    server: Any

    def login(self, user: str, password: str = PASSWORD) -> None:
        """Read as another user."""
        path = self.folder / "login"
        path.write_text(password, encoding="utf-8")
        self.input = replace(self.input, user=user, password=SecretReference("file", str(path)))

    def url(self, **parameters: str) -> None:
        """Set parameters of the URL."""
        self.input = replace(self.input, parameters=parameters)

    def at(self, **place: Any) -> None:
        """Read from another place."""
        self.input = replace(self.input, **place)


@dataclass(frozen=True)
class Case:
    """What is wrong, and what the load says of it."""

    name: str
    prepare: Callable[[Given], object]
    type: str
    message: str
    hint: str
    retryable: bool = False
    exit_code: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "exit_code", {"Refused": 3, "LoadFailed": 1}[self.type])


def sql(*statements: str) -> Callable[[Given], None]:
    """Return what runs SQL."""

    def prepare(given: Given) -> None:
        for statement in statements:
            given.run(statement)

    return prepare


def wrong_password(given: Given) -> None:
    given.login(str(given.input.user), "not the password")


def no_port(given: Given) -> None:
    (port,) = free_ports(1)
    given.at(port=port)


def other_authority(given: Given) -> None:
    path = given.folder / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(path))
    given.url(sslmode="verify-full", sslrootcert=str(path))


def other_name(given: Given) -> None:
    given.at(host="127.0.0.2" if given.input.database == "POSTGRESQL" else "localhost.localdomain")
    given.url(sslmode="verify-full", sslrootcert=given.server.ca)


@contextmanager
def listening(answer: Callable[[socket.socket], object]) -> Iterator[int]:
    """Answer connections on a port until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                with client:
                    answer(client)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def postgres_without_tls(given: Given) -> None:
    def refuse(client: socket.socket) -> None:
        client.recv(8)
        client.sendall(b"N")
        client.recv(1)

    given.at(port=given.stack.enter_context(listening(refuse)))
    given.url(sslmode="verify-full", sslrootcert=given.server.ca)


def maria_without_tls(given: Given) -> None:
    port = given.input.port

    def greet(client: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", port)) as server:
            greeting = bytearray(server.recv(4096))
        # Protocol, version, 0, thread, 8 bytes of salt, 0: then the flags, of which TLS is 0x0800.
        flags = greeting.index(0, 5) + 1 + 4 + 8 + 1
        assert greeting[flags + 1] & 0x08
        greeting[flags + 1] &= ~0x08
        client.sendall(greeting)
        sent.append(client.recv(4096))

    sent: list[bytes] = []
    given.at(port=given.stack.enter_context(listening(greet)))
    given.url(sslmode="verify-full", sslrootcert=given.server.ca)
    given.stack.callback(lambda: _equal(sent, [b""]))


def _equal(found: object, expected: object) -> None:
    assert found == expected, "a login was sent without TLS"


def postgres_user(*grants: str, options: str = "") -> Callable[[Given], None]:
    """Return what makes the load that of a user with these rights alone."""

    def prepare(given: Given) -> None:
        user = f"limited_{given.input.name}"
        given.run(f"CREATE ROLE {user} LOGIN PASSWORD {literal(PASSWORD)} {options}")
        given.stack.callback(given.run, f"DROP OWNED BY {user}; DROP ROLE {user}")
        for grant in grants:
            given.run(grant.format(user))
        given.login(user)

    return prepare


def maria_user(*grants: str, options: str = "") -> Callable[[Given], None]:
    """The same of MariaDB."""

    def prepare(given: Given) -> None:
        user = f"u_{given.input.name}"
        given.run(f"CREATE USER {user} IDENTIFIED BY 'pw' {options}")
        given.stack.callback(given.run, f"DROP USER {user}")
        for grant in grants:
            given.run(grant.format(user))
        given.login(user, "pw")

    return prepare


def both(*steps: Callable[[Given], object]) -> Callable[[Given], None]:
    """Return what takes several steps."""

    def prepare(given: Given) -> None:
        for step in steps:
            step(given)

    return prepare


def source(**changes: Any) -> Callable[[Given], None]:
    """Return what changes settings of the source."""
    return lambda given: given.at(**changes)


def before(module: Any, function: str, statement: str) -> Callable[[Given], None]:
    """Return what runs SQL before the load calls a function."""

    def prepare(given: Given) -> None:
        original = getattr(module, function)

        def then(*arguments: Any, **named: Any) -> Any:
            given.run(statement)
            return original(*arguments, **named)

        patch = given.stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(module, function, then)

    return prepare


def postgres_lock(given: Given) -> None:
    admin = given.stack.enter_context(closing(given.server.connect(given.input.name)))
    admin.execute("BEGIN; LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")


def one_connection(given: Given) -> None:
    login = {"user": given.input.user, "password": "pw"}
    given.stack.enter_context(closing(given.server.connect(given.input.name, **login)))


def maria_lock(given: Given) -> None:
    admin = given.stack.enter_context(closing(given.server.connect(given.input.name)))
    admin.cursor().execute("LOCK TABLES orders WRITE")


def postgres_raises(state: str) -> Callable[[Given], None]:
    """Return what makes the server fail in the middle of the read."""
    return sql(
        "DROP TABLE orders",
        "CREATE FUNCTION fails(n int) RETURNS int STABLE LANGUAGE plpgsql AS $$ BEGIN"
        " IF n = 500 THEN RAISE EXCEPTION 'No space left on device'"
        f" USING ERRCODE = '{state}'; END IF; RETURN n; END $$",
        "CREATE VIEW orders AS SELECT fails(n) AS id FROM generate_series(1, 1000) n",
    )


def maria_raises(number: int) -> Callable[[Given], None]:
    """The same of MariaDB."""
    return sql(
        "DROP TABLE orders",
        "CREATE FUNCTION fails(n int) RETURNS int DETERMINISTIC NO SQL BEGIN IF n = 500 THEN"
        f" SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = {number}, MESSAGE_TEXT = 'provoked'; END IF;"
        " RETURN n; END",
        "CREATE VIEW orders AS SELECT fails(seq) AS id FROM seq_1_to_1000",
    )


R, F = "Refused", "LoadFailed"
NO_LOGIN = "connecting to PostgreSQL at "
POSTGRES = (
    Case("password", wrong_password, R, NO_LOGIN, "check `user` and `password`", True),
    Case("host", source(host="no-such-host.invalid"), R, "invalid", "check `url`", True),
    Case("port", no_port, R, NO_LOGIN, "check `url`", True),
    Case("database", source(name="absent"), R, '"absent" does not exist', "database exists", True),
    Case("authority", other_authority, R, "certificate", "TLS of the server", True),
    Case("name", other_name, R, "127.0.0.2", "TLS of the server", True),
    Case("no TLS", postgres_without_tls, R, "SSL", "TLS of the server", True),
    Case("table", source(table="order"), F, "has no table `public.order`", "mean `public.orders`"),
    Case("schema", source(schema="shop"), F, "no table `shop.orders`", "mean `public.orders`"),
    Case("no schema", source(schema="a", table="b"), F, "no table `a.b`", "no schema `a`"),
    Case("grant", postgres_user(), F, "SQLSTATE 42501", 'GRANT SELECT ON "public"."orders" TO'),
    Case(
        "grant of a column",
        postgres_user("GRANT SELECT (id) ON orders TO {}"),
        F, "SQLSTATE 42501", 'run `GRANT SELECT ("note") ON "public"."orders" TO',
    ),
    Case(
        "grant of the schema",
        both(
            sql("CREATE SCHEMA shop; CREATE TABLE shop.orders (id int)"),
            postgres_user("GRANT SELECT ON shop.orders TO {}"),
            source(schema="shop"),
        ),
        F, "SQLSTATE 42501", 'run `GRANT USAGE ON SCHEMA "shop" TO "limited_',
    ),
    Case(
        "row security that is off",
        both(
            sql(
                "ALTER TABLE orders ENABLE ROW LEVEL SECURITY;"
                "CREATE POLICY all_rows ON orders USING (true)"
            ),
            postgres_user(
                "GRANT SELECT ON orders TO {}", "ALTER ROLE {} SET row_security = off"
            ),
        ),
        F, "row-level security policy", 'run `ALTER ROLE "limited_',
    ),
    Case(
        "view that was never filled",
        both(
            sql("CREATE MATERIALIZED VIEW m AS SELECT * FROM orders WITH NO DATA"),
            source(table="m"),
        ),
        F, "SQLSTATE 55000", 'run `REFRESH MATERIALIZED VIEW "public"."m"`',
    ),
    Case(
        "dropped column",
        before(postgres, "select", "ALTER TABLE orders DROP COLUMN note"),
        F, "SQLSTATE 42703", "the columns of the table have changed",
    ),
    Case(
        "dropped table",
        before(postgres, "select", "DROP TABLE orders"),
        F, "SQLSTATE 42P01", "the table was dropped or renamed",
    ),
    Case(
        "lock",
        both(postgres_lock, source(lock_timeout=1)),
        F, "SQLSTATE 55P03", "another session holds a lock", True,
    ),
    Case(
        "statement time-out",
        both(
            sql("DROP TABLE orders; CREATE VIEW orders AS SELECT pg_sleep(5)::text AS s"),
            source(statement_timeout=1),
        ),
        F, "SQLSTATE 57014", "a higher `statement_timeout` in `source`", True,
    ),
    Case(
        "connections of the user",
        postgres_user(options="CONNECTION LIMIT 0"),
        R, "too many connections for role", "connections are free", True,
    ),
    Case(
        "connections of a reader",
        postgres_user("GRANT SELECT ON orders TO {}", options="CONNECTION LIMIT 1"),
        R, "too many connections for role", "`max_connections`", True,
    ),
    Case(
        "temporary files",
        both(
            sql(
                "DROP TABLE orders; CREATE VIEW orders AS SELECT n, repeat(md5(n::text), 9)"
                " FROM generate_series(1, 9000) n ORDER BY 2"
            ),
            postgres_user(
                "GRANT SELECT ON orders TO {}",
                "ALTER ROLE {0} SET temp_file_limit = '64kB'; ALTER ROLE {0} SET work_mem = 64",
            ),
        ),
        F, "SQLSTATE 53400", "`temp_file_limit`", True,
    ),
    Case("disk", postgres_raises("53100"), F, "SQLSTATE 53100", "disk of the server", True),
    Case("replica", postgres_raises("40001"), F, "40001", "`max_standby_streaming_delay`", True),
    Case("memory", postgres_raises("53200"), F, "SQLSTATE 53200", "memory of the server", True),
    Case(
        "division by zero",
        sql(
            "DROP TABLE orders; CREATE VIEW orders AS SELECT 1 / (n - 500) AS id"
            " FROM generate_series(1, 1000) n"
        ),
        F, "SQLSTATE 22012", "`columns.exclude`",
    ),
)  # fmt: skip
MARIA = (
    Case("password", wrong_password, R, "Access denied", "check `user` and `password`"),
    Case("host", source(host="no-such-host.invalid"), R, "invalid", "check `url`", True),
    Case("port", no_port, R, "connecting to MySQL at", "check `url`", True),
    Case("database", source(name="absent"), R, "Unknown database", "check the database in `url`"),
    Case("authority", other_authority, R, "certificate verify failed", "set `sslrootcert`"),
    Case("no TLS", maria_without_tls, R, "SSL is required", "turn on TLS"),
    Case("table", source(table="order"), F, "the user sees no table", ".orders`? If the name"),
    Case("schema", source(schema="absent"), F, "the user sees no table `absent.", "run ``GRANT"),
    Case(
        "grant",
        both(
            sql("CREATE TABLE other (id int)"),
            maria_user("GRANT SELECT ON other TO {}"),
        ),
        F, "the user sees no table", "run ``GRANT SELECT ON",
    ),
    Case(
        "dropped column",
        before(mysql, "select", "ALTER TABLE orders DROP COLUMN note"),
        F, "(error 1054)", "the columns of the table have changed",
    ),
    Case(
        "dropped table",
        before(mysql, "select", "DROP TABLE orders"),
        F, "(error 1146)", "the table was dropped or renamed",
    ),
    Case(
        "lock",
        both(maria_lock, source(lock_timeout=1)),
        F, "(error 1205)", "another session holds a lock", True,
    ),
    Case(
        "statement time-out",
        both(
            sql("DROP TABLE orders", "CREATE VIEW orders AS SELECT seq, SLEEP(1) FROM seq_1_to_9"),
            source(statement_timeout=1),
        ),
        F, "(error 1969)", "a higher `statement_timeout` in `source`", True,
    ),
    Case(
        "connections",
        both(
            maria_user("GRANT SELECT ON orders TO {}", options="WITH MAX_USER_CONNECTIONS 1"),
            one_connection,
        ),
        R, "max_user_connections", "run again when fewer sessions are connected", True,
    ),
    Case("disk", maria_raises(1021), F, "(error 1021)", "disk of the server", True),
    Case("full", maria_raises(1114), F, "(error 1114)", "disk of the server", True),
    Case("deadlock", maria_raises(1213), F, "(error 1213)", "another session holds a lock", True),
    Case("changed", maria_raises(1412), F, "(error 1412)", "run again", True),
    Case(
        "broken view",
        sql("CREATE TABLE gone (id int)", "DROP TABLE orders",
            "CREATE VIEW orders AS SELECT id FROM gone", "DROP TABLE gone"),
        F, "(error 1356)", "fix the view",
    ),
)  # fmt: skip


def check(result: TableResult, world: World, case: Case) -> None:
    """The load failed as the case says, and left nothing."""
    assert result.status == "FAILED"
    error = result.error
    assert error is not None
    found = (error.type, error.exit_code, error.retryable)
    assert found == (case.type, case.exit_code, case.retryable), error
    assert case.message in error.message, error
    assert case.hint in (error.hint or ""), error
    assert PASSWORD not in repr(result)
    assert (world.rows(), world.left()) == ([], [])


def none_left(sessions: Callable[[], list[Any]]) -> None:
    """The load has closed its connections, which the server may see a little later."""
    deadline = time.monotonic() + 10
    while (found := sessions()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not found


@pytest.mark.parametrize("case", POSTGRES, ids=lambda case: case.name)
def test_what_is_wrong_in_postgres_is_named(
    world: World, postgres: Postgres, database: Database, tmp_path: Path, case: Case
) -> None:
    database.run("CREATE TABLE orders (id int PRIMARY KEY, note text)")
    database.run("INSERT INTO orders SELECT n, 'x' FROM generate_series(1, 1000) n")
    with ExitStack() as stack:
        given = Given(database.run, database.input, tmp_path, stack, postgres)
        case.prepare(given)
        result = load(world, replace(database.table(world), input=given.input))
    check(result, world, case)
    none_left(
        lambda: database.run(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name = 'lakeload'"
        ).fetchall()
    )


def maria_input(server: MariaDb, folder: Path) -> JdbcInput:
    """Return the table `orders` of a new database."""
    name, secret = server.new_database(), folder / "password"
    secret.write_text(MARIA_PASSWORD, encoding="utf-8")
    password = SecretReference("file", str(secret))
    place = ("MYSQL", "127.0.0.1", server.port, name, name, "orders")
    return JdbcInput(*place, user=MARIA_USER, password=password)  # type: ignore[arg-type]


def test_a_full_disk_of_the_server_is_not_that_of_spark(
    world: World, postgres: Postgres, database: Database, tmp_path: Path
) -> None:
    (case,) = (case for case in POSTGRES if case.name == "disk")
    database.run("CREATE TABLE orders (id int)")
    with ExitStack() as stack:
        case.prepare(Given(database.run, database.input, tmp_path, stack, postgres))
        result = load(world, database.table(world), reader="JVM")
    check(result, world, case)


@pytest.mark.parametrize("case", MARIA, ids=lambda case: case.name)
def test_what_is_wrong_in_mariadb_is_named(
    world: World, mariadb: MariaDb, tmp_path: Path, case: Case
) -> None:
    read = maria_input(mariadb, tmp_path)
    name = read.name
    with closing(mariadb.connect(name)) as admin:

        def run(statement: str) -> tuple[Any, ...]:
            with admin.cursor() as cursor:
                cursor.execute(statement)
                return tuple(cursor.fetchall())

        run("CREATE TABLE orders (id int PRIMARY KEY, note text)")
        run("INSERT INTO orders SELECT seq, 'x' FROM seq_1_to_1000")
        with ExitStack() as of_case:
            given = Given(run, read, tmp_path, of_case, mariadb)
            case.prepare(given)
            result = load(world, replace(world.table("none"), input=given.input))
        check(result, world, case)
        none_left(
            lambda: list(
                run(
                    f"SELECT id FROM information_schema.processlist WHERE db = '{name}'"
                    " AND id <> CONNECTION_ID()"
                )
            )
        )


def test_a_view_of_mariadb_that_divides_by_zero_has_a_null(
    world: World, mariadb: MariaDb, tmp_path: Path
) -> None:
    read = maria_input(mariadb, tmp_path)
    view = "CREATE VIEW orders AS SELECT 1 / (seq * 1.0 - 2) AS x FROM seq_1_to_3"
    mariadb.run(view, database=read.name)

    result = load(world, replace(world.table("none"), input=read))

    assert (result.status, result.rows) == ("LOADED", 3), result.error
    assert sorted(str(row["x"]) for row in world.rows()) == ["-1.0000", "1.0000", "None"]
