"""PostgreSQL: connections, the table of types, the SELECT that makes values exact, and snapshots.

psycopg is the driver of everything but the rows themselves.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count as numbers_from
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from lakeload_jobs.contract.errors import InvalidInput, LakeloadError, LoadFailed, Refused
from lakeload_jobs.contract.secrets import Secret, without_secrets
from lakeload_jobs.contract.spec import JdbcInput, RunOptions, TableSpec
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER
from lakeload_jobs.sources.base import BadValue
from lakeload_jobs.sources.databases.columns import (
    CatalogColumn,
    CatalogTable,
    Rule,
    SelectedColumn,
    UniqueIndex,
    keys_of,
)
from lakeload_jobs.sources.databases.engines.postgres.xids import XminRequest
from lakeload_jobs.sources.databases.key_ranges import (
    PLACES,
    Places,
    all_of,
    conditions,
    find_bounds,
    with_nulls,
)
from lakeload_jobs.sources.databases.relation_identity import RelationIdentity
from lakeload_jobs.sources.databases.seen import ID_BYTES, Unseen, check_size
from lakeload_jobs.sources.databases.table_names import table_meant

_MAX_DIGITS = 38
_FIRST_DAY, _END = "0001-01-01", "10000-01-01"
_NOT_A_DATE = "it is not within the years 1 to 9999"
_NOT_A_NUMBER = "it is no finite number"
_UNSEEN_OF_SPLIT = 20_000
_ENTRY, _KNOWN = '"lakeload entry"', '"lakeload known"'
_SEEN, _PLACE = '"lakeload seen"', '"lakeload place"'
"""Columns of subqueries, beside those of the table."""
_TID_RANGES = 140000
"""The first version that reads a range of `ctid` without the rest of the table."""
_SPLIT_BYTES = 16 << 20
"""No split is made for less."""
_COST_OF_RANGES = 2.5
"""All ranges may cost the server so many times what one SELECT of all rows costs it. An index on
narrow rows costs about this much."""
_PLAN_NODES = frozenset(
    (
        *("Seq Scan", "Index Scan", "Index Only Scan", "Bitmap Heap Scan", "Bitmap Index Scan"),
        *("BitmapAnd", "BitmapOr", "Tid Scan", "Tid Range Scan", "Values Scan", "Subquery Scan"),
        *("Nested Loop", "Hash Join", "Merge Join", "Hash", "Materialize", "Memoize", "Result"),
        *("Append", "Merge Append", "Sort", "Incremental Sort", "Aggregate", "Group", "SetOp"),
    )
)
"""Nodes of plans whose rows are the same in every session of a snapshot. Those of other servers and
of functions are not, nor is the choice of LIMIT, DISTINCT ON and the number of a row."""
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


_AS_TEXT = "{0}::text"
_AS_JSON = "pg_catalog.to_json({0})::text"
_PLAIN_NUMBER = (
    "CASE WHEN pg_catalog.strpos({0}::text, '.') > 0"
    " THEN pg_catalog.rtrim(pg_catalog.rtrim({0}::text, '0'), '.') ELSE {0}::text END"
)
"""The text of a number without zeros at its end: `trim_scale` is not in PostgreSQL 12."""


def _within(kind: str) -> str:
    first, end = f"'{_FIRST_DAY}'::{kind}", f"'{_END}'::{kind}"
    return f"({{0}} IS NOT NULL AND NOT ({{0}} >= {first} AND {{0}} < {end}))"


RULES: tuple[Rule, ...] = (
    Rule("bool", "boolean"),
    Rule("int2", "smallint"),
    Rule("int4", "int"),
    Rule("int8", "bigint"),
    Rule("oid", "bigint", "{0}::int8"),
    Rule("float4", "float"),
    Rule("float8", "double"),
    Rule(
        "numeric",
        "decimal(p,s)",
        _AS_TEXT,
        text=True,
        bad="({0} IS NOT NULL AND {0}::text IN ('NaN', 'Infinity', '-Infinity'))",
        reason=_NOT_A_NUMBER,
    ),
    Rule(
        "money",
        "decimal(19,2)",
        "{0}::numeric::text",
        text=True,
        bad="({0} IS NOT NULL AND ({0}::numeric <> pg_catalog.round({0}::numeric, 2)"
        " OR pg_catalog.abs({0}::numeric) >= 1e17))",
        reason="it has more digits than decimal(19,2)",
    ),
    Rule("text", "string"),
    Rule("varchar", "string"),
    Rule("bpchar", "string"),
    Rule("bytea", "binary"),
    Rule("date", "date", bad=_within("date"), reason=_NOT_A_DATE),
    Rule("timestamp", "timestamp_ntz", bad=_within("timestamp"), reason=_NOT_A_DATE),
    Rule("timestamptz", "timestamp", bad=_within("timestamptz"), reason=_NOT_A_DATE),
    Rule("time", "string", "pg_catalog.to_char({0}::interval, 'HH24:MI:SS.US')"),
    Rule("json", "string", _AS_TEXT),
    Rule("jsonb", "string", _AS_TEXT),
    Rule("array", "string", _AS_JSON),
    Rule("composite", "string", _AS_JSON),
    Rule("hstore", "string", _AS_JSON),
)
"""The table of types. `array` and `composite` stand for all such types."""
OTHER = Rule("", "string", _AS_TEXT)
"""What every other type follows: its text, as PostgreSQL writes it."""
_RULES = {rule.type: rule for rule in RULES}

_COLUMNS = """
WITH RECURSIVE {0}, base AS (
  SELECT f.*, t.oid, t.typtype, t.typbasetype, t.typname, t.typcategory, t.typnamespace,
         f.typmod AS modifier
    FROM found f JOIN pg_catalog.pg_type t ON t.oid = f.typid
   UNION ALL
  SELECT b.place, b.name, b.required, b.typid, b.typmod, b.comment,
         t.oid, t.typtype, t.typbasetype, t.typname, t.typcategory, t.typnamespace,
         CASE WHEN d.typtypmod >= 0 THEN d.typtypmod ELSE b.modifier END
    FROM base b JOIN pg_catalog.pg_type d ON d.oid = b.oid
    JOIN pg_catalog.pg_type t ON t.oid = d.typbasetype
   WHERE b.typtype = 'd'
)
SELECT name, required, typname::text, typtype::text, typcategory::text, modifier,
       typnamespace = 'pg_catalog'::pg_catalog.regnamespace,
       pg_catalog.format_type(typid, typmod), comment
  FROM base WHERE typtype <> 'd' ORDER BY place
"""
_COLUMNS_OF_TABLE = _COLUMNS.format("""
found AS (
  SELECT attnum::int8 AS place, attname::text AS name, attnotnull AS required, atttypid AS typid,
         atttypmod AS typmod, pg_catalog.col_description(attrelid, attnum) AS comment
    FROM pg_catalog.pg_attribute
   WHERE attrelid = %s::oid AND attnum > 0 AND NOT attisdropped
)""")
_COLUMNS_OF_QUERY = _COLUMNS.format("""
found AS (
  SELECT place, name, false AS required, typid, typmod, NULL::text AS comment
    FROM ROWS FROM (pg_catalog.unnest(%s::text[]), pg_catalog.unnest(%s::oid[]),
                    pg_catalog.unnest(%s::int4[])) WITH ORDINALITY q(name, typid, typmod, place)
)""")


KINDS = {
    "r": "table",
    "p": "partitioned table",
    "m": "materialized view",
    "v": "view",
    "f": "foreign table",
}
"""The kinds of relations that are read, by `pg_class.relkind`."""
_QUERY = "query"
_WITH_PAGES = ("r", "p", "m")
"""Kinds whose rows are in pages of this server's."""


@dataclass(frozen=True)
class Relation:
    """What rows are read from: a table or view, by its name in messages, or a query.

    `kind` is that of `pg_class.relkind`. `pages` are those of the table, or of the largest one of
    its partitions; 0 where rows are not in pages that can be read one by one.
    """

    name: str
    sql: str
    kind: str
    oid: int = 0
    estimated_rows: int | None = None
    bytes: int = 0
    pages: int = 0
    warnings: tuple[str, ...] = ()
    comment: str = ""
    identity: RelationIdentity | None = None
    """Of a table: other relations have no rows of their own."""

    @property
    def shown(self) -> str:
        """The name in messages."""
        return self.name


def quoted(name: str) -> str:
    """Return an identifier as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


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


def literal(text: str) -> str:
    """Return text as a literal of SQL, whatever the settings of the session are."""
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f" E'{escaped}'" if "\\" in text else f"'{escaped}'"


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


def safe_text(text: str, password: Secret | None) -> str:
    """Return a driver's message on one line, without the password."""
    if password is not None:
        text = without_secrets(text, [password.reveal()])
    return " ".join(text.split())[:300]


POOL_HINT = (
    "set `pool_mode = session` in PgBouncer for this database or user, or connect to the server "
    "itself"
)
HINTS = {
    "42501": (
        "grant what is missing: `GRANT USAGE ON SCHEMA …` and `GRANT SELECT ON …` to the user; "
        "where a row-level security policy is named, run `ALTER ROLE … SET row_security = on`"
    ),
    "42P01": "the table was dropped or renamed: run again",
    "42703": "the columns of the table have changed: run again",
    "53100": "free space on the disk of the server, and run again",
    "53200": "raise the memory of the server, or run again when it is less busy",
    "53400": "raise `temp_file_limit` for this user",
    "53300": "lower `max_connections` in `source`, or raise it on the server",
    "55000": "fill a materialized view that has no rows yet: `REFRESH MATERIALIZED VIEW …`",
    "55P03": "another session holds a lock on the table: run again when it has ended",
    "57014": "set a higher `statement_timeout` in `source`, in seconds",
    "57P05": "raise `idle_session_timeout` for this user",
    "25P03": "raise `idle_in_transaction_session_timeout` for this user",
    "40001": "on a read replica raise `max_standby_streaming_delay`, or read from the primary",
    "42601": "check the query: it is one SELECT",
    "26000": POOL_HINT,
    "22012": "leave the column out with `columns.exclude`, or fix the view",
}
"""What to do, by SQLSTATE (docs/error-codes.md)."""
_RETRYABLE = ("08", "40", "53", "57", "55006", "55P03")
"""SQLSTATEs, or classes of them, that another attempt may get around."""
_LOST = "the connection to PostgreSQL was lost"
_ENDS = ("57P01", "57P02", "57P03")
"""SQLSTATEs with which a server that stops ends its sessions."""
LOST_HINT = "run again: nothing was committed"


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


def is_lost(state: str | None) -> bool:
    """Whether an error of this SQLSTATE is the end of the connection; without one it is."""
    return not state or state.startswith(("\0", "08")) or state in _ENDS


def failure(doing: str, state: str | None, text: str) -> LoadFailed:
    """Return the failure of a statement."""
    if is_lost(state):
        return LoadFailed(f"{doing}: {_LOST}", hint=LOST_HINT, retryable=True)
    assert state  # noqa: S101
    said = safe_text(text, None)
    return LoadFailed(
        f"{doing}: {said} (SQLSTATE {state})",
        hint=HINTS.get(state, LOST_HINT if state.startswith(_RETRYABLE) else None),
        retryable=state.startswith(_RETRYABLE),
    )


_RELATION = """
SELECT c.oid::int8, c.relkind::text, tree.rows, tree.bytes, tree.pages, tree.files,
       pg_catalog.row_security_active(c.oid), pg_catalog.obj_description(c.oid, 'pg_class')
  FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  CROSS JOIN LATERAL (
    SELECT pg_catalog.sum(CASE WHEN l.reltuples >= 0 THEN l.reltuples::float8 END) AS rows,
           -- Long values are in a table of their own, if there is one.
           COALESCE(pg_catalog.sum(pg_catalog.pg_relation_size(l.oid)
             + COALESCE(pg_catalog.pg_relation_size(l.reltoastrelid), 0)), 0)::int8 AS bytes,
           pg_catalog.array_agg(l.relfilenode::text) FILTER (WHERE l.relkind = 'r') AS files,
           CASE WHEN pg_catalog.bool_and(COALESCE(a.amname = 'heap', false))
                THEN pg_catalog.max(pg_catalog.pg_relation_size(l.oid))
                     / pg_catalog.current_setting('block_size')::int8
           END AS pages
      FROM (SELECT c.oid WHERE c.relkind <> 'p'
             UNION ALL
            SELECT t.relid::oid FROM pg_catalog.pg_partition_tree(c.oid) t
             WHERE c.relkind = 'p' AND t.isleaf) leaf
      JOIN pg_catalog.pg_class l ON l.oid = leaf.oid
      LEFT JOIN pg_catalog.pg_am a ON a.oid = l.relam
  ) tree
 WHERE n.nspname = %s AND c.relname = %s AND c.relkind = ANY(%s)
"""


def find_relation(connection: psycopg.Connection[Any], read: JdbcInput) -> Relation:
    """Return what is read. Raises `LoadFailed` where there is no table or view of that name."""
    if read.query is not None:
        # The line break ends a comment at the end of the query.
        text = read.query.strip().rstrip(";")
        return Relation(_QUERY, f"({text}\n) AS {quoted(_QUERY)}", _QUERY)
    name = f"{read.schema}.{read.table}"
    with failures(read, f"finding the table `{name}`"):
        row = connection.execute(_RELATION, (read.schema, read.table, list(KINDS))).fetchone()
        if row is not None:
            oid, kind, rows, size, pages, files, limited, comment = row
            return Relation(
                name,
                f"{quoted(read.schema)}.{quoted(read.table)}",
                kind,
                oid,
                None if rows is None else int(rows),
                size or 0,
                pages or 0,
                (f"row-level security of `{name}` decides which rows the user sees",)
                if limited
                else (),
                comment or "",
                RelationIdentity(str(oid), frozenset(files or ())) if kind in "rp" else None,
            )
    tables = list_tables(connection, read, None)
    raise LoadFailed(
        f"the database `{read.name}` has no table `{name}`",
        hint=table_meant(read.schema, read.table, tables)
        or (
            "write the names as they are in the database, upper and lower case included"
            if any(one.schema == read.schema for one in tables)
            else f"there is no schema `{read.schema}` with tables; check `table`"
        ),
    )


def columns(
    connection: psycopg.Connection[Any], relation: Relation, read: JdbcInput
) -> tuple[CatalogColumn, ...]:
    """Return the columns, as the catalog describes them, in their order.

    Raises `LoadFailed` for a query that the server rejects or with two columns of one name.
    """
    with failures(read, f"reading the columns of `{relation.name}`"):
        if relation.kind == _QUERY:
            numbers = _result_columns(connection, relation)
            rows = connection.execute(_COLUMNS_OF_QUERY, numbers).fetchall()
        else:
            rows = connection.execute(_COLUMNS_OF_TABLE, (relation.oid,)).fetchall()
    return tuple(
        _column(name, not_null, kind, group, category, modifier, own, declared, comment)
        for name, not_null, kind, group, category, modifier, own, declared, comment in rows
    )


def _result_columns(
    connection: psycopg.Connection[Any], relation: Relation
) -> tuple[list[str], list[int], list[int]]:
    """Return the names of the columns of a query, and the numbers of their types."""
    cursor = connection.execute(f"SELECT * FROM {relation.sql} LIMIT 0".encode())  # noqa: S608
    result = cursor.pgresult
    assert result is not None  # noqa: S101
    names = [column.name for column in cursor.description or ()]
    if twins := sorted({name for name in names if names.count(name) > 1}):
        raise LoadFailed(
            f"the query has two columns named `{twins[0]}`",
            hint=f"give one of them another name: `AS {free_name(twins[0], names)}`",
        )
    places = range(result.nfields)
    return names, [result.ftype(n) for n in places], [result.fmod(n) for n in places]


def free_name(name: str, names: Collection[str]) -> str:
    """Return a name for a column like `name` that SQL takes without quotes: `?column?` has none."""
    plain = re.sub(r"\W+", "_", name).strip("_")
    plain = plain if plain and not plain[0].isdigit() else f"column_{plain}".rstrip("_")
    return next(new for n in numbers_from(2) if (new := f"{plain}_{n}") not in names)


def _column(
    name: str,
    not_null: bool,
    kind: str,
    group: str,
    category: str,
    modifier: int,
    own: bool,
    declared: str,
    comment: str | None,
) -> CatalogColumn:
    precision = scale = None
    if category == "A" and kind.startswith("_"):
        kind = "array"
    elif group == "c":
        kind = "composite"
    elif kind == "hstore":
        pass
    elif not own:
        # A type of an extension may be called as one of PostgreSQL's own.
        kind = f"other.{kind}"
    elif kind == "numeric" and modifier >= 4:
        # The scale has 11 bits, and may be below zero.
        precision, scale = (modifier - 4) >> 16 & 0xFFFF, ((modifier - 4 & 0x7FF) ^ 1024) - 1024
    return CatalogColumn(name, kind, declared, precision, scale, not not_null, comment or "")


def select(found: Sequence[CatalogColumn], key: Collection[str] = ()) -> tuple[SelectedColumn, ...]:
    """Return how columns are selected, each as its type's rule says. Those of the key have one text
    for each value: as numbers 1.0 and 1.00 are the same."""
    return tuple(_selected(column, column.name in key) for column in found)


def _selected(column: CatalogColumn, of_key: bool) -> SelectedColumn:
    rule, name = _RULES.get(column.type, OTHER), quoted(column.name)
    target, bad, reason = rule.target, rule.bad, rule.reason
    expression = rule.expression
    if column.type == "numeric":
        if of_key and column.scale is None:
            expression = _PLAIN_NUMBER
        target = _decimal(column.precision, column.scale)
        if target == "string":
            # As text a value is what it is, NaN too.
            bad = reason = ""
    return SelectedColumn(
        name=column.name,
        expression=expression.format(name),
        type=target,
        carried="TEXT" if rule.text and target != "string" else "VALUE",
        bad=bad.format(name),
        reason=reason,
        shown=_AS_TEXT.format(name),
    )


def _decimal(precision: int | None, scale: int | None) -> str:
    """Return the decimal that holds all numbers of a type exactly, `string` where none does."""
    if precision is None or scale is None:
        return "string"
    # `numeric(5,-2)` has 7 digits before the point, `numeric(3,5)` begins at 0.00001.
    digits, places = (precision - scale, 0) if scale < 0 else (max(precision, scale), scale)
    return f"decimal({digits},{places})" if digits <= _MAX_DIGITS else "string"


@dataclass(frozen=True)
class Split:
    """A part of a table: a condition, '' for all of it, and how many rows it has.

    `among` is a query with the columns that are read, in place of the table; '' for the table.
    """

    condition: str
    rows: int
    by_page: bool = False
    """Whether nothing but their pages chooses the rows, so that they can be read in that order."""
    among: str = ""


@dataclass(frozen=True)
class ByKey:
    """How rows that are in no pages of the table may be read in parts: `columns` are those whose
    ranges an index may serve, the preferred one first; `selected` are those that are read."""

    columns: tuple[CatalogColumn, ...]
    selected: tuple[SelectedColumn, ...]


def select_sql(
    relation: Relation,
    selected: Sequence[SelectedColumn],
    split: Split,
    *,
    by_place: bool = False,
) -> str:
    """Return the SELECT of a split: the columns, and behind them the number of values of a row
    that are bad, where some can be. `by_place`: their names are `c0`, `c1` and so on."""
    names = [column.name for column in selected]
    values = [column.checked for column in selected]
    if bad := [f"{column.bad}::int4" for column in selected if column.bad]:
        names.append(BAD_VALUES_HELPER)
        values.append(" + ".join(bad))
    if by_place:
        names = [f"c{place}" for place in range(len(names))]
    values = [f"{value} AS {quoted(name)}" for value, name in zip(values, names, strict=True)]
    where = f" WHERE {split.condition}" if split.condition else ""
    return f"SELECT {', '.join(values)} FROM {split.among or relation.sql}{where}"  # noqa: S608


def entry_sql(key: Sequence[str], compared: Sequence[SelectedColumn]) -> str:
    """Return the entry of a row as `seen` has it: 8 bytes of the hash of the expressions `key`, and
    8 of that of the columns `compared`, which make all of it without a key."""
    values = [column.expression for column in compared]

    def digest(expressions: Sequence[str], first: int) -> str:
        # The text of a record tells nulls, empty texts and where a value ends apart.
        row = f"ROW({', '.join(expressions)})::text"
        hashed = f"pg_catalog.sha256(pg_catalog.convert_to({row}, 'UTF8'))"
        return f"pg_catalog.substring({hashed}, {first}, {ID_BYTES})"

    return f"({digest(key or values, 1)} || {digest(values, ID_BYTES + 1)})"


def unseen_splits(
    relation: Relation,
    selected: Sequence[SelectedColumn],
    window: str,
    entry: str,
    found: Sequence[Unseen],
) -> tuple[Split, ...]:
    """Return the rows of a window that were not seen. Of equal rows so many are left out as were
    seen, whichever."""
    columns = ", ".join(quoted(column.name) for column in selected)
    splits = []
    for first in range(0, len(found), _UNSEEN_OF_SPLIT):
        part = found[first : first + _UNSEEN_OF_SPLIT]
        entries = ",".join(one.entry.hex() for one in part)
        seen = ",".join(str(one.seen) for one in part)
        prefix = f"pg_catalog.substring({entry}, 1, {len(part[0].entry)})"
        rows = (
            f"SELECT {columns}, pg_catalog.encode({prefix}, 'hex') AS {_ENTRY}"  # noqa: S608
            f" FROM {relation.sql} WHERE {window}"
        )
        known = (
            f"ROWS FROM (pg_catalog.unnest('{{{entries}}}'::text[]),"
            f" pg_catalog.unnest('{{{seen}}}'::int8[])) AS k({_KNOWN}, {_SEEN})"
        )
        numbered = (
            f"SELECT *, pg_catalog.row_number() OVER (PARTITION BY {_ENTRY}) AS {_PLACE}"  # noqa: S608
            f" FROM ({rows}) AS r JOIN {known} ON {_KNOWN} = {_ENTRY}"
        )
        count = sum(one.new for one in part)
        splits.append(Split(f"{_PLACE} > {_SEEN}", count, among=f"({numbered}) AS n"))
    return tuple(splits)


def check_select(
    connection: psycopg.Connection[Any],
    relation: Relation,
    selected: Sequence[SelectedColumn],
    read: JdbcInput,
) -> None:
    """Raise `LoadFailed` where the user may not read the columns, without reading a row. The hint
    names the missing rights."""
    doing = f"reading `{relation.name}`"
    statement = select_sql(relation, selected, Split("", 0))
    with failures(read, doing):
        try:
            with connection.transaction():
                connection.execute(f"{statement} LIMIT 0".encode())
        except psycopg.errors.InsufficientPrivilege as error:
            if relation.kind == _QUERY:
                raise
            said = failure(doing, error.sqlstate, str(error)).message
            raise LoadFailed(said, hint=_way_in(connection, relation, selected, read)) from None
        except psycopg.errors.ObjectNotInPrerequisiteState as error:
            if relation.kind != "m":
                raise
            said = failure(doing, error.sqlstate, str(error)).message
            refresh = f"REFRESH MATERIALIZED VIEW {relation.sql}"
            raise LoadFailed(said, hint=f"let its owner run `{refresh}`") from None


def _way_in(
    connection: psycopg.Connection[Any],
    relation: Relation,
    selected: Sequence[SelectedColumn],
    read: JdbcInput,
) -> str:
    """Return what lets the user read a table that it may not read."""
    row = connection.execute(
        "SELECT current_user::text, pg_catalog.has_schema_privilege(%s, 'USAGE'),"
        " pg_catalog.has_any_column_privilege(%s::oid, 'SELECT')"
        " AND pg_catalog.row_security_active(%s::oid)"
        " AND pg_catalog.current_setting('row_security') = 'off'",
        (read.schema, relation.oid, relation.oid),
    ).fetchone()
    assert row is not None  # noqa: S101
    user, schema = quoted(row[0]), quoted(read.schema)
    missing = _unreadable(connection, relation, selected)
    if row[2] and row[1] and not missing:
        return (
            f"let an administrator run `ALTER ROLE {user} SET row_security = on`, with which the "
            f"rows that its policies show are loaded, or `ALTER ROLE {user} BYPASSRLS` for all rows"
        )
    usage = "" if row[1] else f"GRANT USAGE ON SCHEMA {schema} TO {user}; "
    some = f" ({', '.join(map(quoted, missing))})" if missing else ""
    return f"let its owner run `{usage}GRANT SELECT{some} ON {relation.sql} TO {user}`"


def _unreadable(
    connection: psycopg.Connection[Any], relation: Relation, selected: Sequence[SelectedColumn]
) -> list[str]:
    """Return the columns that the user may not read; none where that is all of them."""
    rows = connection.execute(
        "SELECT attname::text FROM pg_catalog.pg_attribute WHERE attrelid = %s::oid AND attnum > 0"
        " AND NOT attisdropped AND pg_catalog.has_column_privilege(attrelid, attnum, 'SELECT')",
        (relation.oid,),
    )
    readable = {name for (name,) in rows}
    return [column.name for column in selected if column.name not in readable] if readable else []


def describe_session(connection: psycopg.Connection[Any]) -> str:
    """Return the version of the server and how the connection is encrypted."""
    row = connection.execute(
        "SELECT version FROM pg_catalog.pg_stat_ssl WHERE pid = pg_catalog.pg_backend_pid() AND ssl"
    ).fetchone()
    version = connection.info.parameter_status("server_version") or ""
    return f"PostgreSQL {version.split()[0]}, {row[0] if row else 'without TLS'}"


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


_MAY_READ_SERVER = (
    "SELECT pg_catalog.bool_and(pg_catalog.has_function_privilege(f, 'EXECUTE'))"
    " FROM (VALUES ('pg_catalog.pg_control_system()'), ('pg_catalog.pg_control_checkpoint()')) v(f)"
)
_SERVER = """
SELECT s.system_identifier::text || '/' || CASE WHEN pg_catalog.pg_is_in_recovery()
         THEN c.timeline_id::text
         ELSE ('x' || pg_catalog.left(
           pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8))::bit(32)::int4::text END
  FROM pg_catalog.pg_control_system() s, pg_catalog.pg_control_checkpoint() c
"""


def xmin_request(relation: Relation, table: TableSpec, options: RunOptions) -> XminRequest:
    """Return what a load of a table by `xmin` reads."""
    appends = table.mode == "APPEND"
    return XminRequest(
        relation.oid, relation.kind, relation.sql, relation.name, appends, options.reload,
        relation.identity,
    )  # fmt: skip


def server_of(connection: psycopg.Connection[Any]) -> str:
    """Return the system identifier of the server and its timeline, '' where the user may not read
    them."""
    try:
        # A savepoint: an error must not end the transaction.
        with connection.transaction():
            ((may,),) = connection.execute(_MAY_READ_SERVER).fetchall()
            return str(connection.execute(_SERVER).fetchall()[0][0]) if may else ""
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.FeatureNotSupported):
        return ""


class Snapshot:
    """A transaction with an exported snapshot, in which other sessions read the same rows: one of
    its own, or the one that another session has `exported`.

    The server drops the snapshot when the transaction that has exported it ends.
    """

    def __init__(
        self, read: JdbcInput, password: Secret | None, exported: str | None = None
    ) -> None:
        self._read = read
        self.connection = connect(read, password)
        try:
            with failures(read, "exporting a snapshot"):
                self.connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                self.id = self._export() if exported is None else self._import(exported)
                # A pool may have given the transaction a session that has none of them.
                self.connection.execute(session_settings(read).encode())
        except BaseException:
            self.close()
            raise

    def _export(self) -> str:
        row = self.connection.execute("SELECT pg_catalog.pg_export_snapshot()").fetchone()
        assert row is not None  # noqa: S101
        return str(row[0])

    def _import(self, exported: str) -> str:
        try:
            self.connection.execute(f"SET TRANSACTION SNAPSHOT {literal(exported)}".encode())
        except (psycopg.errors.InvalidParameterValue, psycopg.errors.UndefinedObject):
            raise LoadFailed(
                "the connection that held the snapshot of all tables has ended",
                hint=LOST_HINT,
                retryable=True,
            ) from None
        return exported

    def fetch(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a SELECT in the transaction and return its rows."""
        return self.connection.execute(statement.encode()).fetchall()

    def splits(
        self, relation: Relation, most: int, wanted: str = "", by_key: ByKey | None = None
    ) -> tuple[Split, ...]:
        """Return at most so many parts of a table, of about the same size, with their rows.

        `wanted` is a condition that all rows meet, '' for none. Few rows are one part, which an
        index can serve. What has no pages is one part too, or ranges of a key.

        From here on the transaction holds a lock that every reader holds: other sessions neither
        truncate nor rewrite the table.
        """
        doing = f"counting the rows of `{relation.name}`"
        with failures(self._read, doing):
            if not self._has_ranges_of_pages(relation):
                parts = self._splits_by_key(relation, most, wanted, by_key) if by_key else ()
                return parts or (self._counted(relation, wanted),)
            whole = self._counted(relation, wanted) if wanted else None
            conditions = self._conditions(relation, most, whole)
            if whole is not None and len(conditions) == 1:
                return (whole,)
            parts = tuple(self._counted(relation, all_of((one, wanted))) for one in conditions)
            return tuple(replace(part, by_page=not wanted) for part in parts)

    def _has_ranges_of_pages(self, relation: Relation) -> bool:
        return relation.pages > 0 and self.connection.info.server_version >= _TID_RANGES

    def _counted(self, relation: Relation, condition: str) -> Split:
        where = f" WHERE {condition}" if condition else ""
        ((rows,),) = self.fetch(f"SELECT pg_catalog.count(*) FROM {relation.sql}{where}")  # noqa: S608
        return Split(condition, rows, by_page=relation.pages > 0 and not condition)

    def _splits_by_key(
        self, relation: Relation, most: int, wanted: str, by_key: ByKey
    ) -> tuple[Split, ...]:
        """Return ranges of a key with their rows, which one SELECT of all rows has counted; none
        where one session reads all rows as well as several."""
        key, ranges = self._ranges(relation, most, wanted, by_key)
        if not ranges:
            return ()
        count = "pg_catalog.count(*) FILTER (WHERE {0})".format
        counts = ", ".join(map(count, (*ranges, f"{key} IS NULL")))
        where = f" WHERE {wanted}" if wanted else ""
        ((whole, *rows, nulls),) = self.fetch(
            f"SELECT pg_catalog.count(*), {counts} FROM {relation.sql}{where}"  # noqa: S608
        )
        found = [(one, count) for one, count in zip(ranges, rows, strict=True) if count]
        if len(found) < 2 or sum(rows) + nulls != whole:
            return (Split(wanted, whole),)
        if nulls:
            condition, count_of_first = found[0]
            found[0] = with_nulls(key, condition), count_of_first + nulls
        return tuple(Split(all_of((one, wanted)), count) for one, count in found)

    def _ranges(
        self, relation: Relation, most: int, wanted: str, by_key: ByKey
    ) -> tuple[str, tuple[str, ...]]:
        """Return the SQL of a key and the conditions of its ranges, or none."""
        # No statement of the load itself has this setting.
        with self.connection.transaction(force_rollback=True):
            self.connection.execute("SET LOCAL max_parallel_workers_per_gather = 0")
            whole = self._plan(relation, by_key.selected, wanted)
            rows = int(whole["Plan Rows"])
            count = min(most, rows * int(whole["Plan Width"]) // _SPLIT_BYTES)
            for column in by_key.columns if count > 1 else ():
                places, key = PLACES.get(column.type), quoted(column.name)
                if places is None:
                    continue
                below = partial(self._rows_below, relation, wanted, key, places)
                bounds = find_bounds(places, count, rows, below)
                ranges = conditions(key, [literal(places.text(place)) for place in bounds])
                plans = [
                    self._plan(relation, by_key.selected, all_of((one, wanted))) for one in ranges
                ]
                if all(map(_is_stable, plans)) and _is_cheap(plans, whole):
                    return key, ranges
        return "", ()

    def _rows_below(
        self, relation: Relation, wanted: str, key: str, places: Places, place: int
    ) -> int:
        condition = all_of((f"{key} < {literal(places.text(place))}", wanted))
        return int(self._plan(relation, (), condition)["Plan Rows"])

    def _plan(
        self, relation: Relation, selected: Sequence[SelectedColumn], condition: str
    ) -> dict[str, Any]:
        select = select_sql(relation, selected, Split(condition, 0))
        ((found,),) = self.fetch(f"EXPLAIN (FORMAT JSON) {select}")
        plan: dict[str, Any] = found[0]["Plan"]
        return plan

    def _conditions(self, relation: Relation, most: int, whole: Split | None) -> list[str]:
        size = relation.bytes
        if whole is not None and relation.estimated_rows:
            size = min(size, size * whole.rows // relation.estimated_rows)
        count = min(most, size // _SPLIT_BYTES, relation.pages)
        if count < 2:
            return [""]
        # Of a partitioned table each partition is read in the same ranges of its own pages.
        bounds = [relation.pages * number // count for number in range(1, count)]
        starts = [f"ctid >= '({page},0)'::tid" for page in bounds]
        ends = [f"ctid < '({page},0)'::tid" for page in bounds]
        inner = (f"{start} AND {end}" for start, end in zip(starts, ends[1:], strict=False))
        # The last one has no end: rows are added behind it.
        return [ends[0], *inner, starts[-1]]

    def entries(self, relation: Relation, entry: str, window: str, *, lookback: bool) -> bytes:
        """Return the entries of the rows of a window. Raises `LoadFailed` where they are too many
        to be kept."""
        of_window = f"{relation.sql} WHERE {window}"
        doing = f"comparing the rows of `{relation.name}` with those that were loaded"
        with failures(self._read, doing):
            rows = self.connection.execute(
                f"SELECT pg_catalog.count(*) FROM {of_window}".encode()  # noqa: S608
            ).fetchone()
            check_size(rows[0] if rows else 0, relation.name, lookback=lookback)
            found = self.connection.execute(
                f"SELECT pg_catalog.string_agg({entry}, '') FROM {of_window}".encode(),  # noqa: S608
                binary=True,
            ).fetchone()
        return bytes(found[0] or b"") if found else b""

    def check(self) -> None:
        """Raise `LoadFailed`, retryable, where the transaction is over."""
        with failures(self._read, "holding the snapshot"):
            self.connection.execute("SELECT 1")

    def close(self) -> None:
        """End the transaction. Raises nothing."""
        self.connection.close()


def _is_cheap(ranges: Sequence[dict[str, Any]], whole: dict[str, Any]) -> bool:
    """Whether an index finds the rows of each range: else it costs as much as all rows."""
    costs = [float(plan["Total Cost"]) for plan in ranges]
    most = float(whole["Total Cost"])
    return max(costs) < most and sum(costs) <= most * _COST_OF_RANGES


def _is_stable(plan: dict[str, Any]) -> bool:
    """Whether a plan finds the rows of a range in the same way in every session. A condition that
    the planner has not moved into a subquery is above one whose key may differ."""
    kind = plan["Node Type"]
    if kind not in _PLAN_NODES or (kind == "Subquery Scan" and "Filter" in plan):
        return False
    return all(map(_is_stable, plan.get("Plans", ())))


_UNIQUE = """
SELECT pg_catalog.json_agg(pg_catalog.json_build_array(u.name, u.columns, u.first))
  FROM (
    SELECT x.relname AS name, i.indisprimary AS first,
           pg_catalog.array_agg(a.attname ORDER BY k.place) AS columns,
           pg_catalog.bool_and(a.attnotnull) AS required
      FROM pg_catalog.pg_index i
      JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid
     CROSS JOIN LATERAL pg_catalog.unnest(i.indkey::int2[]) WITH ORDINALITY k(number, place)
      JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
     WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid
       AND i.indpred IS NULL AND i.indexprs IS NULL AND k.place <= i.indnkeyatts
     GROUP BY i.indexrelid, x.relname, i.indisprimary
  ) u
 WHERE u.required AND NOT (c.relkind = 'r' AND EXISTS (
       SELECT FROM pg_catalog.pg_inherits h WHERE h.inhparent = c.oid))
"""
"""The unique indexes of `c`. Those of a table do not hold for rows of tables that inherit it."""
_TABLES = f"""
SELECT n.nspname::text, c.relname::text,
       CASE WHEN NOT EXISTS (SELECT FROM pg_catalog.pg_inherits h WHERE h.inhrelid = c.oid)
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
                        WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
                          AND d.objid = c.oid AND d.deptype = 'e')
            THEN c.relkind::text ELSE '' END,
       ({_UNIQUE})
  FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind = ANY(%s) AND c.relpersistence <> 't'
   AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
   AND (%s::text[] IS NULL OR n.nspname = ANY(%s::text[]))
 ORDER BY 1, 2
"""  # noqa: S608 - all constants


_TIMESTAMPS = """
SELECT n.nspname::text, c.relname::text, pg_catalog.array_agg(a.attname::text ORDER BY a.attnum)
  FROM pg_catalog.pg_attribute a
  JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
 WHERE a.attnum > 0 AND a.attnotnull AND NOT a.attisdropped AND t.typname = ANY(%s)
   AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
 GROUP BY 1, 2
"""


_SIZES = b"""
SELECT n.nspname::text, c.relname::text, pg_catalog.pg_table_size(c.oid)
  FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind = 'r' AND NOT c.relhassubclass
   AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
"""


def list_tables(
    connection: psycopg.Connection[Any], read: JdbcInput, schemas: Sequence[str] | None
) -> tuple[CatalogTable, ...]:
    """Return the tables and views of some schemas, or of all, by their names."""
    given = None if schemas is None else list(schemas)
    with failures(read, "listing the tables"):
        rows = connection.execute(_TABLES, (list(KINDS), given, given)).fetchall()
    return tuple(
        CatalogTable(schema, name, KINDS.get(kind, ""), _keys(found))
        for schema, name, kind, found in rows
    )


def list_changed(
    connection: psycopg.Connection[Any], read: JdbcInput
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the timestamps that are not null of each table: one may say when a row changed."""
    with failures(read, "listing the columns"):
        rows = connection.execute(_TIMESTAMPS, (["timestamp", "timestamptz"],)).fetchall()
    return {(schema, table): tuple(names) for schema, table, names in rows}


def list_sizes(connection: psycopg.Connection[Any], read: JdbcInput) -> dict[tuple[str, str], int]:
    """Return the bytes of each table that has its rows itself."""
    with failures(read, "listing the sizes of tables"):
        rows = connection.execute(_SIZES).fetchall()
    return {(schema, table): size for schema, table, size in rows if size is not None}


def _keys(found: Sequence[Sequence[Any]] | None) -> tuple[tuple[str, ...], ...]:
    return keys_of(UniqueIndex(name, tuple(names), first) for name, names, first in found or ())


def key_of(connection: psycopg.Connection[Any], relation: Relation) -> tuple[str, ...]:
    """Return the columns of the preferred key; none where the table has none."""
    statement = f"SELECT ({_UNIQUE}) FROM pg_catalog.pg_class c WHERE c.oid = %s::oid"  # noqa: S608
    row = connection.execute(statement.encode(), (relation.oid,)).fetchone()
    keys = _keys(row[0]) if row else ()
    return keys[0] if keys else ()


def estimate_rows(
    connection: psycopg.Connection[Any], relation: Relation, wanted: str
) -> int | None:
    """Return how many rows meet a condition, by the statistics of the database."""
    select = f"EXPLAIN (FORMAT JSON) SELECT 1 FROM {relation.sql} WHERE {wanted}"  # noqa: S608
    row = connection.execute(select.encode()).fetchone()
    return None if row is None else int(row[0][0]["Plan"]["Plan Rows"])


_SHOWN = 10
_TEXT_SHOWN = 60


def bad_values(
    snapshot: Snapshot,
    relation: Relation,
    selected: Sequence[SelectedColumn],
    read: JdbcInput,
    wanted: str = "",
) -> tuple[tuple[BadValue, ...], int]:
    """Return the first bad values of the rows that meet the condition `wanted`, ''
    for all, and how many there are."""
    checked = [column for column in selected if column.bad]
    if not checked:
        return (), 0
    connection = snapshot.connection
    found: list[BadValue] = []
    with failures(read, f"counting bad values of `{relation.name}`"):
        key = key_of(connection, relation)
        total = " + ".join(f"pg_catalog.count(*) FILTER (WHERE {c.bad})" for c in checked)
        where = f" WHERE {wanted}" if wanted else ""
        ((count,),) = snapshot.fetch(f"SELECT {total} FROM {relation.sql}{where}")  # noqa: S608
        names = key or (("ctid",) if relation.kind in _WITH_PAGES else ())
        place = "".join(f", {quoted(name)}::text" for name in names)
        for column in checked:
            if len(found) == _SHOWN:
                break
            rows = connection.execute(
                f"SELECT {column.shown}{place} FROM {relation.sql}"  # noqa: S608
                f" WHERE {column.bad}{f' AND {wanted}' if wanted else ''}"
                f" LIMIT {_SHOWN - len(found)}".encode()
            )
            for value, *texts_of_key in rows:
                at = zip(names, texts_of_key, strict=True)
                where = ", ".join(f"{name} = {text}" for name, text in at)
                what = f"the value `{value[:_TEXT_SHOWN]}` cannot be loaded: {column.reason}"
                row = where and f", row with {where}"
                found.append(BadValue(relation.name, row, f": column `{column.name}`: {what}"))
    return tuple(found), int(count)


def check_encoding(connection: psycopg.Connection[Any], read: JdbcInput) -> None:
    """Raise `InvalidInput` for a database that does not know what its text means."""
    if connection.info.parameter_status("server_encoding") == "SQL_ASCII":
        raise InvalidInput(
            f"the database `{read.name}` has the encoding SQL_ASCII, so its text may be anything",
            hint="convert the database to UTF8",
        )
