"""Sources of tables of databases: each engine has its own."""

from __future__ import annotations

from collections.abc import Callable

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import JdbcInput, JobSpec, TableSpec
from lakeload_jobs.sources.base import Source
from lakeload_jobs.sources.databases.engines.registry import ENGINES


def connect_databases(spec: JobSpec, aws: AwsSession) -> Callable[[TableSpec, JdbcInput], Source]:
    """Return what makes the source of a table. The tables of one engine share connections."""
    databases = {getattr(table.input, "database", None) for table in spec.tables}
    made = {name: ENGINES[name].connect(spec, aws) for name in ENGINES.keys() & databases}
    return lambda table, given: made[given.database](table, given)
