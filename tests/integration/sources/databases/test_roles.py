"""The users that `lakeload policy --for` writes: they read the tables of the pipeline alone."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import psycopg
import pymysql
import pytest

from lakeload.policy.database_roles import database_role
from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.contract.spec import FilesInput, JdbcInput, TableSpec
from lakeload_jobs.sources.databases.engines.mysql import catalog as mysql
from lakeload_jobs.sources.databases.engines.mysql import connection as mysql_connection
from lakeload_jobs.sources.databases.engines.mysql import sql as mysql_sql
from lakeload_jobs.sources.databases.engines.mysql import types as mysql_types
from lakeload_jobs.sources.databases.engines.postgres import catalog as product
from lakeload_jobs.sources.databases.engines.postgres import connection as product_connection
from lakeload_jobs.sources.databases.engines.postgres import sql as product_sql
from lakeload_jobs.sources.databases.engines.postgres import types as product_types
from tests.servers.mariadb import MariaDb
from tests.servers.postgres import Postgres

NAME, ODD = "orders", 'O\'dd `%s` "Na.me"'


def statements(server: str, *reads: JdbcInput, globs: tuple[str, ...] = ()) -> list[str]:
    """Return the statements for tables and for globs, with a password."""
    tables = [TableSpec("t", "", "t", read, "") for read in reads]
    tables += [TableSpec(glob, "", "t", reads[0], "") for glob in globs]
    text = database_role(server, tables, globs).text
    return text.replace("<PASSWORD>", "secret-1").splitlines()


def test_a_role_of_postgresql_reads_what_is_loaded(postgres: Postgres) -> None:
    name = postgres.new_database()
    user = f"Reader {name}"
    place = ("POSTGRESQL", "127.0.0.1", postgres.port, name, ODD)
    read = JdbcInput(*place, NAME, user=user)  # type: ignore[arg-type]
    with closing(postgres.connect(name)) as admin:
        schema = product_sql.quoted(ODD)
        admin.execute(f"CREATE SCHEMA {schema}".encode())
        for table in (NAME, ODD, "hidden"):
            quoted = product_sql.quoted(table)
            admin.execute(f"CREATE TABLE {schema}.{quoted} AS SELECT 1 AS id".encode())
        for statement in statements("postgres", read, replace(read, table=ODD)):
            admin.execute(statement.encode())

        for table in (NAME, ODD):
            _select_postgres(replace(read, table=table))
        with pytest.raises(LoadFailed, match="42501"):
            _select_postgres(replace(read, table="hidden"))
        with (
            closing(postgres.connect(name, user=user, password="secret-1")) as own,
            pytest.raises(psycopg.errors.ReadOnlySqlTransaction),
        ):
            own.execute("CREATE TABLE other (id int)")
        role = product_sql.quoted(user)
        admin.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())

        # A glob covers the tables of a schema, those to come as well.
        glob = f'"{ODD.replace(chr(34), chr(34) * 2)}".*'
        for statement in statements("postgres", read, globs=(glob,)):
            admin.execute(statement.encode())
        admin.execute(f"CREATE TABLE {schema}.later AS SELECT 1 AS id".encode())
        for table in (NAME, "hidden", "later"):
            _select_postgres(replace(read, table=table))
        admin.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())


def _select_postgres(read: JdbcInput) -> None:
    with closing(product_connection.connect(read, Secret("secret-1"))) as connection:
        relation = product.find_relation(connection, read)
        selected = product_types.select(product.columns(connection, relation, read))
        product.check_select(connection, relation, selected, read)


def test_a_user_of_mariadb_reads_what_is_loaded(mariadb: MariaDb) -> None:
    name = mariadb.new_database()
    user = f"Reader's `{name}`"
    place = ("MYSQL", "127.0.0.1", mariadb.port, name, name)
    tls = {"sslmode": "verify-full", "sslrootcert": mariadb.ca}
    read = JdbcInput(*place, NAME, user=user, parameters=tls)  # type: ignore[arg-type]
    for table in (NAME, ODD, "hidden"):
        mariadb.run(f"CREATE TABLE {mysql_sql.quoted(table)} AS SELECT 1 AS id", database=name)
    mariadb.run(*statements("mysql", read, replace(read, table=ODD)))

    for table in (NAME, ODD):
        _select_mysql(replace(read, table=table))
    with pytest.raises(LoadFailed, match="the user sees no table"):
        _select_mysql(replace(read, table="hidden"))
    with pytest.raises(pymysql.OperationalError, match="Access denied"):
        mariadb.connect(name, user=user, password="secret-1", ssl_disabled=True)
    mariadb.run(f"DROP USER {mysql_sql.quoted(user)}@'%'")

    mariadb.run(*statements("mysql", read, globs=(f"{name}.*",)))
    _select_mysql(replace(read, table="hidden"))
    mariadb.run(f"DROP USER {mysql_sql.quoted(user)}@'%'")
    locked = statements("mysql", replace(read, consistency="LOCK"), globs=(f"{name}.*",))
    assert locked[-1] == f"GRANT LOCK TABLES ON `{name}`.* TO {mysql_sql.quoted(user)}@'%';"


def _select_mysql(read: JdbcInput) -> None:
    with closing(mysql_connection.connect(read, Secret("secret-1"))) as connection:
        relation = mysql.find_relation(connection, read)
        selected = mysql_types.select(mysql.columns(connection, relation, read))
        mysql.check_select(connection, relation, selected, read)


def test_a_user_who_logs_in_by_iam_has_no_password() -> None:
    read = JdbcInput("MYSQL", "h", 3306, "s", "s", "t", user="u", iam_authentication=True)
    read = replace(read, parameters={"sslmode": "verify-full"})
    first, *_ = statements("mysql", read)
    assert first == (
        "CREATE USER `u`@'%' IDENTIFIED WITH AWSAuthenticationPlugin AS 'RDS' REQUIRE SSL;"
    )
    first, *_ = statements("postgres", replace(read, database="POSTGRESQL"))
    assert first == 'CREATE ROLE "u" LOGIN IN ROLE rds_iam;'


def test_what_a_role_cannot_cover_is_said() -> None:
    read = JdbcInput("MYSQL", "h", 3306, "url_names_this", "shop", "orders")
    files = TableSpec("t", "", "t", FilesInput("CSV", ("a.csv",), {}), "")

    assert (
        "name the database of a table in `url`"
        in database_role("mysql", [TableSpec("t", "", "t", read, "")]).why
    )
    query = replace(read, database="POSTGRESQL", schema="", table="", query="select 1")
    assert (
        "what the queries of the pipeline read"
        in database_role("postgres", [TableSpec("t", "", "t", query, "")]).why
    )
    with pytest.raises(InvalidInput, match="names no schema"):
        database_role("postgres", [TableSpec("*.*", "", "t", query, "")], ["*.*"])
    with pytest.raises(InvalidInput, match="needs a pipeline whose source is PostgreSQL"):
        database_role("postgres", [files, TableSpec("t", "", "t", read, "")])
