"""Connections to MySQL and MariaDB, and their errors.

PyMySQL is the driver of everything. It converts nothing: every value crosses as the text that the
server writes, or as bytes.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pymysql
import pymysql.cursors
from pymysql.constants import CR, ER

from lakeload_jobs.contract.errors import LakeloadError, LoadFailed, Refused
from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.contract.spec import JdbcInput
from lakeload_jobs.sources.databases.engines.failures import LOST_HINT
from lakeload_jobs.sources.databases.engines.mysql.sql import quoted

if TYPE_CHECKING:
    Connection = pymysql.Connection[pymysql.cursors.Cursor]


_CONNECT_SECONDS = 15
_LEAST_PACKET = 1 << 20
"""Bytes of `max_allowed_packet`: what a load computes for a row is less."""
SETTINGS = {
    # First: it cuts what SHOW and the catalog return. In MariaDB DEFAULT is the global value.
    "sql_select_limit": "18446744073709551615",
    "sql_big_selects": "1",
    "time_zone": "'+00:00'",
    # Else `char` may come with its blanks, and quotes may mean other things.
    "sql_mode": "''",
    "sql_auto_is_null": "0",
    # A view with GROUP_CONCAT has all of its text, and DISTINCT compares this much at least.
    "group_concat_max_len": "4294967295",
    "max_sort_length": "GREATEST(@@max_sort_length, 4096)",
    # Of warnings: one may say that a value was cut.
    "max_error_count": "65535",
    # Else ROLLBACK may end the session, and LOCK TABLES may not reach InnoDB.
    "completion_type": "0",
    "innodb_table_locks": "1",
    # For rows that are written to the lake more slowly than the server sends them.
    "net_write_timeout": "3600",
    "wait_timeout": "28800",
}
"""Of each session (docs/mysql.md)."""
SETTINGS_OF_SOME = {
    # Else a recursive query ends early, with a warning.
    "max_recursive_iterations": "4294967295",
    # Rows of another moment. DEFAULT is none, also where the server's value is a moment.
    "system_versioning_asof": "DEFAULT",
    "wsrep_dirty_reads": "OFF",
    "idle_transaction_timeout": "0",
    "idle_readonly_transaction_timeout": "0",
    # A generated key is seen.
    "show_gipk_in_create_table_and_information_schema": "ON",
    "information_schema_stats_expiry": "0",
    "use_secondary_engine": "OFF",
    "explain_format": "TRADITIONAL",
}
"""Of each session whose server has the variable with another value."""


def connect(read: JdbcInput, password: Secret | None, *, streams: bool = False) -> Connection:
    """Connect with the settings of every session. `streams`: rows come as they are read.

    Raises `Refused` where the server cannot be reached or rejects the login.
    """
    parameters = read.parameters or {}
    cursors: Any = pymysql.cursors
    try:
        connection = pymysql.connect(
            host=read.host,
            port=read.port,
            user=read.user,
            password="" if password is None else password.reveal(),
            database=read.name,
            charset="utf8mb4",
            connect_timeout=int(parameters.get("connect_timeout", _CONNECT_SECONDS)),
            autocommit=True,
            conv={},
            cursorclass=cursors.SSCursor if streams else cursors.Cursor,
            program_name="lakeload",
            **_tls(parameters),
        )
    except (pymysql.Error, RuntimeError, OSError) as error:
        raise _not_connected(read, error) from None
    try:
        with failures("preparing the connection"):
            _set(connection, SETTINGS)
            _set(connection, _settings_of_this_server(connection, read))
            fetch(connection, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    except BaseException:
        connection.close()
        raise
    return connection


def _set(connection: Connection, settings: Mapping[str, str]) -> None:
    fetch(connection, "SET " + ", ".join(f"SESSION {n} = {v}" for n, v in settings.items()))


def _settings_of_this_server(connection: Connection, read: JdbcInput) -> dict[str, str]:
    """Return the settings that this server needs: no more, as some ask for a right. Raises
    `Refused` where it makes nulls of short values."""
    names = (*SETTINGS_OF_SOME, "max_allowed_packet", "max_statement_time")
    shown = ", ".join(f"'{name}'" for name in names)
    values = dict(fetch(connection, f"SHOW SESSION VARIABLES WHERE Variable_name IN ({shown})"))
    if int(values["max_allowed_packet"]) < _LEAST_PACKET:
        raise Refused(
            f"the server sets `max_allowed_packet` to {values['max_allowed_packet']} bytes, with "
            "which its functions return null for values that are not large",
            hint=f"raise it on the server: `SET GLOBAL max_allowed_packet = {_LEAST_PACKET}` or "
            "more",
        )
    settings = {
        name: value
        for name, value in SETTINGS_OF_SOME.items()
        if values.get(name, value).upper() != value
    }
    wait = str(read.lock_timeout)
    settings |= {"lock_wait_timeout": wait, "innodb_lock_wait_timeout": wait}
    if read.statement_timeout and "max_statement_time" in values:
        settings["max_statement_time"] = str(read.statement_timeout)
    elif read.statement_timeout:
        settings["max_execution_time"] = str(1000 * read.statement_timeout)
    return settings


def _tls(parameters: dict[str, str]) -> dict[str, Any]:
    """Return the settings of TLS: `sslmode` and `sslrootcert` mean what they mean to libpq."""
    mode, root = parameters.get("sslmode", "prefer"), parameters.get("sslrootcert")
    if mode == "disable":
        return {"ssl_disabled": True}
    if mode in ("allow", "prefer"):
        return {}
    try:
        context = ssl.create_default_context(cafile=None if root == "system" else root)
    except OSError as error:
        raise Refused(
            f"`sslrootcert`: the file `{root}` cannot be read as certificates: {error.strerror}",
            hint="set `sslrootcert` in `url` to a file with the authority's certificate",
        ) from error
    context.check_hostname = mode == "verify-full"
    if mode == "require" and root is None:
        context.verify_mode = ssl.CERT_NONE
    return {"ssl": context}


def fetch(connection: Connection, statement: str, *values: str) -> tuple[tuple[Any, ...], ...]:
    """Run a statement, with text in the place of each `%s`, and return its rows, as text."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return tuple(cursor.fetchall())


_LOGIN = (ER.ACCESS_DENIED_ERROR, ER.DBACCESS_DENIED_ERROR, 1698)
_BUSY = (ER.CON_COUNT_ERROR, ER.TOO_MANY_USER_CONNECTIONS, ER.USER_LIMIT_REACHED)


def _not_connected(read: JdbcInput, error: Exception) -> Refused:
    number, text = number_of(error), safe_text(error)
    cause = getattr(error, "original_exception", None)
    untrusted = isinstance(cause, ssl.SSLCertVerificationError)
    if number == ER.DBACCESS_DENIED_ERROR:
        account = re.search(r" user '(.*)'@'(.*)' to database ", text)
        right = grant_hint(
            "SELECT", f"{quoted(read.name)}.*", account.groups() if account else None
        )
        hint = f"{right}, or name another database in `url`"
    elif untrusted:
        hint = "set `sslrootcert` in `url` to the authority's certificate, and check the host"
    elif number in _LOGIN:
        hint = "check `user` and `password` in `source`, and that the user may connect from here"
    elif number == ER.BAD_DB_ERROR:
        hint = "check the database in `url`"
    elif number in _BUSY:
        hint = "run again when fewer sessions are connected, or raise the limit on the server"
    elif number == CR.CR_SSL_CONNECTION_ERROR:
        hint = "turn on TLS on the server, or lower `sslmode` in `url`"
    elif isinstance(error, RuntimeError):
        hint = "set `sslmode=require` in `url`: without TLS this login needs another package"
    else:
        hint = "check `url` in `source`, the network, and TLS of the server"
    return Refused(
        f"connecting to MySQL at {read.host}:{read.port} failed: {text}",
        hint=hint,
        retryable=number not in (*_LOGIN, ER.BAD_DB_ERROR, CR.CR_SSL_CONNECTION_ERROR)
        and not untrusted,
    )


def number_of(error: Exception) -> int:
    number = error.args[0] if error.args else 0
    return number if isinstance(number, int) else 0


def not_granted(
    connection: Connection, doing: str, error: Exception, right: str, what: str
) -> LoadFailed:
    """Return the failure of a statement because a right is missing, with what grants it."""
    return LoadFailed(
        f"{doing}: {safe_text(error)} (error {number_of(error)})",
        hint=grant_hint(right, what, account_of(connection)),
    )


def safe_text(error: Exception) -> str:
    """Return a driver's message on one line; the server's messages hold no password."""
    text = error.args[1] if len(error.args) > 1 else str(error)
    return " ".join(str(text).split())[:300]


_LOST = (
    CR.CR_SERVER_GONE_ERROR, CR.CR_SERVER_LOST, 0, ER.SERVER_SHUTDOWN, 1927,
    ER.NET_READ_ERROR, ER.NET_WRITE_INTERRUPTED, ER.NET_ERROR_ON_WRITE,
)  # fmt: skip
"""The connection has ended: the server was stopped, or an operator has killed the session."""
_TIMED_OUT = (1969, 3024, 1317)
"""`max_statement_time` of MariaDB, `max_execution_time` of MySQL, a killed statement."""
_LOCKED = (ER.LOCK_WAIT_TIMEOUT, ER.LOCK_DEADLOCK)
_FULL = (ER.DISK_FULL, ER.RECORD_FILE_FULL, ER.ERROR_ON_WRITE)
_CHANGED = 1412
"""The table was changed after the transaction began."""
HINTS = {
    ER.TABLEACCESS_DENIED_ERROR: "grant the missing right: ``GRANT SELECT ON {0} TO …``",
    ER.COLUMNACCESS_DENIED_ERROR: "grant the right, or leave the column out with `columns.exclude`",
    ER.NO_SUCH_TABLE: "the table was dropped or renamed: run again",
    ER.BAD_FIELD_ERROR: "the columns of the table have changed: run again",
    ER.PARSE_ERROR: "check the query: it is one SELECT",
    ER.DUP_FIELDNAME: "give one of the two columns another name with `AS`",
    ER.VIEW_INVALID: "fix the view, or the rights of its definer",
    _CHANGED: "the table was changed during the load: run again",
    **dict.fromkeys(_FULL, "free space on the disk of the server, and run again"),
    **dict.fromkeys(_TIMED_OUT, "set a higher `statement_timeout` in `source`, in seconds"),
    **dict.fromkeys(_LOCKED, "another session holds a lock on the table: run again later"),
    **dict.fromkeys(_BUSY, "lower `max_connections` in `source`, or raise it on the server"),
}
"""What to do, by error number (docs/error-codes.md)."""


@contextmanager
def failures(doing: str, relation: str = "…") -> Iterator[None]:
    """Raise errors of the driver as `LoadFailed`, by their number. `relation` is the SQL of what is
    read."""
    try:
        yield
    except LakeloadError:
        raise
    except (pymysql.Error, OSError) as error:
        number = number_of(error)
        if number in _LOST or isinstance(error, OSError | pymysql.InterfaceError):
            raise LoadFailed(
                f"{doing}: the connection to MySQL was lost", hint=LOST_HINT, retryable=True
            ) from None
        hint = HINTS.get(number)
        raise LoadFailed(
            f"{doing}: {safe_text(error)} (error {number})",
            hint=hint.format(relation) if hint else None,
            retryable=number in (*_TIMED_OUT, *_LOCKED, *_BUSY, *_FULL, _CHANGED),
        ) from None


def account_of(connection: Connection) -> tuple[str, str]:
    """Return the name and the host of the account whose rights the session has."""
    ((account,),) = fetch(connection, "SELECT CURRENT_USER()")
    name, _, host = str(account).rpartition("@")
    return name, host


def grant_hint(right: str, what: str, account: Sequence[str] | None) -> str:
    """Return the hint that gives an account a right, with a statement to copy."""
    parts = ("'" + part.replace("\\", "\\\\").replace("'", "''") + "'" for part in account or ())
    statement = f"GRANT {right} ON {what} TO {'@'.join(parts) or '…'}"
    # As Markdown has it: more signs than the names in it have.
    longest = max(map(len, re.findall("`+", statement)))
    fence = "`" * (longest + 1)
    return f"let an administrator run {fence}{statement}{fence}"
