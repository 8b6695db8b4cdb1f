"""MySQL and MariaDB: facts, and where the rest is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lakeload_jobs.contract.spec import JdbcInput, JobSpec, TableSpec
from lakeload_jobs.sources.databases.engines.base import (
    Catalog,
    ConsistencyFacts,
    Engine,
    Facts,
    Grants,
    Unsupported,
)
from lakeload_jobs.sources.databases.engines.mysql.sql import MysqlCursors, quoted

if TYPE_CHECKING:
    from lakeload_jobs.aws import AwsSession
    from lakeload_jobs.sources.base import Source

_PASSWORD = "<PASSWORD>"  # noqa: S105 - a placeholder
_WITH_TLS = ("require", "verify-ca", "verify-full")


class _Mysql(Engine):
    facts = Facts(
        "MYSQL",
        ("MySQL", "MariaDB"),
        schemes=("mysql", "mariadb"),
        port=3306,
        example="mysql://db.example.com:3306/shop",
        consistencies={
            "LOCK": ConsistencyFacts(
                3,
                "two that read, and one that holds the lock",
                "`consistency: LOCK`: other sessions that write to a large table wait for some "
                "seconds when its load begins",
            ),
            "NONE": ConsistencyFacts(
                2,
                "each reads a range",
                "`consistency: NONE`: the ranges of a large table are read at different moments; "
                "what is changed meanwhile may be loaded in part, and a row whose key changes "
                "twice or not at all",
            ),
        },
        no_consistency={
            "SYNC": Unsupported(
                "`consistency: SYNC`: sessions of MySQL and MariaDB have no common snapshot",
                "remove it: each table is read in a transaction of its own",
            )
        },
        lineage="mysql",
        schema_is_database=True,
        grants="mysql",
    )
    cursors = MysqlCursors()

    def catalog(self) -> Catalog:
        # With the driver, which documents alone do without.
        from lakeload_jobs.sources.databases.engines.mysql import catalog

        return catalog

    def connect(self, spec: JobSpec, aws: AwsSession) -> Callable[[TableSpec, JdbcInput], Source]:
        # With the driver, which a load of files does without.
        from lakeload_jobs.sources.databases.engines.mysql.source import connect_tables

        return connect_tables(self, spec, aws)

    def grants(
        self, read: JdbcInput, user: str, named: Sequence[JdbcInput], whole: Sequence[str]
    ) -> Grants:
        account = f"{quoted(user)}@'%'"
        schemas = sorted({*whole, *(table.schema for table in named)})
        tls = (read.parameters or {}).get("sslmode") in _WITH_TLS
        login = f"BY '{_PASSWORD}'"
        if read.iam_authentication:
            login = "WITH AWSAuthenticationPlugin AS 'RDS'"
        tables = [f"{quoted(table.schema)}.{quoted(table.table)}" for table in named]
        nowhere = (
            f"The user cannot connect to `{read.name}`, which `url` names, without a right there: "
            "name the database of a table in `url`."
        )
        return Grants(
            (
                f"CREATE USER {account} IDENTIFIED {login}{' REQUIRE SSL' if tls else ''};",
                *(f"GRANT SELECT ON {table} TO {account};" for table in tables),
                *(f"GRANT SELECT ON {quoted(schema)}.* TO {account};" for schema in whole),
                *(
                    f"GRANT LOCK TABLES ON {quoted(schema)}.* TO {account};"
                    for schema in schemas
                    if read.consistency == "LOCK"
                ),
            ),
            () if read.name in schemas else (nowhere,),
        )


MYSQL = _Mysql()
