"""MySQL and MariaDB: connections, the table of types, and the rows of one consistent read.

PyMySQL is the driver of everything. It converts nothing: every value crosses as the text that the
server writes, or as bytes, and becomes one of the column's type here.
"""

from __future__ import annotations

import re
import ssl
from base64 import b64encode
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pymysql
import pymysql.cursors
from pymysql.constants import CR, ER, FIELD_TYPE, FLAG

from lakeload_jobs.contract.errors import LakeloadError, LoadFailed, Refused
from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.contract.spec import JdbcInput, OnBadValue
from lakeload_jobs.rows.arrow import Column, Kind
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER, KEY_ONLY_HELPER
from lakeload_jobs.sources.base import BadValue, BadValuesFound
from lakeload_jobs.sources.batch_sizes import BATCH_BYTES, BATCH_ROWS, bounded
from lakeload_jobs.sources.databases.columns import (
    CatalogColumn,
    CatalogTable,
    Rule,
    SelectedColumn,
    UniqueIndex,
    keys_of,
)
from lakeload_jobs.sources.databases.identity import TaskIdentity
from lakeload_jobs.sources.databases.key_ranges import MYSQL_PLACES, Ranges, all_of, find_bounds
from lakeload_jobs.sources.databases.relation_identity import RelationIdentity
from lakeload_jobs.sources.databases.seen import ENTRY_BYTES, ID_BYTES, check_size, entries
from lakeload_jobs.sources.databases.table_names import table_meant
from lakeload_jobs.sources.type_names import text_type

if TYPE_CHECKING:
    Connection = pymysql.Connection[pymysql.cursors.Cursor]

_MAX_DIGITS = 38
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


_NOT_A_DATE = "it is not a date of the years 1 to 9999"
_NO_DATE = (
    # A month of 0 has no last day; `ALLOW_INVALID_DATES` lets a 31 February in.
    "({0} IS NOT NULL AND (YEAR({0}) = 0 OR DAYOFMONTH({0}) = 0"
    " OR COALESCE(DAYOFMONTH({0}) > DAYOFMONTH(LAST_DAY({0})), TRUE)))"
)
# As text a `float` has 6 digits only.
_ALL_DIGITS = "{0} * 1E0"
_NUMBER = "CAST({0} AS UNSIGNED)"

RULES: tuple[Rule, ...] = (
    Rule("tinyint", "tinyint"),
    Rule("tinyint unsigned", "smallint"),
    Rule("smallint", "smallint"),
    Rule("smallint unsigned", "int"),
    Rule("mediumint", "int"),
    Rule("mediumint unsigned", "int"),
    Rule("int", "int"),
    Rule("int unsigned", "bigint"),
    Rule("bigint", "bigint"),
    Rule("bigint unsigned", "decimal(20,0)"),
    Rule("decimal", "decimal(p,s)"),
    Rule("float", "float", _ALL_DIGITS),
    Rule("double", "double", _ALL_DIGITS),
    Rule("bit(1)", "boolean", _NUMBER),
    Rule("bit", "decimal(20,0)", _NUMBER),
    Rule("year", "smallint"),
    Rule("date", "date", bad=_NO_DATE, reason=_NOT_A_DATE),
    Rule("datetime", "timestamp_ntz", bad=_NO_DATE, reason=_NOT_A_DATE),
    Rule("timestamp", "timestamp", bad=_NO_DATE, reason=_NOT_A_DATE),
    Rule("time", "string"),
    Rule("char", "string"),
    Rule("varchar", "string"),
    Rule("tinytext", "string"),
    Rule("text", "string"),
    Rule("mediumtext", "string"),
    Rule("longtext", "string"),
    Rule("enum", "string"),
    Rule("set", "string"),
    Rule("json", "string"),
    Rule("binary", "binary"),
    Rule("varbinary", "binary"),
    Rule("tinyblob", "binary"),
    Rule("blob", "binary"),
    Rule("mediumblob", "binary"),
    Rule("longblob", "binary"),
    Rule("geometry", "binary"),
)
"""The table of types. `geometry` stands for all spatial types."""
OTHER = Rule("", "string", "CAST({0} AS CHAR)")
"""What every other type follows: its text, as the server writes it."""
_RULES = {rule.type: rule for rule in RULES}
_GEOMETRIES = (
    *("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring"),
    *("multipolygon", "geometrycollection", "geomcollection"),
)


@dataclass(frozen=True)
class Relation:
    """A table or view, `engine` '' for a view, or a `query`: then `schema` and `name` are ''."""

    schema: str
    name: str
    engine: str
    estimated_rows: int | None
    bytes: int | None
    query: str | None = None
    comment: str = ""
    identity: RelationIdentity | None = None
    """Of a table."""

    @property
    def sql(self) -> str:
        """What stands behind FROM."""
        if self.query is not None:
            # The line break ends a comment at the end of the query.
            return f"({self.query.strip().rstrip(';')}\n) AS `query`"
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    @property
    def shown(self) -> str:
        """The name in messages."""
        return "query" if self.query is not None else f"{self.schema}.{self.name}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is not as one expects of a table."""
        if self.engine in ("", "InnoDB"):
            return ()
        return (
            f"`{self.shown}` has the engine {self.engine}, which has no consistent "
            "read: a change during the read may be loaded in part",
        )


def quoted(name: str) -> str:
    """Return an identifier as SQL has it."""
    return "`" + name.replace("`", "``") + "`"


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
    number, text = _number(error), safe_text(error)
    cause = getattr(error, "original_exception", None)
    untrusted = isinstance(cause, ssl.SSLCertVerificationError)
    if number == ER.DBACCESS_DENIED_ERROR:
        account = re.search(r" user '(.*)'@'(.*)' to database ", text)
        right = _grant("SELECT", f"{quoted(read.name)}.*", account.groups() if account else None)
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


def _number(error: Exception) -> int:
    number = error.args[0] if error.args else 0
    return number if isinstance(number, int) else 0


def safe_text(error: Exception) -> str:
    """Return a driver's message on one line; the server's messages hold no password."""
    text = error.args[1] if len(error.args) > 1 else str(error)
    return " ".join(str(text).split())[:300]


LOST_HINT = "run again: nothing was committed"
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
def failures(doing: str, relation: Relation | None = None) -> Iterator[None]:
    """Raise errors of the driver as `LoadFailed`, by their number."""
    try:
        yield
    except LakeloadError:
        raise
    except (pymysql.Error, OSError) as error:
        number = _number(error)
        if number in _LOST or isinstance(error, OSError | pymysql.InterfaceError):
            raise LoadFailed(
                f"{doing}: the connection to MySQL was lost", hint=LOST_HINT, retryable=True
            ) from None
        hint = HINTS.get(number)
        raise LoadFailed(
            f"{doing}: {safe_text(error)} (error {number})",
            hint=hint.format(relation.sql if relation else "…") if hint else None,
            retryable=number in (*_TIMED_OUT, *_LOCKED, *_BUSY, *_FULL, _CHANGED),
        ) from None


def find_relation(connection: Connection, read: JdbcInput) -> Relation:
    """Return what is read. Raises `LoadFailed` where the user sees no table of that name."""
    if read.query is not None:
        return Relation("", "", "", None, None, read.query)
    with failures(f"finding the table `{read.schema}.{read.table}`"):
        rows = fetch(
            connection,
            "SELECT table_name, engine, table_rows, data_length, table_comment, create_time"
            " FROM information_schema.tables WHERE table_schema = %s",
            read.schema,
        )
    for name, engine, count, size, comment, created in rows:
        # The server compares names without case.
        if name == read.table:
            return Relation(
                read.schema,
                read.table,
                engine or "",
                None if count is None else int(count),
                None if size is None else int(size),
                # That of a view is the word VIEW.
                comment=comment if engine else "",
                identity=RelationIdentity("", frozenset([created])) if engine and created else None,
            )
    meant = table_meant(read.schema, read.table, list_tables(connection, read, None))
    if meant is None:
        meant = "write the names as they are in the database, upper and lower case included."
    raise LoadFailed(
        f"the user sees no table `{read.schema}.{read.table}`",
        hint=f"{meant} If the name is right, "
        + _grant("SELECT", f"{quoted(read.schema)}.{quoted(read.table)}", _account(connection)),
    )


def _account(connection: Connection) -> tuple[str, str]:
    """Return the name and the host of the account whose rights the session has."""
    ((account,),) = fetch(connection, "SELECT CURRENT_USER()")
    name, _, host = str(account).rpartition("@")
    return name, host


def _grant(right: str, what: str, account: Sequence[str] | None) -> str:
    """Return the hint that gives an account a right, with a statement to copy."""
    parts = ("'" + part.replace("\\", "\\\\").replace("'", "''") + "'" for part in account or ())
    statement = f"GRANT {right} ON {what} TO {'@'.join(parts) or '…'}"
    # As Markdown has it: more signs than the names in it have.
    longest = max(map(len, re.findall("`+", statement)))
    fence = "`" * (longest + 1)
    return f"let an administrator run {fence}{statement}{fence}"


def columns(
    connection: Connection, relation: Relation, read: JdbcInput
) -> tuple[CatalogColumn, ...]:
    """Return the columns, as the server describes them, in their order.

    Raises `LoadFailed` for a query that the server rejects or with two columns of one name.
    """
    with failures(f"reading the columns of `{relation.shown}`", relation):
        if relation.query is not None:
            return _result_columns(connection, relation)
        rows = fetch(
            connection,
            "SELECT table_name, column_name, data_type, column_type, numeric_precision,"
            " numeric_scale, is_nullable, column_comment FROM information_schema.columns"
            " WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
            relation.schema,
            relation.name,
        )
        if not rows:
            # A view without columns is one that the server cannot read: this says why.
            fetch(connection, f"SELECT 1 FROM {relation.sql} LIMIT 0")  # noqa: S608
    return tuple(
        CatalogColumn(
            name,
            _type(kind.lower(), declared, precision),
            declared,
            None if precision is None else int(precision),
            None if scale is None else int(scale),
            nullable == "YES",
            comment or "",
        )
        for table, name, kind, declared, precision, scale, nullable, comment in rows
        if table == relation.name
    )


_RESULT_TYPES = {
    FIELD_TYPE.TINY: "tinyint",
    FIELD_TYPE.SHORT: "smallint",
    FIELD_TYPE.INT24: "mediumint",
    FIELD_TYPE.LONG: "int",
    FIELD_TYPE.LONGLONG: "bigint",
    FIELD_TYPE.NEWDECIMAL: "decimal",
    FIELD_TYPE.FLOAT: "float",
    FIELD_TYPE.DOUBLE: "double",
    FIELD_TYPE.BIT: "bit",
    FIELD_TYPE.YEAR: "year",
    FIELD_TYPE.DATE: "date",
    FIELD_TYPE.NEWDATE: "date",
    FIELD_TYPE.DATETIME: "datetime",
    FIELD_TYPE.TIMESTAMP: "timestamp",
    FIELD_TYPE.TIME: "time",
    FIELD_TYPE.JSON: "json",
    FIELD_TYPE.GEOMETRY: "geometry",
}
"""The types of the protocol; those that are missing here are text or bytes."""
_TEXTS = (
    *(FIELD_TYPE.VARCHAR, FIELD_TYPE.VAR_STRING, FIELD_TYPE.STRING, FIELD_TYPE.TINY_BLOB),
    *(FIELD_TYPE.BLOB, FIELD_TYPE.MEDIUM_BLOB, FIELD_TYPE.LONG_BLOB),
)
_BYTES = 63
"""The character set of what is no text."""


def _result_columns(connection: Connection, relation: Relation) -> tuple[CatalogColumn, ...]:
    """Return the columns of a query, by what the protocol says of them."""
    cursor: Any = connection.cursor()
    with closing(cursor):
        cursor.execute(f"SELECT * FROM {relation.sql} LIMIT 0")  # noqa: S608
        return tuple(map(_result_column, cursor._result.fields))


def _result_column(field: Any) -> CatalogColumn:
    number, unsigned = field.type_code, bool(field.flags & FLAG.UNSIGNED)
    precision = scale = None
    if number in _TEXTS:
        binary = field.charsetnr == _BYTES
        kind = "longblob" if binary else "longtext"
    else:
        kind = _RESULT_TYPES.get(number, "")
    if kind == "decimal":
        # The length is that of the text: with a point, and with a sign.
        precision, scale = field.length - (field.scale > 0) - (not unsigned), field.scale
    if kind == "bit" and field.length == 1:
        kind = "bit(1)"
    if unsigned and kind.endswith("int"):
        kind += " unsigned"
    return CatalogColumn(field.name, kind, kind, precision, scale, not field.flags & FLAG.NOT_NULL)


def _type(kind: str, declared: str, precision: str | None) -> str:
    if kind in _GEOMETRIES:
        return "geometry"
    if kind == "bit" and precision == "1":
        return "bit(1)"
    # Only numbers: a value of an enum may be called so.
    if kind.endswith("int") and re.search(r"\bunsigned\b", declared):
        return f"{kind} unsigned"
    return kind


def select(found: Sequence[CatalogColumn]) -> tuple[SelectedColumn, ...]:
    """Return how columns are selected, each as its type's rule says."""
    return tuple(map(_selected, found))


def _selected(column: CatalogColumn) -> SelectedColumn:
    rule, name = _RULES.get(column.type, OTHER), quoted(column.name)
    target = rule.target
    if column.type == "decimal":
        digits = column.precision or _MAX_DIGITS + 1
        target = f"decimal({digits},{column.scale})" if digits <= _MAX_DIGITS else "string"
    return SelectedColumn(
        name=column.name,
        expression=rule.expression.format(name),
        type=target,
        carried="TEXT",
        bad=rule.bad.format(name),
        reason=rule.reason,
        shown=name,
    )


def check_select(
    connection: Connection,
    relation: Relation,
    selected: Sequence[SelectedColumn],
    read: JdbcInput,
) -> None:
    """Raise `LoadFailed` where the user may not read the columns."""
    with failures(f"reading `{relation.shown}`", relation):
        try:
            fetch(connection, f"{select_sql(relation, selected, counts_bad=False)} LIMIT 0")
        except pymysql.Error as error:
            if _number(error) != ER.TABLEACCESS_DENIED_ERROR or relation.query is not None:
                raise
            raise LoadFailed(
                f"reading `{relation.shown}`: {safe_text(error)} (error {_number(error)})",
                hint=_grant("SELECT", relation.sql, _account(connection)),
            ) from None


def describe_session(connection: Connection) -> str:
    """Return the version of the server and how the connection is encrypted."""
    ((version,),) = fetch(connection, "SELECT version()")
    ((_, tls),) = fetch(connection, "SHOW SESSION STATUS LIKE 'Ssl_version'")
    return f"{version}, {tls or 'without TLS'}"


_SYSTEM = ("information_schema", "mysql", "performance_schema", "sys")


def list_tables(
    connection: Connection, read: JdbcInput, schemas: Sequence[str] | None
) -> tuple[CatalogTable, ...]:
    """Return the tables and views of some databases, or of all, by their names."""
    chosen = _SYSTEM if schemas is None else tuple(schemas)
    within = f"{'NOT ' if schemas is None else ''}IN ({', '.join(['%s'] * len(chosen))})"
    with failures("listing the tables"):
        rows = fetch(
            connection,
            "SELECT table_schema, table_name, table_type FROM information_schema.tables"  # noqa: S608
            f" WHERE table_schema {within} AND table_type <> 'SEQUENCE' ORDER BY 1, 2",
            *chosen,
        )
        keys = _keys(connection, f"table_schema {within}", *chosen)
    return tuple(
        CatalogTable(
            schema, name, "view" if "VIEW" in kind else "table", keys.get((schema, name), ())
        )
        for schema, name, kind in rows
    )


def list_changed(connection: Connection, read: JdbcInput) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the timestamps that are not null of each table: one may say when a row changed."""
    places = ", ".join(["%s"] * len(_SYSTEM))
    with failures("listing the columns"):
        rows = fetch(
            connection,
            "SELECT table_schema, table_name, column_name FROM information_schema.columns"  # noqa: S608
            " WHERE data_type IN ('datetime', 'timestamp') AND is_nullable = 'NO'"
            f" AND table_schema NOT IN ({places}) ORDER BY 1, 2, ordinal_position",
            *_SYSTEM,
        )
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for schema, table, name in rows:
        found[schema, table] = (*found.get((schema, table), ()), name)
    return found


def list_sizes(connection: Connection, read: JdbcInput) -> dict[tuple[str, str], int]:
    """Return the bytes of each table, as the database estimates them."""
    places = ", ".join(["%s"] * len(_SYSTEM))
    with failures("listing the sizes of tables"):
        rows = fetch(
            connection,
            "SELECT table_schema, table_name, data_length FROM information_schema.tables"  # noqa: S608
            f" WHERE data_length IS NOT NULL AND table_schema NOT IN ({places})",
            *_SYSTEM,
        )
    return {(schema, table): int(size) for schema, table, size in rows}


def _keys(
    connection: Connection, condition: str, *values: str
) -> dict[tuple[str, str], tuple[tuple[str, ...], ...]]:
    """Return the keys of tables by schema and name.

    MariaDB adds the end of a row's validity to each key of a table with system versions. It is
    another value once the row has changed, and current rows are told apart without it.
    """
    rows = fetch(
        connection,
        "SELECT table_schema, table_name, index_name, column_name, nullable, sub_part"  # noqa: S608
        f" FROM information_schema.statistics WHERE non_unique = 0 AND {condition}"
        " ORDER BY table_schema, table_name, index_name, seq_in_index",
        *values,
    )
    ends = fetch(
        connection,
        "SELECT table_schema, table_name, column_name FROM information_schema.columns"  # noqa: S608
        f" WHERE generation_expression = 'ROW END' AND {condition}",
        *values,
    )
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    refused: set[tuple[str, str, str]] = set()
    for schema, table, index, column, nullable, part in rows:
        if (schema, table, column) in ends:
            continue
        found.setdefault((schema, table), {}).setdefault(index, []).append(column)
        # An index of expressions, of values that can be null, or of their first characters.
        if column is None or nullable == "YES" or part is not None:
            refused.add((schema, table, index))
    return {
        place: keys_of(
            UniqueIndex(index, tuple(names), index == "PRIMARY")
            for index, names in indexes.items()
            if (*place, index) not in refused
        )
        for place, indexes in found.items()
    }


def key_of(connection: Connection, relation: Relation) -> tuple[str, ...]:
    """Return the columns of the preferred key; none where the table has none."""
    place = (relation.schema, relation.name)
    keys = _keys(connection, "table_schema = %s AND table_name = %s", *place).get(place, ())
    return keys[0] if keys else ()


def estimate_rows(connection: Connection, relation: Relation, wanted: str) -> int | None:
    """Return how many rows meet a condition, by the statistics of the database; None where it would
    read all rows to know."""
    with connection.cursor(pymysql.cursors.DictCursor) as cursor:
        cursor.execute(f"EXPLAIN SELECT 1 FROM {relation.sql} WHERE {wanted}")  # noqa: S608
        plan: Any = cursor.fetchall()
    return int(plan[0]["rows"]) if len(plan) == 1 and plan[0]["key"] and plan[0]["rows"] else None


_SPLIT_BYTES = 16 << 20
"""No range is made for less."""


def find_ranges(
    connection: Connection, relation: Relation, found: Sequence[CatalogColumn], most: int
) -> Ranges | None:
    """Return at most so many ranges of a table's primary key with about as many rows each, by the
    estimates of the server; None where one session reads all rows."""
    count = min(most, (relation.bytes or 0) // _SPLIT_BYTES)
    if count < 2 or relation.engine != "InnoDB":
        return None
    with failures(f"finding ranges of `{relation.shown}`", relation):
        rows = fetch(
            connection,
            "SELECT table_name, column_name FROM information_schema.statistics"
            " WHERE table_schema = %s AND table_name = %s AND index_name = 'PRIMARY'"
            " AND seq_in_index = 1 AND sub_part IS NULL",
            relation.schema,
            relation.name,
        )
        first = {column for table, column in rows if table == relation.name}
        key = next((column for column in found if column.name in first), None)
        if key is None or (places := MYSQL_PLACES.get(key.type)) is None:
            return None
        name, whole = quoted(key.name), _explained_rows(connection, relation.sql)

        def below(place: int) -> int:
            # Of more than half of a table the server estimates half.
            source, value = f"{relation.sql} FORCE INDEX (PRIMARY)", places.text(place)
            low = _explained_rows(connection, f"{source} WHERE {name} < {value}")
            high = _explained_rows(connection, f"{source} WHERE {name} >= {value}")
            return low if low <= high else whole - high

        bounds = find_bounds(places, count, whole, below)
    return Ranges(key.name, name, tuple(map(places.text, bounds)))


def _explained_rows(connection: Connection, source: str) -> int:
    with connection.cursor(pymysql.cursors.DictCursor) as cursor:
        cursor.execute(f"EXPLAIN SELECT 1 FROM {source}")  # noqa: S608
        plan: Any = cursor.fetchall()
    # Without an index there is no row that could meet the condition.
    return int(plan[0]["rows"] or 0) if plan[0]["key"] or plan[0]["type"] == "ALL" else 0


@dataclass(frozen=True)
class Part:
    """The rows of a table that one task reads: those that meet a condition, '' for all.

    `locked`: the tasks of all parts run at the same time, and all transactions begin while the
    table is locked.
    """

    condition: str = ""
    locked: bool = False


_LOCK_SECONDS = 30
"""After so many the server ends a session that holds the lock and does nothing."""
_BEGIN = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"


def _begin_locked(
    read: JdbcInput, password: Secret | None, relation: Relation, connection: Connection
) -> None:
    """Begin the transaction of one of several tasks, which all see the rows of one moment: while
    they begin, the first one holds a lock, with which no other session writes to the table."""
    # With Spark, which the command line does without.
    from lakeload_jobs.rows.batches import barrier_task

    tasks = barrier_task()
    # Nobody has to wait for the table while tasks connect.
    tasks.barrier()
    lock = _lock(read, password, relation) if tasks.partitionId() == 0 else None
    try:
        tasks.barrier()
        fetch(connection, _BEGIN)
        tasks.barrier()
        if lock is not None:
            with failures(f"unlocking `{relation.shown}`", relation):
                # An error where the server has ended the session: then it was not locked all along.
                fetch(lock, "UNLOCK TABLES")
    finally:
        if lock is not None:
            lock.close()


def _lock(read: JdbcInput, password: Secret | None, relation: Relation) -> Connection:
    """Return a connection that has locked a table, after the transactions that have written to it.
    Raises `LoadFailed` where the user may not, or they do not end."""
    connection = connect(read, password)
    doing = f"locking `{relation.shown}` (`consistency: LOCK`)"
    try:
        with failures(doing, relation):
            # Without autocommit InnoDB locks the table too, and not the server alone.
            fetch(connection, "SET SESSION TRANSACTION READ WRITE")
            fetch(connection, f"SET SESSION wait_timeout = {_LOCK_SECONDS}, autocommit = 0")
            try:
                fetch(connection, f"LOCK TABLES {relation.sql} READ")
            except pymysql.Error as error:
                if _number(error) not in (ER.DBACCESS_DENIED_ERROR, ER.TABLEACCESS_DENIED_ERROR):
                    raise
                raise LoadFailed(
                    f"{doing}: {safe_text(error)} (error {_number(error)})",
                    hint=_grant(
                        "LOCK TABLES", f"{quoted(relation.schema)}.*", _account(connection)
                    ),
                ) from None
    except BaseException:
        connection.close()
        raise
    return connection


_SHOWN = 10
_TEXT_SHOWN = 60
_CELL_BYTES = 8
"""Arrow bytes of a short value, beside those of its text."""
_KEYS_AT_ONCE = 4096


@dataclass(frozen=True)
class Noting:
    """How the rows of a load are compared with those that were seen, and noted.

    Rows whose entry `compared` is in `seen` are left out; `length` bytes of it count. `compared`
    '': none are. The entries `entry` of the rows with the condition `rows` are noted.
    """

    entry: str
    rows: str
    lookback: bool
    compared: str = ""
    seen: bytes = b""
    length: int = ENTRY_BYTES


@dataclass(frozen=True)
class ReadTable:
    """Reads one table, or parts of it, each in one transaction; it travels to the tasks.

    With `on_bad_value` FAIL bad values raise `BadValuesFound`, before a row is read; else they are
    null, and counted in `BAD_VALUES_HELPER`.
    """

    read: JdbcInput
    identity: TaskIdentity
    relation: Relation
    selected: tuple[SelectedColumn, ...]
    on_bad_value: OnBadValue
    wanted: str = ""
    """The condition of the rows that are read, '' for all."""
    noting: Noting | None = None
    """Where rows are appended by a cursor."""
    keys: tuple[str, ...] = ()
    """Columns that are read of every row too, behind the rows, and told by `KEY_ONLY_HELPER`."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the batches, helpers included."""
        fields: list[Any] = [(column.name, text_type(column.type)) for column in self.selected]
        if self._counts_bad_values:
            fields.append((BAD_VALUES_HELPER, pa.int64()))
        if self.keys:
            fields.append((KEY_ONLY_HELPER, pa.bool_()))
        return pa.schema(fields)

    def __call__(self, part: Part) -> Generator[pa.RecordBatch, None, str | None]:
        """Yield the rows of a part, and return the entries that are noted, base64.

        Raises `LakeloadError`, also where the rows are not as many as were counted in the same
        transaction.
        """
        if part.condition:
            whole = replace(part, condition="")
            wanted = all_of((part.condition, self.wanted))
            return (yield from replace(self, wanted=wanted)(whole))
        name = self.relation.shown
        password = self.identity.password(self.read)
        with closing(connect(self.read, password, streams=True)) as connection:
            with failures(f"counting the rows of `{name}`", self.relation):
                if part.locked:
                    _begin_locked(self.read, password, self.relation, connection)
                else:
                    fetch(connection, _BEGIN)
                counted = self._check(connection)
            rows = 0
            with failures(f"reading `{name}`", self.relation):
                for count, batch in self._batches(connection):
                    rows += count
                    if batch is not None:
                        yield self._told(batch, key_only=False)
                _check_warnings(connection, name)
            if rows != counted:
                raise LoadFailed(
                    f"reading `{name}`: {counted:,} rows were counted, and {rows:,} were read in "
                    "the same transaction",
                    hint=LOST_HINT,
                    retryable=True,
                )
            if self.keys:
                with failures(f"reading the keys of `{name}`", self.relation):
                    yield from self._key_batches(connection)
            return None if self.noting is None else self._entries(connection, self.noting)

    def _entries(self, connection: Connection, noting: Noting) -> str:
        name = self.relation.shown
        where = f" FROM {self.relation.sql} WHERE {noting.rows}"
        with failures(f"noting the rows of `{name}` that were read", self.relation):
            ((count,),) = fetch(connection, f"SELECT COUNT(*){where}")
            check_size(int(count), name, lookback=noting.lookback)
            rows = fetch(connection, f"SELECT {noting.entry}{where}")
        return b64encode(bytes.fromhex("".join(text for (text,) in rows))).decode()

    @property
    def _row_schema(self) -> pa.Schema:
        """The columns of `schema` that are selected."""
        return pa.schema([field for field in self.schema if field.name != KEY_ONLY_HELPER])

    def _key_batches(self, connection: Connection) -> Iterator[pa.RecordBatch]:
        """Yield the keys of all rows, with nulls in other columns."""
        selected = [column for column in self.selected if column.name in self.keys]
        fields = pa.schema([self.schema.field(column.name) for column in selected])
        select = select_sql(self.relation, selected, counts_bad=False)
        with _streamed(connection, select) as cursor:
            while rows := cursor.fetchmany(_KEYS_AT_ONCE):
                batch = _batch(rows, fields)
                columns = [
                    batch.column(field.name)
                    if field.name in fields.names
                    else pa.nulls(batch.num_rows, field.type)
                    for field in self._row_schema
                ]
                whole = pa.RecordBatch.from_arrays(columns, schema=self._row_schema)
                yield self._told(whole, key_only=True)

    def _told(self, batch: pa.RecordBatch, *, key_only: bool) -> pa.RecordBatch:
        """Return the batch with `KEY_ONLY_HELPER` where keys are read."""
        if not self.keys:
            return batch
        helper = pa.repeat(pa.scalar(key_only), batch.num_rows)
        return pa.RecordBatch.from_arrays([*batch.columns, helper], schema=self.schema)

    @property
    def _checked(self) -> tuple[SelectedColumn, ...]:
        return tuple(column for column in self.selected if column.bad)

    @property
    def _counts_bad_values(self) -> bool:
        return self.on_bad_value == "NULL" and bool(self._checked)

    def _check(self, connection: Connection) -> int:
        """Return the number of rows. Raises `BadValuesFound`."""
        sums = "".join(f", COALESCE(SUM({column.bad}), 0)" for column in self._checked)
        where = f" WHERE {self.wanted}" if self.wanted else ""
        statement = f"SELECT COUNT(*){sums} FROM {self.relation.sql}{where}"  # noqa: S608
        ((counted, *bad),) = fetch(connection, statement)
        total = sum(map(int, bad))
        if total and self.on_bad_value == "FAIL":
            first = self._bad_values(connection)
            raise BadValuesFound.of(first, total, hint="set `on_bad_value: 'NULL'`")
        return int(counted)

    def _bad_values(self, connection: Connection) -> list[BadValue]:
        """Return the first bad values."""
        found: list[BadValue] = []
        key = key_of(connection, self.relation)
        also = f" AND {self.wanted}" if self.wanted else ""
        shown_key = "".join(f", CAST({quoted(name)} AS CHAR)" for name in key)
        for column in self._checked:
            rows = fetch(
                connection,
                f"SELECT CAST({column.shown} AS CHAR){shown_key} FROM {self.relation.sql}"  # noqa: S608
                f" WHERE {column.bad}{also} LIMIT {_SHOWN - len(found)}",
            )
            for value, *place in rows:
                at = ", ".join(f"{name} = {text}" for name, text in zip(key, place, strict=True))
                row = f", row with {at}" if at else ""
                what = f"the value `{value[:_TEXT_SHOWN]}` cannot be loaded: {column.reason}"
                text = f": column `{column.name}`: {what}"
                found.append(BadValue(self.relation.shown, row, text))
            if len(found) == _SHOWN:
                break
        return found

    def _batches(self, connection: Connection) -> Iterator[tuple[int, pa.RecordBatch | None]]:
        """Yield how many rows were read, and those of them that are new."""
        schema, name = self._row_schema, self.relation.shown
        noting = self.noting
        compared = noting.compared if noting is not None else ""
        known = Counter(entries(noting.seen, noting.length)) if noting is not None else Counter()
        where = f" WHERE {self.wanted}" if self.wanted else ""
        select = select_sql(self.relation, self.selected, self._counts_bad_values, compared)
        with _streamed(connection, f"{select}{where}") as cursor:
            while found := fetch_batch(cursor):
                rows = found
                if noting is not None and compared:
                    rows = [row[:-1] for row in found if _is_new(row[-1], noting.length, known)]
                if not rows:
                    yield len(found), None
                    continue
                left_out = len(found) - len(rows)
                for batch in bounded(_batch(rows, schema), name, quoted):
                    yield batch.num_rows + left_out, batch
                    left_out = 0


_CUT = (ER.CUT_VALUE_GROUP_CONCAT, ER.WARN_ALLOWED_PACKET_OVERFLOWED)


def _check_warnings(connection: Connection, name: str) -> None:
    """Raise `LoadFailed` where the server has left something out of the rows of a SELECT, which it
    only warns of."""
    for _, number, text in fetch(connection, "SHOW WARNINGS"):
        if int(number) in _CUT:
            raise LoadFailed(
                f"reading `{name}`: the server has cut a value: {text} (warning {number})",
                hint="raise `max_allowed_packet` on the server",
            )


def fetch_batch(cursor: Any) -> list[Sequence[Any]]:
    """Return the next rows of a cursor that streams them, as many as make a batch, none at the end.
    The rows that come may be wider than those that came."""
    rows: list[Sequence[Any]] = []
    size = 0
    while size < BATCH_BYTES and len(rows) < BATCH_ROWS and (row := cursor.fetchone()) is not None:
        rows.append(row)
        size += _CELL_BYTES * len(row) + sum(map(len, filter(None, row)))
    return rows


@contextmanager
def _streamed(connection: Connection, select: str) -> Iterator[Any]:
    """Return a cursor over the rows of a SELECT."""
    cursor: Any = connection.cursor()
    try:
        cursor.execute(select)
        yield cursor
    finally:
        # PyMySQL would read all rows that are left, even from a connection that is lost.
        if cursor._result is not None:
            cursor._result.unbuffered_active = False


def _batch(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(zip(*rows, strict=True), schema, strict=True)
    arrays = [_values(column, field.name, field.type) for column, field in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def select_sql(
    relation: Relation, selected: Sequence[SelectedColumn], counts_bad: bool, entry: str = ""
) -> str:
    """Return the SELECT of a table: the columns, and behind them with `counts_bad` the number of
    values of a row that are bad, and the expression `entry` where there is one."""
    values = [column.checked for column in selected]
    if counts_bad:
        values.append(" + ".join(column.bad for column in selected if column.bad))
    if entry:
        values.append(entry)
    return f"SELECT {', '.join(values)} FROM {relation.sql}"  # noqa: S608


def _is_new(digits: str, length: int, known: Counter[bytes]) -> bool:
    """Whether a row is new: of equal rows the first ones were seen. `known` counts them down."""
    entry = bytes.fromhex(digits)[:length]
    if known[entry] > 0:
        known[entry] -= 1
        return False
    return True


def entry_sql(key: Sequence[str], compared: Sequence[SelectedColumn]) -> str:
    """Return the entry of a row as `seen` has it, in hexadecimal digits: 8 bytes of the hash of the
    expressions `key`, and 8 of that of the columns `compared`, which make all of it without a key.
    """
    values = [column.expression for column in compared]

    def digest(expressions: Sequence[str]) -> str:
        # Of one length each: what they are joined from cannot be mistaken.
        hashes = ", ".join(f"COALESCE(SHA2({one}, 256), '-')" for one in expressions)
        return f"SHA2(CONCAT_WS(',', {hashes}), 256)"

    digits = 2 * ID_BYTES
    rest = f"SUBSTRING({digest(values)}, {digits + 1}, {digits})"
    return f"CONCAT(LEFT({digest(key or values)}, {digits}), {rest})"


def _values(values: Sequence[Any], name: str, kind: Kind) -> Column:
    """Return the values of a column, which are text or bytes."""
    if kind == pa.binary():
        values = [value.encode() if isinstance(value, str) else value for value in values]
        return pa.array(values, pa.binary())
    try:
        text = pa.array(values, pa.string())
        # Text without a zone is of no zone; as an instant it is in UTC, as the session is.
        plain = pa.timestamp("us") if kind == pa.timestamp("us", "UTC") else kind
        return text.cast(plain).cast(kind)
    except pa.ArrowException as error:
        raise LoadFailed(
            f"column `{name}`: a value was read that is no `{kind}`: {error}",
            hint="run again: the type of the column may have changed",
            retryable=True,
        ) from error
