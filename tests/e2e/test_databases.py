"""Loads of a database through the command line: login, TLS, and a password that nothing shows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.canaries import password_canary
from tests.e2e.command import Ended, lakeload
from tests.e2e.watching import ArgvWatcher
from tests.servers.mariadb import MariaDb
from tests.servers.ministack import Lake
from tests.servers.postgres import Postgres

pytestmark = pytest.mark.e2e

CANARIES = password_canary()


@pytest.fixture
def source(postgres: Postgres) -> Iterator[dict[str, Any]]:
    """What a pipeline says of a database that a user without other rights reads."""
    name = postgres.new_database()
    user = f"user_{name}"
    password = CANARIES.values["password"].replace("'", "''")
    with closing(postgres.connect(name)) as admin:
        admin.execute(
            "CREATE TABLE orders (id int PRIMARY KEY, note text);"
            "INSERT INTO orders VALUES (1, 'a'), (2, 'b');"
            f"CREATE ROLE {user} LOGIN PASSWORD '{password}'; GRANT SELECT ON orders TO {user}"
        )
        url = postgres.url(name) + f"?sslmode=verify-full&sslrootcert={postgres.ca}"
        reference = {"env": "SHOP_PASSWORD"}
        yield {"type": "JDBC", "url": url, "user": user, "password": reference}
        admin.execute(f"DROP OWNED BY {user}; DROP ROLE {user}")


@pytest.fixture
def mysql_source(mariadb: MariaDb) -> Iterator[dict[str, Any]]:
    """The same of a table `public.orders` of MariaDB."""
    name = mariadb.new_database()
    password = CANARIES.values["password"].replace("'", "''").replace("\\", "\\\\")
    mariadb.run(
        "CREATE DATABASE IF NOT EXISTS public",
        "CREATE OR REPLACE TABLE public.orders (id int PRIMARY KEY, note text)",
        "INSERT INTO public.orders VALUES (1, 'a'), (2, 'b')",
        f"CREATE USER {name} IDENTIFIED BY '{password}'",
        f"GRANT SELECT ON public.orders TO {name}",
        f"GRANT SELECT ON `{name}`.* TO {name}",
    )
    url = mariadb.url(name) + f"?sslmode=verify-full&sslrootcert={mariadb.ca}"
    yield {"type": "JDBC", "url": url, "user": name, "password": {"env": "SHOP_PASSWORD"}}
    mariadb.run(f"DROP USER {name}", "DROP DATABASE public")


def _keys(lake: Lake) -> list[str]:
    return lake.keys()


def _sync(lake: Lake, folder: Path) -> Ended:
    command = ("sync", "pipeline.yml", "-vv", "--log-file", "load.log")
    return lakeload(lake, folder, *command, SHOP_PASSWORD=CANARIES.values["password"])


def _check_secrets(folder: Path, ended: Ended) -> None:
    assert CANARIES.found_in(b"x" + CANARIES.values["password"].encode()) == ["password"]
    for path in folder.rglob("*"):
        if path.is_file():
            assert CANARIES.found_in(path.read_bytes()) == [], f"in the file {path}"
    assert CANARIES.found_in((ended.stdout + ended.stderr).encode()) == []


@pytest.mark.usefixtures("warm_spark")
@pytest.mark.parametrize(("database", "reader"), [("source", "JVM"), ("mysql_source", "AUTO")])
def test_a_load_leaves_no_password_anywhere(
    lake: Lake, database: str, reader: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """What Spark itself shows is checked by test_postgres_jvm.py in tests/integration, and
    by test_iceberg_secrets.py on a Spark of its own."""
    source = request.getfixturevalue(database)
    tables = [{"table": "public.orders"}]
    lake.write_pipeline(tmp_path, tables=tables, source=source, spark={"reader": reader})

    with ArgvWatcher() as watcher:
        ended = _sync(lake, tmp_path)

    assert ended.code == 0, ended.stdout + ended.stderr
    assert "shop_public.orders" in ended.stdout
    keys = [key for key in _keys(lake) if key.endswith(".parquet")]
    assert len(keys) == 1
    assert {path.name for path in tmp_path.rglob("*")} >= {"spec.json", "spark.log", "load.log"}
    _check_secrets(tmp_path, ended)
    assert any(b"lakeload:shop" in argv for argv in watcher.seen)
    for argv in watcher.seen:
        assert CANARIES.found_in(argv) == [], "in the argv of a process"
    for key in _keys(lake):
        assert CANARIES.found_in(lake.read(key)) == [], f"in the object {key}"


@pytest.mark.usefixtures("forked_commands")
def test_a_plan_shows_columns_and_rights_without_spark(
    lake: Lake, postgres: Postgres, source: dict[str, Any], tmp_path: Path
) -> None:
    name = source["url"].partition("?")[0].rpartition("/")[2]
    with closing(postgres.connect(name)) as admin:
        admin.execute("CREATE TABLE secret (id int); ANALYZE")
    listed = [{"table": "public.*"}, {"table": "public.missing"}]
    lake.write_pipeline(tmp_path, tables=listed, source=source)

    command = ("plan", "pipeline.yml", "--output", "json", "-vv", "--log-file", "load.log")
    ended = lakeload(lake, tmp_path, *command, SHOP_PASSWORD=CANARIES.values["password"])

    orders, secret, missing = ended.document["tables"]
    assert (orders["action"], orders["estimated_rows"], orders["bytes"]) == ("LOAD", 2, 8192)
    assert orders["schema"]["columns"]["id"] == "int"
    assert (orders["key"], orders["key_from"]) == (["id"], "database")
    assert (orders["index"], orders["numbering"]) == ("dense", "counted in the database")
    assert "SQLSTATE 42501" in secret["schema"]["error"]["message"]
    assert "no table `public.missing`" in missing["error"]["message"]
    _check_secrets(tmp_path, ended)


@pytest.mark.usefixtures("forked_commands")
def test_a_connection_test_names_the_missing_grant(
    lake: Lake, postgres: Postgres, source: dict[str, Any], tmp_path: Path
) -> None:
    name = source["url"].partition("?")[0].rpartition("/")[2]
    with closing(postgres.connect(name)) as admin:
        admin.execute("CREATE SCHEMA inner_schema; CREATE TABLE inner_schema.secret (id int)")
    listed = [{"table": "*.*"}]
    lake.write_pipeline(tmp_path, tables=listed, source=source)

    command = ("test-connection", "pipeline.yml", "--output", "json")
    ended = lakeload(lake, tmp_path, *command, SHOP_PASSWORD=CANARIES.values["password"])

    assert ended.code == 3, ended.stdout + ended.stderr
    found = {probe["name"]: probe for probe in ended.document["probes"]}
    assert found["source-login"]["detail"] == "PostgreSQL 17.6, TLSv1.3"
    statuses = {name: probe["status"] for name, probe in found.items() if "source" in name}
    assert statuses == {
        "source-login": "passed",
        "source-snapshot": "passed",
        "source-table:public.orders": "passed",
        "source-table:inner_schema.secret": "failed",
    }
    user = source["user"]
    assert found["source-table:inner_schema.secret"]["failure"]["hint"] == (
        f'let its owner run `GRANT USAGE ON SCHEMA "inner_schema" TO "{user}"; '
        f'GRANT SELECT ON "inner_schema"."secret" TO "{user}"`'
    )
    _check_secrets(tmp_path, ended)


@pytest.mark.usefixtures("forked_commands")
@pytest.mark.parametrize(
    ("changes", "message", "hint"),
    [
        (
            {"password": {"env": "PATH"}},
            "connecting to PostgreSQL at 127.0.0.1:",
            "check `user` and",
        ),
        ({"password": None}, "connecting to PostgreSQL at 127.0.0.1:", "set `password` in"),
        ({"url": "postgresql://127.0.0.1:1/shop"}, "at 127.0.0.1:1 failed", "check `url`"),
    ],
)
def test_a_login_that_fails_is_reported_without_the_password(
    lake: Lake,
    source: dict[str, Any],
    tmp_path: Path,
    changes: dict[str, Any],
    message: str,
    hint: str,
) -> None:
    given = {name: value for name, value in (source | changes).items() if value is not None}
    lake.write_pipeline(tmp_path, tables=[{"table": "public.orders"}], source=given)

    ended = _sync(lake, tmp_path)

    assert ended.code == 3, ended.stdout + ended.stderr
    assert not (tmp_path / "runs").exists() or not list(tmp_path.glob("runs/*/spark.log"))
    assert message in ended.stdout + ended.stderr
    assert hint in ended.stdout + ended.stderr
    assert not [key for key in _keys(lake) if key.endswith(".parquet")]
    _check_secrets(tmp_path, ended)
