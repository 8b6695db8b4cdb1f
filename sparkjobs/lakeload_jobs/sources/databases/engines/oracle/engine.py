"""Oracle: facts, and where the rest is."""

from __future__ import annotations

from lakeload_jobs.sources.databases.engines.base import Facts
from lakeload_jobs.sources.databases.engines.driver.engine import DriverEngine, IntegerCursors
from lakeload_jobs.sources.databases.engines.oracle.dialect import OracleDialect


class _Oracle(DriverEngine):
    facts = Facts(
        "ORACLE",
        ("Oracle",),
        schemes=("oracle",),
        port=1521,
        example="oracle://db.example.com:1521/SERVICE",
        parameters=("sslmode", "connect_timeout"),
        tls_modes=("disable", "verify-full"),
        password_in_url=r"^jdbc:oracle:\w+:[^@/]*/[^@]+@",  # noqa: S106 - a pattern
        by_driver=True,
        users_driver=True,
        has_lock_timeout=False,
        lineage="oracle",
        warning="loads from Oracle are not proven against a server: compare what is loaded",
    )
    cursors = IntegerCursors("set `cursor` to a column of integers, such as `NUMBER(18)`")
    dialect = OracleDialect()


ORACLE = _Oracle()
