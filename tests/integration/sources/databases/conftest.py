"""What tests of databases share: both formats, and tables of a database of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import JdbcInput, TableSpec
from tests.integration.formats.conftest import world
from tests.integration.formats.iceberg.conftest import loads
from tests.integration.formats.worlds import World
from tests.integration.jobs.conftest import job
from tests.servers.mariadb import PASSWORD as MARIADB_PASSWORD
from tests.servers.mariadb import USER as MARIADB_USER
from tests.servers.mariadb import MariaDb
from tests.servers.postgres import PASSWORD, USER, Postgres

__all__ = ["job", "loads", "world"]


@dataclass(frozen=True)
class Database:
    """An empty database, and the connection of its administrator."""

    admin: psycopg.Connection[Any]
    input: JdbcInput

    def run(self, statement: str) -> psycopg.Cursor[Any]:
        """Execute SQL."""
        return self.admin.execute(statement.encode())

    def session(self) -> psycopg.Connection[Any]:
        """Return another connection of the administrator."""
        about = self.admin.info
        return psycopg.connect(about.dsn, password=about.password, autocommit=True)

    def table(self, world: World, name: str = "orders", **changes: Any) -> TableSpec:
        """Return the spec of a table of the schema `public`."""
        given = replace(self.input, table=name)
        return replace(world.table("none", **changes), input=given)


@pytest.fixture(scope="module")
def password_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the administrator's password."""
    path = tmp_path_factory.mktemp("secret") / "password"
    path.write_text(PASSWORD, encoding="utf-8")
    return path


def input_of(server: Postgres, database: str, secret: Path) -> JdbcInput:
    """Return the table `public.orders` of a database."""
    password = SecretReference("file", str(secret))
    place = ("POSTGRESQL", "127.0.0.1", server.port, database)
    return JdbcInput(*place, "public", "orders", user=USER, password=password)  # type: ignore[arg-type]


@pytest.fixture
def database(postgres: Postgres, password_file: Path) -> Iterator[Database]:
    """A database of the test's own."""
    name = postgres.new_database()
    with closing(postgres.connect(name)) as admin:
        yield Database(admin, input_of(postgres, name, password_file))


@dataclass(frozen=True)
class MariaDatabase:
    """An empty database, and its server."""

    server: MariaDb
    input: JdbcInput

    def run(self, *statements: str) -> None:
        """Run statements as the administrator, whose time zone is UTC."""
        self.server.run("SET time_zone = '+00:00', sql_mode = ''", *statements,
                        database=self.input.name)  # fmt: skip

    def table(self, world: World, name: str, **changes: Any) -> TableSpec:
        """Return the spec of a table."""
        return replace(world.table("none", **changes), input=replace(self.input, table=name))


@pytest.fixture
def maria(mariadb: MariaDb, tmp_path: Path) -> MariaDatabase:
    """A database of the test's own."""
    name, secret = mariadb.new_database(), tmp_path / "password"
    secret.write_text(MARIADB_PASSWORD, encoding="utf-8")
    reference = SecretReference("file", str(secret))
    place = ("MYSQL", "127.0.0.1", mariadb.port, name, name, "")
    return MariaDatabase(mariadb, JdbcInput(*place, user=MARIADB_USER, password=reference))  # type: ignore[arg-type]
