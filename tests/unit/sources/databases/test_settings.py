"""`source: {type: JDBC}`: settings, what the job is given, and what is rejected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakeload.documents.spec import table_specs
from lakeload.sources.registry import facts_of, source_of
from lakeload_jobs.contract.codec import from_json, to_json
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import JdbcInput, TableSpec
from lakeload_jobs.sources.databases.engines.mysql.connection import SETTINGS, SETTINGS_OF_SOME
from lakeload_jobs.sources.databases.engines.mysql.types import RULES
from lakeload_jobs.sources.databases.engines.oracle import engine as oracle
from lakeload_jobs.sources.databases.engines.postgres import connection as postgres_connection
from lakeload_jobs.sources.databases.engines.postgres import types as postgres_types
from lakeload_jobs.sources.databases.engines.postgres.connection import REFUSED
from lakeload_jobs.sources.databases.engines.sqlserver import engine as sqlserver
from tests.unit.documents.documents import pipeline, problems_of, validator

LOGIN = "password: {env: SHOP_PASSWORD}"
SHOP = """\
version: 1
name: shop
destination: {version: 1, bucket: my-data-lake, region: us-east-1}
source:
  type: JDBC
  url: postgresql://db.example.com/shop?sslmode=verify-full&sslrootcert=ca.pem
  user: loader
  password: {env: SHOP_PASSWORD}
tables:
  - {table: public.orders, where: a > 0}
  - {table: 'sales."Line.Items"'}
  - {table: open orders, query: select 1 as a}
"""


def test_its_settings_become_what_the_job_is_given(tmp_path: Path) -> None:
    orders, items, query = table_specs(pipeline(tmp_path, SHOP))

    assert orders.input == JdbcInput(
        "POSTGRESQL",
        "db.example.com",
        5432,
        "shop",
        "public",
        "orders",
        user="loader",
        password=SecretReference("env", "SHOP_PASSWORD"),
        parameters={"sslmode": "verify-full", "sslrootcert": f"{tmp_path}/ca.pem"},
    )
    assert isinstance(items.input, JdbcInput)
    assert (items.input.schema, items.input.table) == ("sales", "Line.Items")
    assert isinstance(query.input, JdbcInput)
    assert (query.input.table, query.input.query) == ("", "select 1 as a")
    assert from_json(TableSpec, json.loads(json.dumps(to_json(orders)))) == orders


def test_the_target_is_the_table_in_the_schema_of_the_source(tmp_path: Path) -> None:
    orders, items, query = table_specs(pipeline(tmp_path, SHOP))
    assert (orders.target, items.target) == ("public.orders", "sales.Line_Items")
    assert query.target == "open_orders"

    moved = SHOP.replace("name: shop", "name: shop\ndestination_prefix: erp", 1)
    assert table_specs(pipeline(tmp_path, moved))[0].target == "erp_public.orders"


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("db.example.com", "db2.example.com", False),
        ("/shop?", "/shop2?", False),
        ("public.orders", "public.orders2", False),
        ("table: public.orders,", "table: public.orders, query: select 1,", False),
        ("user: loader", "user: other", True),
        ("SHOP_PASSWORD", "OTHER", True),
        ("verify-full", "verify-ca", True),
        ("postgresql://db.example.com/", "jdbc:postgresql://loader@db.example.com:5432/", True),
        ("type: JDBC", "type: JDBC\n  max_connections: 8", True),
        ("type: JDBC", "type: JDBC\n  lock_timeout: 5\n  statement_timeout: 900", True),
    ],
)
def test_what_decides_the_rows_is_in_the_fingerprint(
    old: str, new: str, same: bool, tmp_path: Path
) -> None:
    def mark(text: str) -> str:
        return table_specs(pipeline(tmp_path, text))[0].fingerprint

    assert (mark(SHOP) == mark(SHOP.replace(old, new))) is same


def test_a_glob_is_valid_without_its_database(tmp_path: Path) -> None:
    text = SHOP.replace("public.orders,", "'*.*', exclude: [audit_*, public.x],")
    tables = table_specs(pipeline(tmp_path, text))
    assert tables[0].source == "*.*"
    validator("pipeline").validate(yaml.safe_load(text))


def test_it_is_valid_for_an_editor_too() -> None:
    validator("pipeline").validate(yaml.safe_load(SHOP))


@pytest.mark.parametrize(
    ("old", "new", "key", "message"),
    [
        ("://db.", "://loader:hunter2@db.", "source.url", "the URL carries a password"),
        ("sslmode=verify-full", "password=hunter2", "source.url", "`password` of the URL"),
        ("{env: SHOP_PASSWORD}", "hunter2", "source.password", "use a reference"),
        ("postgresql:", "db2:", "source.url", "is not a database that lakeload reads"),
        ("sslmode=", "sslmod=", "source.url", "which lakeload does not know"),
        ("verify-full", "verify", "source.url", "is not one of libpq's"),
        ("sslmode=verify-full", "connect_timeout=soon", "source.url", "a number of seconds"),
        ("sslmode=verify-full", "user=a", "source.url", "belongs below `source`"),
        ("/shop?", "?", "source.url", "one host and one database"),
        ("db.example.com", "db.example.com:port", "source.url", "is not the URL of a database"),
        ("db.example.com", "other@db.example.com", "source.user", "the URL names `other`"),
        ("public.orders", "orders", "tables[0].table", "a schema and a table"),
        ("public.orders", "a.b.c", "tables[0].table", "a schema and a table"),
        ("public.orders", "'*'", "tables[0].table", "a schema and a table"),
        ("public.orders", "public.*, name: a", "tables[0].name", "the target of all tables that"),
        ("public.orders", "public.a, exclude: [b]", "tables[0].exclude", "`table` is no glob"),
        ("public.orders", "public.*, exclude: [a.b.c]", "tables[0].exclude[0]", "a schema and a"),
        ("type: JDBC", "type: JDBC\n  max_connections: 1", "source.max_connections", "cannot be"),
        ("type: JDBC", "type: JDBC\n  lock_timeout: 0", "source.lock_timeout", "cannot be"),
        ("type: JDBC", "type: JDBC\n  statement_timeout: -1", "source.statement_timeout", "cannot"),
        (LOGIN, f"{LOGIN}\n  iam_authentication: true", "source.password", "two ways to log in"),
        ("name: shop", "name: shop\non_bad_value: QUARANTINE", "on_bad_value", "not supported"),
    ],
)  # fmt: skip
def test_mistakes_are_found_where_they_are(
    old: str, new: str, key: str, message: str, tmp_path: Path
) -> None:
    problems = problems_of(tmp_path, SHOP.replace(old, new, 1))

    assert any(problem.key == key and message in problem.message for problem in problems), problems
    assert "hunter2" not in repr([(problem.message, problem.hint) for problem in problems])


def test_a_login_by_iam_needs_a_user_and_a_server_that_is_verified(tmp_path: Path) -> None:
    text = SHOP.replace(LOGIN, "iam_authentication: true")
    spec = table_specs(pipeline(tmp_path, text))[0]
    assert isinstance(spec.input, JdbcInput)
    assert (spec.input.iam_authentication, spec.input.password) == (True, None)
    assert spec.fingerprint == table_specs(pipeline(tmp_path, SHOP))[0].fingerprint

    (tls,) = problems_of(tmp_path, text.replace("verify-full", "require"))
    assert (tls.key, "needs TLS" in tls.message) == ("source.url", True)
    (user,) = problems_of(tmp_path, text.replace("  user: loader\n", ""))
    assert (user.key, user.message) == ("source", "`user` is missing")


def test_the_page_has_the_table_of_types() -> None:
    docs = Path(__file__).parents[4] / "docs"
    pages = ("postgres.md", "mysql.md", "sql-server-oracle.md")
    text = "".join((docs / page).read_text(encoding="utf-8") for page in pages)
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| `")]
    shown = [(row[1].strip().strip("`"), row[2].strip().strip("`")) for row in rows]
    rules = (*postgres_types.RULES, *RULES, *sqlserver.RULES, *oracle.RULES)
    assert shown == [(rule.type, rule.target) for rule in rules]


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("postgres.md", {*postgres_connection.SETTINGS, *REFUSED}),
        ("mysql.md", {*SETTINGS, *SETTINGS_OF_SOME, "max_allowed_packet"}),
    ],
)
def test_the_page_of_an_engine_names_each_variable_of_the_session(
    page: str, names: set[str]
) -> None:
    text = (Path(__file__).parents[4] / "docs" / page).read_text(encoding="utf-8")
    section = text.partition("### Variables of the session")[2].partition("\n## ")[0]
    assert {name for name in names if f"`{name}`" not in section} == set()


MARIADB = """\
version: 1
name: shop
destination: {version: 1, bucket: my-data-lake, region: us-east-1}
source: {type: JDBC, url: "mysql://loader@db.example.com/shop?sslmode=verify-ca"}
tables:
  - {table: 'crm."Line.Items"'}
"""


def test_mysql_and_mariadb_are_one_database(tmp_path: Path) -> None:
    (table,) = table_specs(pipeline(tmp_path, MARIADB))

    assert table.input == JdbcInput(
        "MYSQL",
        "db.example.com",
        3306,
        "shop",
        "crm",
        "Line.Items",
        user="loader",
        parameters={"sslmode": "verify-ca"},
    )
    assert table.target == "crm.Line_Items"
    for scheme in ("mariadb:", "jdbc:mysql:", "jdbc:mariadb:"):
        other = table_specs(pipeline(tmp_path, MARIADB.replace("mysql:", scheme)))[0]
        assert other.fingerprint == table.fingerprint


@pytest.mark.parametrize(
    ("old", "new", "key", "message"),
    [
        ("loader@", "", "source", "`user` is missing"),
        ("sslmode=verify-ca", "application_name=a", "source.url", "which lakeload does not know"),
        ("type: JDBC", "type: JDBC, consistency: SYNC", "source.consistency", "no common snapshot"),
    ],
)
def test_what_only_mysql_lacks_is_found(
    old: str, new: str, key: str, message: str, tmp_path: Path
) -> None:
    problems = problems_of(tmp_path, MARIADB.replace(old, new, 1))

    assert any(problem.key == key and message in problem.message for problem in problems), problems


def test_a_lookback_is_a_duration_or_a_number_and_needs_a_cursor(tmp_path: Path) -> None:
    table = "  - {table: public.orders, cursor: at, lookback: "
    head = SHOP[: SHOP.index("  - {table: public.orders")]
    for given, expected in (("PT10M", "PT10M"), ("1000", "1000"), ("'5'", "5")):
        (spec,) = table_specs(pipeline(tmp_path, f"{head}{table}{given}}}\n"))
        assert isinstance(spec.input, JdbcInput)
        assert (spec.input.lookback, spec.input.incremental) == (expected, True)

    (problem,) = problems_of(tmp_path, f"{head}{table}10 min}}\n")
    assert problem.message == "`10 min` is no duration and no number"
    without = table.replace("cursor: at, ", "")
    (problem,) = problems_of(tmp_path, f"{head}{without}PT1M}}\n")
    assert problem.message == "`lookback` has no effect without `cursor`"
    for keyless in ("primary_key: [], ", "query: SELECT 1, "):
        (problem,) = problems_of(tmp_path, f"{head}{table}PT1M, {keyless}}}\n")
        assert problem.message == "`lookback` needs `primary_key`: late rows are compared by it"


def test_several_tasks_read_a_table_of_mysql_where_consistency_says_so(tmp_path: Path) -> None:
    for name, said in (("LOCK", "wait for some seconds"), ("NONE", "at different moments")):
        several = f"type: JDBC, consistency: {name}"
        tables = table_specs(pipeline(tmp_path, MARIADB.replace("type: JDBC", several, 1)))
        reads = [table.input for table in tables]
        (warning,) = facts_of(reads[0]).warnings
        assert said in warning
        assert facts_of(reads[0]).numbering == "not counted"
        assert tables[0].fingerprint == table_specs(pipeline(tmp_path, MARIADB))[0].fingerprint
        (problem,) = problems_of(
            tmp_path, SHOP.replace("type: JDBC", f"type: JDBC\n  consistency: {name}", 1)
        )
        assert (problem.key, problem.hint) == ("source.consistency", "remove it")
    few = MARIADB.replace("type: JDBC", "type: JDBC, consistency: LOCK, max_connections: 2", 1)
    (problem,) = problems_of(tmp_path, few)
    assert problem.key == "source.max_connections"


def test_one_snapshot_of_all_tables_needs_three_connections_and_plan_says_what_it_holds_back(
    tmp_path: Path,
) -> None:
    together = SHOP.replace("type: JDBC", "type: JDBC\n  consistency: SYNC", 1)
    reads = [table.input for table in table_specs(pipeline(tmp_path, together))]

    (warning,) = facts_of(reads[0]).warnings

    assert "VACUUM" in warning
    each = [table.input for table in table_specs(pipeline(tmp_path, SHOP))]
    assert facts_of(each[0]).warnings == ()
    few = together.replace("type: JDBC", "type: JDBC\n  max_connections: 2", 1)
    (problem,) = problems_of(tmp_path, few)
    assert (problem.key, problem.hint) == (
        "source.max_connections",
        "set `max_connections: 3` or more",
    )


def test_xmin_is_no_column_of_the_rows_and_only_tables_of_postgres_have_it(tmp_path: Path) -> None:
    head = SHOP[: SHOP.index("  - {table: public.orders")]
    table = "  - {table: public.orders, cursor: xmin"
    (spec,) = table_specs(pipeline(tmp_path, f"{head}{table}}}\n"))
    assert isinstance(spec.input, JdbcInput)
    assert (spec.cursor, spec.input.by_xmin, spec.input.incremental) == (None, True, True)
    query = "  - {table: q, query: select 1 as xmin, cursor: xmin}\n"
    (spec,) = table_specs(pipeline(tmp_path, head + query))
    assert isinstance(spec.input, JdbcInput)
    assert (spec.cursor, spec.input.by_xmin) == ("xmin", False)

    (problem,) = problems_of(tmp_path, f"{head}{table}, lookback: 5}}\n")
    assert problem.message == "`lookback` has no effect with `cursor: xmin`"
    maria = head.replace("postgresql://", "mysql://").replace("&sslrootcert=ca.pem", "")
    (problem,) = problems_of(tmp_path, f"{maria}{table}}}\n")
    assert problem.message == "`cursor: xmin` is the transaction id of PostgreSQL's rows"


OTHER = """\
version: 1
name: shop
destination: {version: 1, bucket: my-data-lake, region: us-east-1}
source: {type: JDBC, url: "jdbc:h2:tcp://db/~/shop", jar: [../h2.jar], user: sa}
tables:
  - {table: PUBLIC.ORDERS}
  - {table: orders}
  - {table: asked, query: SELECT 1 AS a}
"""


def test_any_other_database_is_read_by_the_driver_that_the_document_names(tmp_path: Path) -> None:
    orders, plain, query = table_specs(pipeline(tmp_path, OTHER))

    assert orders.input == JdbcInput(
        "OTHER", "", 0, "", "PUBLIC", "ORDERS", user="sa", url="jdbc:h2:tcp://db/~/shop",
        jars=(f"{tmp_path}/../h2.jar",),
    )  # fmt: skip
    assert isinstance(plain.input, JdbcInput)
    assert (plain.input.schema, plain.input.table, plain.target) == ("", "orders", "orders")
    assert query.target == "asked"
    assert orders.target == "PUBLIC.ORDERS"
    reads = [orders.input]
    assert facts_of(reads[0]).jars == (Path(f"{tmp_path}/../h2.jar"),)
    assert "not always exact" in facts_of(reads[0]).warnings[0]
    moved = table_specs(pipeline(tmp_path, OTHER.replace("../h2.jar", "b.jar, c.jar")))[0]
    assert moved.fingerprint == orders.fingerprint
    moved = table_specs(pipeline(tmp_path, OTHER.replace("~/shop", "~/other")))[0]
    assert moved.fingerprint != orders.fingerprint
    validator("pipeline").validate(yaml.safe_load(OTHER))


@pytest.mark.parametrize(
    ("old", "new", "key", "message"),
    [
        ("~/shop", "~/shop;PASSWORD=hunter2", "source.url", "`PASSWORD` of the URL is a secret"),
        ("tcp://db", "tcp://sa:hunter2@db", "source.url", "the URL carries a password"),
        ("jdbc:h2:tcp:", "jdbc:oracle:thin:sa/hunter2@", "source.url", "carries a password"),
        (", jar: [../h2.jar]", "", "source", "`jar` is missing"),
        ("jar:", "consistency: SYNC, jar:", "source.consistency", "is not possible"),
        ("jar:", "iam_authentication: true, jar:", "source.iam_authentication", "not possible"),
        ("jar:", "lock_timeout: 9, jar:", "source.lock_timeout", "is not possible"),
        ("PUBLIC.ORDERS", "PUBLIC.*", "tables[0].table", "a glob in `table` is not possible"),
        ("PUBLIC.ORDERS", "A.B.C", "tables[0].table", "a schema and a table"),
        ("PUBLIC.ORDERS", "A.B, cursor: xmin", "tables[0].cursor", "`cursor: xmin` is not"),
        ("ORDERS", "B, cursor: a, lookback: 5", "tables[0].lookback", "is not possible"),
        ("ORDERS", "B, detect_deletes: true", "tables[0].detect_deletes", "is not possible"),
        ("ORDERS", "B, mode: UPSERT", "tables[0]", "needs `primary_key`"),
        (
            "jdbc:h2:tcp://db/~/shop",
            "postgresql://db/shop",
            "source.jar",
            "lakeload has the driver of this",
        ),
        ("jdbc:h2:tcp://db/~/shop", "postgresql://db/shop", "tables[1].table", "a schema and a"),
    ],
)
def test_what_a_driver_of_the_user_cannot_do_is_found(
    old: str, new: str, key: str, message: str, tmp_path: Path
) -> None:
    problems = problems_of(tmp_path, OTHER.replace(old, new, 1))

    assert any(problem.key == key and message in problem.message for problem in problems), problems
    assert "hunter2" not in repr([(problem.message, problem.hint) for problem in problems])


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("sqlserver://sa@db/shop?sslmode=require", ("SQLSERVER", "db", 1433, "shop")),
        ("jdbc:sqlserver://sa@db:5000/shop", ("SQLSERVER", "db", 5000, "shop")),
        ("oracle://sa@db/ORCL?connect_timeout=5", ("ORACLE", "db", 1521, "ORCL")),
    ],
)
def test_sql_server_and_oracle_are_read_with_their_drivers(
    url: str, expected: tuple[Any, ...], tmp_path: Path
) -> None:
    jar = ", jar: /opt/ojdbc11.jar" if expected[0] == "ORACLE" else ""
    text = OTHER.replace("jdbc:h2:tcp://db/~/shop", url).replace(
        ", jar: [../h2.jar], user: sa", jar
    )
    (table,) = table_specs(pipeline(tmp_path, text.replace("  - {table: orders}\n", "").replace(
        "  - {table: asked, query: SELECT 1 AS a}\n", "")))  # fmt: skip

    read = table.input
    assert isinstance(read, JdbcInput)
    assert (read.database, read.host, read.port, read.name, read.user) == (*expected, "sa")
    source = source_of(read)
    assert source.facts(read).jar_sets == ({"sqlserver"} if not jar else frozenset())
    assert source.facts(read).reader == "jvm"
    (warning,) = source.facts(read).warnings
    assert "not proven against a server" in warning


@pytest.mark.parametrize(
    ("url", "key", "message"),
    [
        ("jdbc:sqlserver://db:1433;databaseName=a", "source.url", "is not the URL of a database"),
        ("jdbc:sqlserver://db;password=hunter2", "source.url", "`password` of the URL is a secret"),
        ("jdbc:oracle:thin:@db:1521/a", "source.url", "one host and one database"),
        ("oracle://db/a?sslmode=require", "source.url", "is not one of those that its driver has"),
        ("sqlserver://db/a", "source.jar", "`jar` is not needed"),
        ("oracle://db/a", "tables[1].table", "a schema and a table"),
    ],
)
def test_mistakes_about_sql_server_and_oracle_are_found(
    url: str, key: str, message: str, tmp_path: Path
) -> None:
    problems = problems_of(tmp_path, OTHER.replace("jdbc:h2:tcp://db/~/shop", url))

    assert any(problem.key == key and message in problem.message for problem in problems), problems
    assert "hunter2" not in repr([(problem.message, problem.hint) for problem in problems])
