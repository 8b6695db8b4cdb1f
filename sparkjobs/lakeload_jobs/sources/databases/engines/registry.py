"""The engines of databases: one line for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lakeload_jobs.contract.spec import DatabaseType, JdbcInput, JobSpec, TableSpec
from lakeload_jobs.sources.databases.engines.base import Engine
from lakeload_jobs.sources.databases.engines.driver.engine import DRIVER
from lakeload_jobs.sources.databases.engines.mysql.engine import MYSQL
from lakeload_jobs.sources.databases.engines.oracle.engine import ORACLE
from lakeload_jobs.sources.databases.engines.postgres.engine import POSTGRES
from lakeload_jobs.sources.databases.engines.sqlserver.engine import SQLSERVER

if TYPE_CHECKING:
    from lakeload_jobs.aws import AwsSession
    from lakeload_jobs.sources.base import Source

ENGINES: dict[DatabaseType, Engine] = {
    engine.facts.database: engine for engine in (POSTGRES, MYSQL, SQLSERVER, ORACLE, DRIVER)
}
BY_SCHEME: dict[str, Engine] = {
    scheme: engine for engine in ENGINES.values() for scheme in engine.facts.schemes
}
"""The engines by the schemes of their URLs."""
BY_URL = DRIVER
"""The engine of any other URL of JDBC."""


def connect_databases(spec: JobSpec, aws: AwsSession) -> Callable[[TableSpec, JdbcInput], Source]:
    """Return what makes the source of a table. The tables of one engine share connections."""
    databases = {one.input.database for one in spec.tables if isinstance(one.input, JdbcInput)}
    made = {name: ENGINES[name].connect(spec, aws) for name in databases}
    return lambda table, given: made[given.database](table, given)
