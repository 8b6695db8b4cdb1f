"""Sources of tables of databases: each engine has its own."""

from __future__ import annotations

from collections.abc import Callable

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import BY_DRIVER, DatabaseType, JdbcInput, JobSpec, TableSpec
from lakeload_jobs.sources.base import Source
from lakeload_jobs.sources.databases.base import DatabaseSource
from lakeload_jobs.sources.databases.engines.driver.source import JdbcUrlSource
from lakeload_jobs.sources.databases.engines.mysql.source import MysqlSource
from lakeload_jobs.sources.databases.engines.postgres.source import JdbcSource


def connect_databases(spec: JobSpec, aws: AwsSession) -> Callable[[TableSpec, JdbcInput], Source]:
    """Return what makes the source of a table. Tables of one engine share the connections."""
    made: dict[type[DatabaseSource], Callable[[TableSpec, JdbcInput], Source]] = {}

    def connect(table: TableSpec, given: JdbcInput) -> Source:
        kind = _source_class(given.database)
        return made.setdefault(kind, kind.of_run(spec, aws))(table, given)

    return connect


def _source_class(database: DatabaseType) -> type[DatabaseSource]:
    if database in BY_DRIVER:
        return JdbcUrlSource
    return JdbcSource if database == "POSTGRESQL" else MysqlSource
