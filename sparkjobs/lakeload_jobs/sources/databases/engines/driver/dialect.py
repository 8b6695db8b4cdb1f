"""A database beside its JDBC driver: what its SQL needs. The base knows the driver alone."""

from __future__ import annotations

from lakeload_jobs.contract.spec import JdbcInput
from lakeload_jobs.sources.databases.columns import CatalogColumn, Fetch, Rule

_MAX_DIGITS = 38
_MAX_FRACTION = 6


class DriverDialect:
    """A database that only its driver knows. Engines with a module of their own override it."""

    driver: str | None = None
    """The class of the driver; None: the one that the user's jar names."""
    count = "COUNT(*)"
    """The expression that counts rows."""
    writes_dates = False
    """Whether values of dates and times are text that the SELECT writes: those that the driver
    makes may have been moved."""

    def url_of(self, read: JdbcInput) -> str:
        """Return the URL of the driver."""
        return read.url or ""

    def properties_of(self, read: JdbcInput) -> dict[str, str]:
        """Return the properties of a connection, without the login."""
        return {}

    def session_of(self, read: JdbcInput, fetch: Fetch) -> tuple[str, tuple[str, ...]]:
        """Return the statements that set up a session that reads one moment, '' for none, and
        warnings."""
        return "", ()

    def rule_of(self, column: CatalogColumn, read: JdbcInput) -> tuple[Rule, str]:
        """Return what becomes of a column, and the type that Spark is told, '' where it chooses."""
        return Rule(column.type, ""), _target(column, read)


def _target(column: CatalogColumn, read: JdbcInput) -> str:
    """Return the type where Spark's own would change values."""
    if column.type == "INTEGER" and (read.url or "").startswith("jdbc:sqlite:"):
        return "bigint"  # all its integers have 64 bits
    if column.type in ("NUMERIC", "DECIMAL"):
        digits, scale = column.precision or 0, column.scale
        # Without a precision the scale means nothing.
        fits = digits and scale is not None and 0 <= scale <= digits <= _MAX_DIGITS
        return "" if fits else "string"
    if column.type == "TIMESTAMP":
        return "string" if (column.scale or 0) > _MAX_FRACTION else ""
    return "string" if column.type in ("TIME", "TIME_WITH_TIMEZONE") else ""
