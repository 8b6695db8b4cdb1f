"""PostgreSQL: facts, and where the rest is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import JdbcInput, JobSpec, RunOptions, TableSpec
from lakeload_jobs.contract.state import Bookmark
from lakeload_jobs.sources.databases.columns import Fetch
from lakeload_jobs.sources.databases.engines.base import (
    Catalog,
    ConsistencyFacts,
    DirectReader,
    Engine,
    Facts,
    Grants,
    Unsupported,
)
from lakeload_jobs.sources.databases.engines.postgres.failures import failure
from lakeload_jobs.sources.databases.engines.postgres.sql import PostgresCursors, quoted

if TYPE_CHECKING:
    from lakeload_jobs.aws import AwsSession
    from lakeload_jobs.sources.base import Source
    from lakeload_jobs.sources.databases.cursors import RowsWindow

_ONE_SNAPSHOT = (
    "`consistency: {mode}` is for MySQL and MariaDB: all tasks that read a table of PostgreSQL "
    "have one snapshot"
)
_PASSWORD = "<PASSWORD>"  # noqa: S105 - a placeholder


class _Postgres(Engine):
    facts = Facts(
        "POSTGRESQL",
        ("PostgreSQL",),
        schemes=("postgresql", "postgres"),
        port=5432,
        example="postgresql://db.example.com:5432/shop",
        parameters=("sslmode", "sslrootcert", "application_name", "connect_timeout", "options"),
        needs_login=False,
        direct=DirectReader("adbc_driver_postgresql", "adbc-driver-postgresql", "postgres"),
        jar_set="postgresql",
        consistencies={
            "SYNC": ConsistencyFacts(
                3,
                "one of them holds the snapshot of all tables",
                "`consistency: SYNC`: until the last table is loaded, the database keeps all rows "
                "that are deleted or changed meanwhile, because VACUUM cannot remove them",
            )
        },
        no_consistency={
            "LOCK": Unsupported(_ONE_SNAPSHOT.format(mode="LOCK")),
            "NONE": Unsupported(_ONE_SNAPSHOT.format(mode="NONE")),
        },
        has_xmin=True,
        counts_rows=True,
        lineage="postgres",
        grants="postgres",
        java_error="org.postgresql.util.PSQLException",
    )
    cursors = PostgresCursors()

    def catalog(self) -> Catalog:
        # With the driver, which documents alone do without.
        from lakeload_jobs.sources.databases.engines.postgres import catalog

        return catalog

    def xmin_window(
        self,
        connection: Any,
        relation: Any,
        table: TableSpec,
        options: RunOptions,
        bookmark: Bookmark,
        fetch: Fetch,
    ) -> RowsWindow:
        # With the driver, which documents alone do without.
        from lakeload_jobs.sources.databases.engines.postgres.catalog import xmin_window

        return xmin_window(connection, relation, table, options, bookmark, fetch)

    def connect(self, spec: JobSpec, aws: AwsSession) -> Callable[[TableSpec, JdbcInput], Source]:
        # With the drivers, which a load of files does without.
        from lakeload_jobs.sources.databases.engines.postgres.source import connect_tables

        return connect_tables(self, spec, aws)

    def failure(self, doing: str, state: str | None, text: str) -> LoadFailed:
        return failure(doing, state, text.removeprefix("ERROR: "))

    def grants(
        self, read: JdbcInput, user: str, named: Sequence[JdbcInput], whole: Sequence[str]
    ) -> Grants:
        role, schemas = quoted(user), sorted({*whole, *(table.schema for table in named)})
        login = f"LOGIN PASSWORD '{_PASSWORD}'"
        if read.iam_authentication:
            login = "LOGIN IN ROLE rds_iam"
        tables = [f"{quoted(table.schema)}.{quoted(table.table)}" for table in named]
        later = (
            "`ALTER DEFAULT PRIVILEGES` is about tables that the role creates who runs it: run it "
            "as the role that creates them, too."
        )
        return Grants(
            (
                f"CREATE ROLE {role} {login};",
                f"ALTER ROLE {role} SET default_transaction_read_only = on;",
                f"GRANT CONNECT ON DATABASE {quoted(read.name)} TO {role};",
                *(f"GRANT USAGE ON SCHEMA {quoted(schema)} TO {role};" for schema in schemas),
                *(f"GRANT SELECT ON {table} TO {role};" for table in tables),
                *(
                    f"GRANT SELECT ON ALL TABLES IN SCHEMA {quoted(schema)} TO {role};"
                    for schema in whole
                ),
                *(
                    f"ALTER DEFAULT PRIVILEGES IN SCHEMA {quoted(schema)} GRANT SELECT ON TABLES "
                    f"TO {role};"
                    for schema in whole
                ),
            ),
            (later,) if whole else (),
        )


POSTGRES = _Postgres()
