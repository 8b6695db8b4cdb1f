"""Choice of the reader of a database."""

from __future__ import annotations

import importlib.util

from lakeload_jobs.contract.errors import InvalidInput, MachineNotReady
from lakeload_jobs.contract.spec import BY_DRIVER, DatabaseType, JdbcInput, ReaderChoice

_ADBC = "adbc-driver-postgresql"
DRIVER_WARNINGS: dict[DatabaseType, str] = {
    "OTHER": "the JDBC driver is yours, and lakeload proves nothing of it: types are as Spark's "
    "JDBC source maps them, which is not always exact",
    "SQLSERVER": "loads from SQL Server are not proven against a server: compare what is loaded",
    "ORACLE": "loads from Oracle are not proven against a server: compare what is loaded",
}
"""Of every load of a database that is read with a JDBC driver."""


def only_spark(read: JdbcInput, choice: ReaderChoice) -> str:
    """Return why Spark's JDBC reader reads a table, as a clause; '' where it does not."""
    if read.database in BY_DRIVER:
        return "its JDBC driver is used by Spark alone"
    if read.database == "MYSQL":
        return ""
    if choice == "JVM":
        return "`spark.reader` is `JVM`"
    if choice == "AUTO" and not _is_installed():
        return f"the package `{_ADBC}` is not installed"
    return ""


def check_reader(read: JdbcInput, choice: ReaderChoice) -> None:
    """Raise `InvalidInput` for a reader that does not read the database, and `MachineNotReady`
    where it is not installed."""
    if read.database in BY_DRIVER and choice == "DIRECT":
        raise InvalidInput(
            f"`spark: {{reader: DIRECT}}`: {only_spark(read, choice)}",
            hint="leave `spark.reader` out",
        )
    if read.database == "MYSQL" and choice == "JVM":
        raise InvalidInput(
            "MySQL and MariaDB cannot be read with `spark: {reader: JVM}`",
            hint="leave `spark.reader` out",
        )
    if read.database == "POSTGRESQL" and choice == "DIRECT" and not _is_installed():
        raise MachineNotReady(
            f"`spark: {{reader: DIRECT}}` reads PostgreSQL with the package `{_ADBC}`",
            hint="install it with `pip install 'lakeload[postgres]'`",
        )


def _is_installed() -> bool:
    return importlib.util.find_spec("adbc_driver_postgresql") is not None
