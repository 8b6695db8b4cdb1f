"""Databases that Spark reads with a JDBC driver: a user's own, and the base of those that have a
module of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from lakeload_jobs.contract.spec import JdbcInput, JobSpec, TableSpec
from lakeload_jobs.sources.databases.bookmark import Kind
from lakeload_jobs.sources.databases.cursor_sql import CursorSql
from lakeload_jobs.sources.databases.engines.base import Engine, Facts
from lakeload_jobs.sources.databases.engines.driver.dialect import DriverDialect

if TYPE_CHECKING:
    from lakeload_jobs.aws import AwsSession
    from lakeload_jobs.sources.base import Source


class IntegerCursors(CursorSql):
    """Cursors of integers: literals and text of other kinds are not proven."""

    types: ClassVar[dict[str, tuple[Kind, str]]] = dict.fromkeys(
        ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "NUMERIC", "DECIMAL"), ("INTEGER", "")
    )

    def __init__(self, hint: str) -> None:
        self.hint = hint


class _DriverCursors(CursorSql):
    types: ClassVar[dict[str, tuple[Kind, str]]] = {
        **IntegerCursors.types,
        "DATE": ("DATE", "d"),
        "TIMESTAMP": ("TIMESTAMP", "ts"),
    }
    hint = "set `cursor` to a column of integers, dates or timestamps without time zone"


class DriverEngine(Engine):
    """An engine that Spark reads with a JDBC driver."""

    dialect: DriverDialect

    def connect(self, spec: JobSpec, aws: AwsSession) -> Callable[[TableSpec, JdbcInput], Source]:
        """Return what makes the source of a table."""
        # With Spark, which the command line does without.
        from lakeload_jobs.sources.databases.engines.driver.source import connect_tables

        return connect_tables(self, self.dialect, spec, aws)

    def check_driver(self, read: JdbcInput) -> None:
        """Raise `InvalidInput` where the jars do not have the driver."""
        # With py4j, which other databases do without.
        from lakeload_jobs.sources.databases.engines.driver.catalog import driver_class

        driver_class(self.dialect, read)


class _Driver(DriverEngine):
    facts = Facts(
        "OTHER",
        ("a database with a driver of your own",),
        by_driver=True,
        users_driver=True,
        needs_login=False,
        has_lock_timeout=False,
        warning="the JDBC driver is yours, and lakeload proves nothing of it: types are as Spark's "
        "JDBC source maps them, which is not always exact",
    )
    cursors = _DriverCursors()
    dialect = DriverDialect()


DRIVER = _Driver()
