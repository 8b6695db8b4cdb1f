"""SQL Server: facts, and where the rest is."""

from __future__ import annotations

from lakeload_jobs.sources.databases.engines.base import Facts
from lakeload_jobs.sources.databases.engines.driver.engine import DriverEngine, IntegerCursors
from lakeload_jobs.sources.databases.engines.sqlserver.dialect import SqlServerDialect


class _SqlServer(DriverEngine):
    facts = Facts(
        "SQLSERVER",
        ("SQL Server",),
        schemes=("sqlserver",),
        port=1433,
        example="sqlserver://db.example.com:1433/shop",
        parameters=("sslmode", "connect_timeout"),
        tls_modes=("disable", "require", "verify-full"),
        by_driver=True,
        jar_set="sqlserver",
        lineage="mssql",
        warning="loads from SQL Server are not proven against a server: compare what is loaded",
    )
    cursors = IntegerCursors("set `cursor` to a column of integers")
    dialect = SqlServerDialect()


SQLSERVER = _SqlServer()
