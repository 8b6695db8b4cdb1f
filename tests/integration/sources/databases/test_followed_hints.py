"""Hints of databases, followed literally: SQL that they give is run, and then the rows are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from lakeload.sources.databases.table_names import name_parts
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import JdbcInput
from lakeload_jobs.sources import batch_sizes
from lakeload_jobs.sources.databases.engines.mysql import catalog as mysql
from lakeload_jobs.sources.databases.engines.mysql import connection as mysql_connection
from lakeload_jobs.sources.databases.engines.mysql import read as mysql_read
from lakeload_jobs.sources.databases.engines.mysql import types as mysql_types
from lakeload_jobs.sources.databases.engines.mysql.read import MysqlPart, ReadTable
from lakeload_jobs.sources.databases.engines.postgres.sql import literal, quoted
from tests.hints import ROOT, follows, hints_of, names_setting
from tests.integration.sources.databases.conftest import Database, MariaDatabase
from tests.integration.sources.databases.test_mysql_reads import identity
from tests.integration.sources.databases.test_postgres_relations import error_of, read
from tests.servers.postgres import PASSWORD

_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_SQL = ("GRANT ", "ALTER ", "REFRESH ", "SET ")


def statements(hint: str) -> list[str]:
    """Return the SQL that a hint gives to copy."""
    return [text for _, text in _CODE.findall(hint) if text.startswith(_SQL)]


@dataclass
class Source:
    """A database whose administrator runs SQL, and what is read from it."""

    run: Callable[[str], object]
    input: JdbcInput
    secret: Path
    exclude: tuple[str, ...] = ()

    def login(self, user: str) -> None:
        """Read as another user, whose password is `PASSWORD`."""
        self.secret.write_text(PASSWORD, encoding="utf-8")
        password = SecretReference("file", str(self.secret))
        self.input = replace(self.input, user=user, password=password)


@dataclass(frozen=True)
class Case:
    """What the administrator runs first, what is read by whom, and what follows the hint."""

    given: tuple[str, ...] = ()
    table: dict[str, Any] = field(default_factory=dict)
    user: str | None = None
    follow: str = "SQL"
    """`SQL`: the statements; `FIRST SQL`, `OTHER SQL`: the first or the last one alone; `NAME`:
    the table that the hint names; `AS`: the name that it gives a column of the query; `TIME`: the
    setting that it names; `TABLE`: the table that there is; `EXCLUDE`: the column `broken` is
    left out; `WHERE`: only rows without the condition that it gives are read."""


RLS = (
    "ALTER TABLE orders ENABLE ROW LEVEL SECURITY",
    "CREATE POLICY all_rows ON orders USING (true)",
    "GRANT SELECT ON orders TO {user}",
    "ALTER ROLE {user} SET row_security = off",
)
NAMED = (
    'CREATE SCHEMA "a ""b"".c"',
    'CREATE TABLE "a ""b"".c"."x.y ""z"" `q`" (id int)',
    'INSERT INTO "a ""b"".c"."x.y ""z"" `q`" VALUES (1)',
)
POSTGRES = {
    "the right to the table": Case(user="r"),
    "the right to one column": Case(('GRANT SELECT (id) ON orders TO {user}',), user="r"),
    "the right to the schema and the table": Case(
        (*NAMED[:1], 'CREATE TABLE "a ""b"".c"."t ""u""" (id int)',
         'INSERT INTO "a ""b"".c"."t ""u""" VALUES (1)'),
        {"schema": 'a "b".c', "table": 't "u"'}, 'a "reader" of',
    ),
    "row security that is off, as the policies show": Case(RLS, user="r", follow="FIRST SQL"),
    "row security that is off, by all rows": Case(RLS, user="r", follow="OTHER SQL"),
    "a view that was never filled": Case(
        ('CREATE MATERIALIZED VIEW "m ""v""" AS SELECT * FROM orders WITH NO DATA',),
        {"table": 'm "v"'},
    ),
    "a table of another name": Case(table={"table": "order"}, follow="NAME"),
    "a name with dots, quotes and white space": Case(
        NAMED, {"schema": 'a "b".c', "table": 'X.Y "z" `q`'}, follow="NAME"
    ),
    "two columns of one name": Case(
        table={"query": "SELECT 1, 2 /* second */", "table": ""}, follow="AS"
    ),
    "a statement that takes too long": Case(
        ("CREATE VIEW slow AS SELECT 1 AS id FROM (SELECT pg_sleep(1.2) OFFSET 0) s",),
        {"table": "slow", "statement_timeout": 1}, follow="TIME",
    ),
    "a schema that is not there": Case(
        table={"schema": "warehouse", "table": "stock"}, follow="TABLE"
    ),
    "a view that divides by zero": Case(
        ("CREATE VIEW shares AS SELECT id, 1 / (id - 1) AS broken FROM orders",),
        {"table": "shares"}, follow="EXCLUDE",
    ),
    "a value that is too large": Case(
        ("CREATE TABLE wide AS SELECT 1 AS id, repeat('x', 3000) AS broken",),
        {"table": "wide"}, follow="EXCLUDE",
    ),
    "a value that is too large, which is found": Case(
        ('CREATE TABLE wide (id int, "a ""b""" json)',
         "INSERT INTO wide SELECT n, json_build_array(repeat('x', 999 * n))"
         " FROM generate_series(1, 3, 2) n"),
        {"table": "wide"}, follow="WHERE",
    ),
    "bytes that are too large, which are found": Case(
        ("CREATE TABLE wide AS SELECT n AS id, convert_to(repeat('x', 999 * n), 'UTF8') AS raw"
         " FROM generate_series(1, 3, 2) n",),
        {"table": "wide"}, follow="WHERE",
    ),
}  # fmt: skip


def follow(case: Case, source: Source, error: LakeloadError) -> None:
    hint = error.hint or ""
    code = statements(hint)
    if "SQL" in case.follow:
        assert code, hint
        chosen = {"SQL": code, "FIRST SQL": code[:1], "OTHER SQL": code[-1:]}[case.follow]
        for statement in chosen:
            source.run(statement)
    elif case.follow == "NAME":
        name = re.search(r"did you mean `(.+)`\?", hint)
        assert name is not None, hint
        schema, table = name_parts(name[1])
        source.input = replace(source.input, schema=schema.text, table=table.text)
    elif case.follow == "AS":
        name = re.search(r"`(AS \w*)`", hint)
        query = source.input.query or ""
        source.input = replace(source.input, query=query.replace("/*", f"{name and name[1]} /*"))
    elif case.follow == "TABLE":
        source.input = replace(source.input, schema="public", table="orders")
    elif case.follow == "EXCLUDE":
        assert "leave the column out with `columns.exclude`" in hint
        source.exclude = ("broken",)
    elif case.follow == "WHERE":
        found = re.search("the condition ``(.+)`` finds", hint)
        assert found is not None, hint
        source.run(f"CREATE VIEW small AS SELECT * FROM wide WHERE NOT {found[1]}")
        source.input = replace(source.input, table="small")
    else:
        assert "higher `statement_timeout` in `source`" in hint
        source.input = replace(source.input, statement_timeout=60)


_LARGE = "PostgreSQL: a value that is too large"
SHARED = dict.fromkeys(
    (
        f"{_LARGE}, which is found",
        "PostgreSQL: bytes that are too large, which are found",
        "MariaDB: a value that is too large",
        "MariaDB: a value that is too large, which is found",
    ),
    _LARGE,
)
"""Cases of a hint that is listed with another one of them."""


def check_listed(case: str, hint: str) -> None:
    """Assert that a hint is the one which the list says that a case follows. One that names no
    setting, but SQL or a table, is not in the list."""
    case = SHARED.get(case, case)
    assert bool(hints_of(f"{Path(__file__).relative_to(ROOT)}: {case}")) == names_setting(hint), (
        hint
    )
    follows(__file__, case, hint)


@pytest.fixture
def drops() -> Iterator[ExitStack]:
    """What ends with the test."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture(autouse=True)
def few_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The values of these tests are large."""
    monkeypatch.setattr(batch_sizes, "MAX_VALUE_BYTES", 2000)


@pytest.mark.parametrize("case", POSTGRES.values(), ids=POSTGRES.keys())
def test_a_hint_about_postgresql_lets_its_rows_be_read(
    database: Database,
    tmp_path: Path,
    drops: ExitStack,
    case: Case,
    request: pytest.FixtureRequest,
) -> None:
    database.run("CREATE TABLE orders (id int PRIMARY KEY, note text)")
    database.run("INSERT INTO orders VALUES (1, 'x')")
    source = Source(database.run, replace(database.input, **case.table), tmp_path / "login")
    user = quoted(f"{case.user} {database.input.name}")
    if case.user:
        database.run(f"CREATE ROLE {user} LOGIN PASSWORD {literal(PASSWORD)}")
        drops.callback(database.run, f"DROP OWNED BY {user}; DROP ROLE {user}")
        source.login(f"{case.user} {database.input.name}")
    for statement in case.given:
        database.run(statement.replace("{user}", user))

    error = error_of(source.input)
    check_listed(f"PostgreSQL: {request.node.callspec.id}", error.hint or "")
    follow(case, source, error)

    assert len(read(source.input, exclude=source.exclude)) == 1


MARIADB = {
    "the right to the table": Case(
        ("CREATE TABLE other (id int)", "GRANT SELECT ON other TO {user}"), user="r"
    ),
    "the right to read the table": Case(("GRANT INSERT ON orders TO {user}",), user="r"),
    "the right to a view": Case(
        ("CREATE VIEW `a ``view``` AS SELECT id FROM orders",
         "GRANT INSERT ON `a ``view``` TO {user}"),
        {"table": "a `view`"}, user="it's ",
    ),
    "the right to the database": Case(user="r'"),
    "a table of another name": Case(table={"table": "order"}, follow="NAME"),
    "a name with dots and quotes": Case(
        ("CREATE TABLE `x.y \"z\" ``q``` (id int)", "INSERT INTO `x.y \"z\" ``q``` VALUES (1)"),
        {"table": 'X.Y "z" `q`'}, follow="NAME",
    ),
    "a statement that takes too long": Case(
        ("CREATE VIEW slow AS SELECT SLEEP(1.2) AS id",),
        {"table": "slow", "statement_timeout": 1}, follow="TIME",
    ),
    "a column without the right to it": Case(
        ("ALTER TABLE orders ADD broken int",
         "GRANT SELECT (id), INSERT (broken) ON orders TO {user}"),
        user="r", follow="EXCLUDE",
    ),
    "a value that is too large": Case(
        ("CREATE TABLE wide AS SELECT 1 AS id, REPEAT('x', 3000) AS broken",),
        {"table": "wide"}, follow="EXCLUDE",
    ),
    "a value that is too large, which is found": Case(
        ("CREATE TABLE wide AS SELECT seq AS id, REPEAT('x', 999 * seq) AS `a ``b`"
         " FROM seq_1_to_3_step_2",),
        {"table": "wide"}, follow="WHERE",
    ),
}  # fmt: skip


def _read(given: JdbcInput, *, locks: bool = False, exclude: tuple[str, ...] = ()) -> int:
    with closing(mysql_connection.connect(given, identity().password(given))) as connection:
        relation = mysql.find_relation(connection, given)
        columns = mysql.columns(connection, relation, given)
        selected = mysql_types.select([column for column in columns if column.name not in exclude])
        mysql.check_select(connection, relation, selected, given)
    if locks:
        mysql_read._lock(given, identity().password(given), relation).close()
    reader = ReadTable(given, identity(), relation, selected, "FAIL")
    return sum(batch.num_rows for batch in reader(MysqlPart()))


@pytest.mark.parametrize("case", MARIADB.values(), ids=MARIADB.keys())
def test_a_hint_about_mariadb_lets_its_rows_be_read(
    maria: MariaDatabase,
    tmp_path: Path,
    drops: ExitStack,
    case: Case,
    request: pytest.FixtureRequest,
) -> None:
    maria.run("CREATE TABLE orders (id int PRIMARY KEY)", "INSERT INTO orders VALUES (1)")
    source = Source(maria.run, replace(maria.input, **{"table": "orders"} | case.table),
                    tmp_path / "login")  # fmt: skip
    name = f"{case.user} {maria.input.name}"
    user = "'" + name.replace("'", "''") + "'@'%'"
    if case.user:
        password = PASSWORD.replace("'", "''")
        maria.run(f"CREATE USER {user} IDENTIFIED BY '{password}'")
        drops.callback(maria.run, f"DROP USER {user}")
        source.login(name)
    for statement in case.given:
        maria.run(statement.replace("{user}", user))

    with pytest.raises(LakeloadError) as raised:
        _read(source.input)
    check_listed(f"MariaDB: {request.node.callspec.id}", raised.value.hint or "")
    follow(case, source, raised.value)

    assert _read(source.input, exclude=source.exclude) == 1


def test_the_right_to_lock_tables_is_granted_as_the_hint_says(
    maria: MariaDatabase, tmp_path: Path, drops: ExitStack
) -> None:
    maria.run("CREATE TABLE orders (id int PRIMARY KEY)", "INSERT INTO orders VALUES (1)")
    user, word = f"locks_{maria.input.name}", "'" + PASSWORD.replace("'", "''") + "'"
    maria.run(f"CREATE USER {user} IDENTIFIED BY {word}", f"GRANT SELECT ON orders TO {user}")
    drops.callback(maria.run, f"DROP USER {user}")
    source = Source(maria.run, replace(maria.input, table="orders"), tmp_path / "login")
    source.login(user)
    with pytest.raises(LakeloadError) as raised:
        _read(source.input, locks=True)

    follow(Case(), source, raised.value)

    assert _read(source.input, locks=True) == 1
