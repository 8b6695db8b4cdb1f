"""The user of a database who reads the tables of a pipeline, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from lakeload.policy.templates import Snippet
from lakeload.sources.registry import source_of
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import DatabaseType, JdbcInput, TableSpec
from lakeload_jobs.sources.databases import mysql, postgres

Server = Literal["postgres", "mysql"]

_PASSWORD = "<PASSWORD>"  # noqa: S105 - a placeholder
_USER = "lakeload"
"""The user where the pipeline names none."""
_VERIFIED = ("require", "verify-ca", "verify-full")


@dataclass(frozen=True)
class _Dialect:
    """How one database writes users and grants."""

    database: DatabaseType
    title: str
    statements: Callable[[JdbcInput, str, Sequence[JdbcInput]], list[str]]


def database_role(server: Server, tables: Sequence[TableSpec]) -> Snippet:
    """Return the statements that make the user and grant what a load of the tables reads.

    Raises `InvalidInput` for tables that are not read from such a database.
    """
    dialect = _DIALECTS[server]
    found = (source_of(table.input).database(table.input) for table in tables)
    inputs = [read for read in found if read and read.database == dialect.database]
    if not inputs:
        raise InvalidInput(
            f"`--for {server}` needs a pipeline whose source is {dialect.title}",
            hint="give the pipeline's file; a destination has no tables",
        )
    first = inputs[0]
    named = [read for read in inputs if read.query is None]
    user = first.user or _USER
    own = "" if first.iam_authentication else ", with a password of your own"
    why = [f"Run it as an administrator of `{first.name}`{own}."]
    if len(named) < len(inputs):
        why.append("Grant SELECT, too, on what the queries of the pipeline read.")
    if dialect.database == "MYSQL" and first.name not in {read.schema for read in named}:
        why.append(
            f"The user cannot connect to `{first.name}`, which `url` names, without a right there: "
            "name the database of a table in `url`."
        )
    text = "\n".join(dialect.statements(first, user, named))
    return Snippet(f"{dialect.title}: the user who reads", text, "\n".join(why))


def _postgres(first: JdbcInput, user: str, named: Sequence[JdbcInput]) -> list[str]:
    quoted = postgres.quoted
    role, schemas = quoted(user), sorted({read.schema for read in named})
    login = f"LOGIN PASSWORD '{_PASSWORD}'"
    if first.iam_authentication:
        login = "LOGIN IN ROLE rds_iam"
    return [
        f"CREATE ROLE {role} {login};",
        f"ALTER ROLE {role} SET default_transaction_read_only = on;",
        f"GRANT CONNECT ON DATABASE {quoted(first.name)} TO {role};",
        *(f"GRANT USAGE ON SCHEMA {quoted(schema)} TO {role};" for schema in schemas),
        *(
            f"GRANT SELECT ON {quoted(read.schema)}.{quoted(read.table)} TO {role};"
            for read in named
        ),
    ]


def _mysql(first: JdbcInput, user: str, named: Sequence[JdbcInput]) -> list[str]:
    quoted = mysql.quoted
    account = f"{quoted(user)}@'%'"
    tls = (first.parameters or {}).get("sslmode") in _VERIFIED
    login = f"BY '{_PASSWORD}'"
    if first.iam_authentication:
        login = "WITH AWSAuthenticationPlugin AS 'RDS'"
    return [
        f"CREATE USER {account} IDENTIFIED {login}{' REQUIRE SSL' if tls else ''};",
        *(
            f"GRANT SELECT ON {quoted(read.schema)}.{quoted(read.table)} TO {account};"
            for read in named
        ),
    ]


_DIALECTS: dict[Server, _Dialect] = {
    "postgres": _Dialect("POSTGRESQL", "PostgreSQL", _postgres),
    "mysql": _Dialect("MYSQL", "MySQL or MariaDB", _mysql),
}
