"""The user of a database who reads the tables of a pipeline, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from lakeload.policy.templates import Snippet
from lakeload.sources.databases.table_names import name_parts
from lakeload.sources.registry import facts_of
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.spec import DatabaseType, JdbcInput, TableSpec
from lakeload_jobs.sources.databases.engines.mysql import catalog as mysql
from lakeload_jobs.sources.databases.engines.postgres import catalog as postgres

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
    statements: Callable[[JdbcInput, str, Sequence[JdbcInput], Sequence[str]], list[str]]


def database_role(
    server: Server, tables: Sequence[TableSpec], globs: Collection[str] = ()
) -> Snippet:
    """Return the statements that make the user and grant what a load of the tables reads. Those in
    `globs` stand for tables of a schema: the user may read all that it has now and later.

    Raises `InvalidInput` for tables that are not read from such a database, and for a glob of
    schemas.
    """
    dialect = _DIALECTS[server]
    found = [(table, facts_of(table.input).database) for table in tables]
    inputs = [read for _, read in found if read and read.database == dialect.database]
    if not inputs:
        raise InvalidInput(
            f"`--for {server}` needs a pipeline whose source is {dialect.title}",
            hint="give the pipeline's file; a destination has no tables",
        )
    first = inputs[0]
    schemas = _schemas(globs)
    named = [
        read
        for table, read in found
        if read in inputs
        and read.query is None
        and table.source not in globs
        and read.schema not in schemas
    ]
    user = first.user or _USER
    own = "" if first.iam_authentication else ", with a password of your own"
    why = [f"Run it as an administrator of `{first.name}`{own}."]
    if any(read.query is not None for read in inputs):
        why.append("Grant SELECT, too, on what the queries of the pipeline read.")
    if dialect.database == "MYSQL" and first.name not in {
        *schemas,
        *(read.schema for read in named),
    }:
        why.append(
            f"The user cannot connect to `{first.name}`, which `url` names, without a right there: "
            "name the database of a table in `url`."
        )
    if schemas and dialect.database == "POSTGRESQL":
        why.append(
            "`ALTER DEFAULT PRIVILEGES` is about tables that the role creates who runs it: run it "
            "as the role that creates them, too."
        )
    text = "\n".join(dialect.statements(first, user, named, schemas))
    return Snippet(f"{dialect.title}: the user who reads", text, "\n".join(why))


def _schemas(globs: Collection[str]) -> list[str]:
    """Return the schemas of globs. Raises `InvalidInput` for a glob that stands for schemas."""
    for glob in sorted(globs):
        if name_parts(glob)[0].glob:
            raise InvalidInput(
                f"`{glob}` names no schema, and rights are granted in schemas",
                hint="write an entry for each schema, such as `public.*`",
            )
    return sorted({name_parts(glob)[0].text for glob in globs})


def _postgres(
    first: JdbcInput, user: str, named: Sequence[JdbcInput], whole: Sequence[str]
) -> list[str]:
    quoted = postgres.quoted
    role, schemas = quoted(user), sorted({*whole, *(read.schema for read in named)})
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
        *(f"GRANT SELECT ON ALL TABLES IN SCHEMA {quoted(schema)} TO {role};" for schema in whole),
        *(
            f"ALTER DEFAULT PRIVILEGES IN SCHEMA {quoted(schema)} GRANT SELECT ON TABLES TO {role};"
            for schema in whole
        ),
    ]


def _mysql(
    first: JdbcInput, user: str, named: Sequence[JdbcInput], whole: Sequence[str]
) -> list[str]:
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
        *(f"GRANT SELECT ON {quoted(schema)}.* TO {account};" for schema in whole),
        *(
            f"GRANT LOCK TABLES ON {quoted(schema)}.* TO {account};"
            for schema in sorted({*whole, *(read.schema for read in named)})
            if first.consistency == "LOCK"
        ),
    ]


_DIALECTS: dict[Server, _Dialect] = {
    "postgres": _Dialect("POSTGRESQL", "PostgreSQL", _postgres),
    "mysql": _Dialect("MYSQL", "MySQL or MariaDB", _mysql),
}
