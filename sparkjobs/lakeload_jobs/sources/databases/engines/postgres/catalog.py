"""Catalog of PostgreSQL: tables, columns and keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import count as numbers_from
from typing import Any

import psycopg

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.contract.spec import JdbcInput, RunOptions, TableSpec
from lakeload_jobs.contract.state import Bookmark
from lakeload_jobs.sources.base import BadValue
from lakeload_jobs.sources.databases.columns import (
    CatalogColumn,
    CatalogTable,
    Fetch,
    SelectedColumn,
    UniqueIndex,
    bad_value,
    keys_of,
    query_sql,
)
from lakeload_jobs.sources.databases.engines.postgres.connection import (
    check_pool,
    connect,
    failures,
)
from lakeload_jobs.sources.databases.engines.postgres.failures import failure
from lakeload_jobs.sources.databases.engines.postgres.snapshot import (
    ExportedSnapshot,
    PostgresPart,
    PostgresRelation,
    select_sql,
)
from lakeload_jobs.sources.databases.engines.postgres.sql import quoted
from lakeload_jobs.sources.databases.engines.postgres.types import select as select
from lakeload_jobs.sources.databases.engines.postgres.xids import (
    XminRequest,
    XminWindow,
    find_xmin_window,
)
from lakeload_jobs.sources.databases.relation_identity import RelationIdentity
from lakeload_jobs.sources.databases.table_names import table_meant

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


def find_relation(connection: psycopg.Connection[Any], read: JdbcInput) -> PostgresRelation:
    """Return what is read. Raises `LoadFailed` where there is no table or view of that name, and
    `InvalidInput` for a database that does not know what its text means."""
    if connection.info.parameter_status("server_encoding") == "SQL_ASCII":
        raise InvalidInput(
            f"the database `{read.name}` has the encoding SQL_ASCII, so its text may be anything",
            hint="convert the database to UTF8",
        )
    if read.query is not None:
        sql = query_sql(read.query, f"AS {quoted(_QUERY)}")
        return PostgresRelation(_QUERY, sql, kind=_QUERY)
    name = f"{read.schema}.{read.table}"
    with failures(read, f"finding the table `{name}`"):
        row = connection.execute(_RELATION, (read.schema, read.table, list(KINDS))).fetchone()
        if row is not None:
            oid, kind, rows, size, pages, files, limited, comment = row
            return PostgresRelation(
                name,
                f"{quoted(read.schema)}.{quoted(read.table)}",
                None if rows is None else int(rows),
                size or 0,
                (f"row-level security of `{name}` decides which rows the user sees",)
                if limited
                else (),
                comment or "",
                RelationIdentity(str(oid), frozenset(files or ())) if kind in "rp" else None,
                kind=kind,
                oid=oid,
                pages=pages or 0,
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
    connection: psycopg.Connection[Any], relation: PostgresRelation, read: JdbcInput
) -> tuple[CatalogColumn, ...]:
    """Return the columns, as the catalog describes them, in their order.

    Raises `LoadFailed` for a query that the server rejects or with two columns of one name.
    """
    with failures(read, f"reading the columns of `{relation.shown}`"):
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
    connection: psycopg.Connection[Any], relation: PostgresRelation
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


def check_select(
    connection: psycopg.Connection[Any],
    relation: PostgresRelation,
    selected: Sequence[SelectedColumn],
    read: JdbcInput,
) -> None:
    """Raise `LoadFailed` where the user may not read the columns, without reading a row. The hint
    names the missing rights."""
    doing = f"reading `{relation.shown}`"
    statement = select_sql(relation, selected, PostgresPart("", 0))
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
    relation: PostgresRelation,
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
    connection: psycopg.Connection[Any],
    relation: PostgresRelation,
    selected: Sequence[SelectedColumn],
) -> list[str]:
    """Return the columns that the user may not read; none where that is all of them."""
    rows = connection.execute(
        "SELECT attname::text FROM pg_catalog.pg_attribute WHERE attrelid = %s::oid AND attnum > 0"
        " AND NOT attisdropped AND pg_catalog.has_column_privilege(attrelid, attnum, 'SELECT')",
        (relation.oid,),
    )
    readable = {name for (name,) in rows}
    return [column.name for column in selected if column.name not in readable] if readable else []


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


def xmin_request(relation: PostgresRelation, table: TableSpec, options: RunOptions) -> XminRequest:
    """Return what a load of a table by `xmin` reads."""
    appends = table.mode == "APPEND"
    return XminRequest(
        relation.oid, relation.kind, relation.sql, relation.shown, appends, options.reload,
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


def key_of(connection: psycopg.Connection[Any], relation: PostgresRelation) -> tuple[str, ...]:
    """Return the columns of the preferred key; none where the table has none."""
    statement = f"SELECT ({_UNIQUE}) FROM pg_catalog.pg_class c WHERE c.oid = %s::oid"  # noqa: S608
    row = connection.execute(statement.encode(), (relation.oid,)).fetchone()
    keys = _keys(row[0]) if row else ()
    return keys[0] if keys else ()


def estimate_rows(
    connection: psycopg.Connection[Any], relation: PostgresRelation, wanted: str
) -> int | None:
    """Return how many rows meet a condition, by the statistics of the database."""
    select = f"EXPLAIN (FORMAT JSON) SELECT 1 FROM {relation.sql} WHERE {wanted}"  # noqa: S608
    row = connection.execute(select.encode()).fetchone()
    return None if row is None else int(row[0][0]["Plan"]["Plan Rows"])


@contextmanager
def one_transaction(
    connection: psycopg.Connection[Any], read: JdbcInput, relation: PostgresRelation
) -> Iterator[Fetch]:
    """Give what runs SELECTs in one transaction. Raises `LoadFailed` for what fails there."""
    doing = f"finding what is new in `{relation.shown}`"
    with failures(read, doing), connection.transaction(force_rollback=True):
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        yield lambda statement: connection.execute(statement.encode()).fetchall()


def xmin_window(
    connection: psycopg.Connection[Any],
    relation: PostgresRelation,
    table: TableSpec,
    options: RunOptions,
    bookmark: Bookmark,
    fetch: Fetch,
    *,
    loads: bool = False,
) -> XminWindow:
    """Return the rows that are new by their transaction ids; `loads`: they are read now."""
    request = xmin_request(relation, table, options)
    return find_xmin_window(request, bookmark, fetch, server_of(connection), loads=loads)


def connect_read_only(read: JdbcInput, password: Secret | None) -> psycopg.Connection[Any]:
    """Return a connection whose transactions read only. Raises as `connect`."""
    connection = connect(read, password)
    connection.execute("SET default_transaction_read_only = on")
    return connection


def session_checks(
    read: JdbcInput, password: Callable[[], Secret | None]
) -> list[tuple[str, str, Callable[[], str]]]:
    """Return the check of snapshots."""

    def export() -> str:
        check_pool(read, password())
        with closing(ExportedSnapshot(read, password())):
            return ""

    return [("source-snapshot", "a read-only transaction can export its snapshot", export)]


def describe_session(connection: psycopg.Connection[Any]) -> str:
    """Return the version of the server and how the connection is encrypted."""
    row = connection.execute(
        "SELECT version FROM pg_catalog.pg_stat_ssl WHERE pid = pg_catalog.pg_backend_pid() AND ssl"
    ).fetchone()
    version = connection.info.parameter_status("server_version") or ""
    return f"PostgreSQL {version.split()[0]}, {row[0] if row else 'without TLS'}"


_WITH_PAGES = ("r", "p", "m")
"""Kinds whose rows are in pages of this server's."""
_SHOWN = 10


def bad_values(
    connection: psycopg.Connection[Any],
    relation: PostgresRelation,
    selected: Sequence[SelectedColumn],
    read: JdbcInput,
    wanted: str = "",
) -> tuple[tuple[BadValue, ...], int]:
    """Return the first bad values of the rows that meet the condition `wanted`, ''
    for all, and how many there are."""
    checked = [column for column in selected if column.bad]
    if not checked:
        return (), 0
    found: list[BadValue] = []
    with failures(read, f"counting bad values of `{relation.shown}`"):
        key = key_of(connection, relation)
        total = " + ".join(f"pg_catalog.count(*) FILTER (WHERE {c.bad})" for c in checked)
        where = f" WHERE {wanted}" if wanted else ""
        ((count,),) = connection.execute(f"SELECT {total} FROM {relation.sql}{where}".encode())  # noqa: S608
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
                found.append(bad_value(relation.shown, at, column.name, value, column.reason))
    return tuple(found), int(count)
