"""Connections to PostgreSQL. psycopg is the driver of everything but the rows themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from lakeload_jobs.contract.errors import LakeloadError, Refused
from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.contract.spec import JdbcInput
from lakeload_jobs.sources.databases.engines.postgres.failures import POOL_HINT, failure, safe_text
from lakeload_jobs.sources.databases.engines.postgres.sql import literal, quoted

_DEFAULTS = {
    "application_name": "lakeload",
    "connect_timeout": "15",
    "keepalives_idle": "60",
    "client_encoding": "UTF8",
}
SETTINGS = {
    "TimeZone": "UTC",
    "timezone_abbreviations": "Default",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "iso_8601",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "xmloption": "content",
    "xmlbinary": "base64",
    "quote_all_identifiers": "off",
    "standard_conforming_strings": "on",
    # `x = NULL` would be true.
    "transform_null_equals": "off",
    "array_nulls": "on",
    # It drops rows that a GIN index finds.
    "gin_fuzzy_search_limit": "0",
    # An error that is expected ends the session with it.
    "exit_on_error": "off",
    # The load itself keeps transactions open and idle.
    "idle_in_transaction_session_timeout": "0",
    "transaction_timeout": "0",
    "idle_session_timeout": "0",
}
"""Of each session, where the server's version has them (docs/postgres.md): values are written in
one way."""
_SEARCH_PATH = (
    "pg_catalog.rtrim(pg_catalog.concat("
    "'pg_catalog, ', pg_catalog.current_setting('search_path')), ', ')"
)
"""With the user's own functions, operators and types behind those of PostgreSQL."""
REFUSED = {
    "ignore_checksum_failure": "rows of damaged pages would be loaded",
    "zero_damaged_pages": "rows of damaged pages would be left out silently",
    "quote_all_identifiers": "the driver does not know the types of columns then",
}
"""Settings that must be off, and why. A session cannot change them, or not in time."""


def conninfo(read: JdbcInput, password: Secret | None) -> str:
    """Return what libpq connects with. Contains the password."""
    settings = _DEFAULTS | (read.parameters or {})
    secret = {} if password is None else {"password": password.reveal()}
    user = {} if read.user is None else {"user": read.user}
    return make_conninfo(
        host=read.host, port=read.port, dbname=read.name, **user, **secret, **settings
    )


def connect(read: JdbcInput, password: Secret | None) -> psycopg.Connection[Any]:
    """Connect in autocommit, with the settings of every session.

    Raises `Refused` where the server cannot be reached or rejects the login.
    """
    try:
        connection = psycopg.connect(conninfo(read, password), autocommit=True)
    except psycopg.Error as error:
        raise _not_connected(read, error, password) from None
    try:
        with failures(read, "preparing the connection"):
            connection.execute(session_settings(read).encode())
            _check_session(connection, read)
    except BaseException:
        connection.close()
        raise
    return connection


def session_settings(read: JdbcInput) -> str:
    """Return the statement that sets up a session."""
    settings = SETTINGS | {"lock_timeout": f"{read.lock_timeout}s"}
    if read.statement_timeout:
        settings["statement_timeout"] = f"{read.statement_timeout}s"
    values = ", ".join(f"({literal(n)}, {literal(v)})" for n, v in settings.items())
    return (
        "SELECT pg_catalog.set_config(s.name, v.value, false)"  # noqa: S608 - all constants
        f" FROM (VALUES {values}, ('search_path', {_SEARCH_PATH})) v(name, value)"
        # Not what a user's own `search_path` has for `=`.
        " JOIN pg_catalog.pg_settings s ON s.name OPERATOR(pg_catalog.=) v.name"
    )


def _check_session(connection: psycopg.Connection[Any], read: JdbcInput) -> None:
    """Raise `Refused` for a setting that no load can do with."""
    rows = connection.execute(
        "SELECT name, pg_catalog.quote_ident(current_user) FROM pg_catalog.pg_settings"
        " WHERE name = ANY(%s) AND reset_val = 'on'",
        (list(REFUSED),),
    )
    for name, user in rows:
        raise Refused(
            f"`{name}` is on for the user {user}: {REFUSED[name]}",
            hint=f"let a superuser run `ALTER ROLE {user} IN DATABASE {quoted(read.name)} "
            f"SET {name} = off`",
        )


def _not_connected(read: JdbcInput, error: psycopg.Error, password: Secret | None) -> Refused:
    place = f"{read.host}:{read.port}"
    text = safe_text(str(error), password)
    login = getattr(error, "pgconn", None)
    if login is not None and login.needs_password:
        hint = "set `password` in `source`, or add a line for this server to `~/.pgpass`"
    elif login is not None and login.used_password:
        hint = (
            "check `user` and `password` in `source`, that the database exists, and that "
            "connections are free"
        )
    else:
        hint = "check `url` in `source`, the network, and `pg_hba.conf` and TLS of the server"
    return Refused(f"connecting to PostgreSQL at {place} failed: {text}", hint=hint, retryable=True)


@contextmanager
def failures(read: JdbcInput, doing: str) -> Iterator[None]:
    """Raise errors of a driver as `LoadFailed`, by their SQLSTATE."""
    try:
        yield
    except LakeloadError:
        raise
    except psycopg.Error as error:
        if error.sqlstate is None and not isinstance(error, psycopg.OperationalError):
            raise
        raise failure(doing, error.sqlstate, str(error)) from None


def check_pool(read: JdbcInput, password: Secret | None) -> None:
    """Raise `Refused` where a pool between here and the server gives a session to another client
    after each transaction: what one transaction sets or prepares is gone in the next."""
    sessions: tuple[set[str], set[str]] = (set(), set())
    with (
        failures(read, "comparing two sessions"),
        closing(connect(read, password)) as first,
        closing(connect(read, password)) as second,
    ):
        for _ in range(2):
            for pids, connection in zip(sessions, (first, second), strict=True):
                row = connection.execute("SELECT pg_catalog.pg_backend_pid()").fetchone()
                pids.add(str(row))
    # Such a pool gives the next statement of any client to whichever server connection is free.
    if len(sessions[0] | sessions[1]) != len(sessions) or sessions[0] & sessions[1]:
        raise Refused(
            f"the pool at {read.host}:{read.port} keeps no session: transactions of one connection "
            "are run in sessions of others, as with `pool_mode = transaction` of PgBouncer",
            hint=POOL_HINT,
        )
