"""Interface of a database that a JDBC driver reads. One module for each implements it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from lakeload_jobs.contract.spec import JdbcInput
from lakeload_jobs.sources.databases.columns import CatalogColumn, Rule

Fetch = Callable[[str], Sequence[Sequence[str | None]]]
"""Runs a SELECT and returns its first row, as text."""


class Dialect(Protocol):
    """The functions and constants of such a module."""

    @property
    def NAME(self) -> str:
        """The name of the database, for messages."""

    @property
    def DRIVER(self) -> str | None:
        """The class of the driver; None: the one that the user's jar names."""

    @property
    def COUNT(self) -> str:
        """The expression that counts rows."""

    def url_of(self, read: JdbcInput, /) -> str:
        """Return the URL of the driver."""

    def properties_of(self, read: JdbcInput, /) -> dict[str, str]:
        """Return the properties of a connection, without the login."""

    def session_of(self, read: JdbcInput, fetch: Fetch, /) -> tuple[str, tuple[str, ...]]:
        """Return the statements that set up a session that reads one moment, '' for none, and
        warnings."""

    def rule_of(self, column: CatalogColumn, /) -> tuple[Rule, str]:
        """Return what becomes of a column, and the type of its target."""


def host_of(read: JdbcInput) -> str:
    """Return the host as a URL has it."""
    return f"[{read.host}]" if ":" in read.host else read.host
