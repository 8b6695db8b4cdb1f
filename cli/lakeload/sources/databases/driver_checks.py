"""Checks of databases that only a JDBC driver reads, which runs in Java without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial

from lakeload.sources.base import SourceCheck
from lakeload_jobs.contract.spec import JdbcInput, TableSpec
from lakeload_jobs.rows.columns import in_source_spelling
from lakeload_jobs.sources.databases.columns import is_read
from lakeload_jobs.sources.databases.engines.driver import catalog as driver
from lakeload_jobs.sources.databases.engines.driver.engine import DriverEngine
from lakeload_jobs.sources.databases.engines.registry import ENGINES
from lakeload_jobs.sources.databases.identity import password_of
from lakeload_jobs.sources.readers import SourceReaders


def driver_checks(
    tables: Sequence[tuple[TableSpec, JdbcInput]], readers: SourceReaders
) -> tuple[SourceCheck, ...]:
    """Return the checks of the driver, and where there is Java of the login and each table."""
    first, drivers = tables[0][1], readers.drivers
    engine = ENGINES[first.database]
    assert isinstance(engine, DriverEngine)  # noqa: S101
    dialect = engine.dialect
    has_driver = partial(driver.driver_class, dialect, first)
    found = SourceCheck("source-driver", "the jars have the JDBC driver", has_driver)
    if drivers is None:
        return (found,)

    def connect(read: JdbcInput) -> driver.Connection:
        return driver.connect(dialect, read, password_of(readers.session, read), drivers)

    def log_in() -> str:
        with closing(connect(first)) as one:
            return one.product

    def select(table: TableSpec, read: JdbcInput) -> str:
        with closing(connect(read)) as one:
            relation = driver.find_relation(one, read)
            columns = driver.columns(one, relation)
        own = in_source_spelling(table.columns, [column.name for column in columns])
        selected = driver.select(dialect, read, relation, columns)
        return f"{sum(is_read(table, own, column) for column in selected)} columns"

    login = SourceCheck("source-login", "the database accepts the user", log_in, ("source-driver",))
    return (
        found,
        login,
        *(
            SourceCheck(
                f"source-table:{table.source}",
                "the table and its columns are found",
                partial(select, table, read),
                (login.name,),
            )
            for table, read in tables
        ),
    )
