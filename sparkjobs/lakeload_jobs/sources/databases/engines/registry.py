"""The engines of databases: one line for each."""

from __future__ import annotations

from lakeload_jobs.contract.spec import DatabaseType
from lakeload_jobs.sources.databases.engines.base import Engine
from lakeload_jobs.sources.databases.engines.driver.engine import DRIVER
from lakeload_jobs.sources.databases.engines.mysql.engine import MYSQL
from lakeload_jobs.sources.databases.engines.oracle.engine import ORACLE
from lakeload_jobs.sources.databases.engines.postgres.engine import POSTGRES
from lakeload_jobs.sources.databases.engines.sqlserver.engine import SQLSERVER

ENGINES: dict[DatabaseType, Engine] = {
    engine.facts.database: engine for engine in (POSTGRES, MYSQL, SQLSERVER, ORACLE, DRIVER)
}
BY_SCHEME: dict[str, Engine] = {
    scheme: engine for engine in ENGINES.values() for scheme in engine.facts.schemes
}
"""The engines by the schemes of their URLs."""
BY_URL = next(engine for engine in ENGINES.values() if not engine.facts.schemes)
"""The engine of any other URL of JDBC."""
