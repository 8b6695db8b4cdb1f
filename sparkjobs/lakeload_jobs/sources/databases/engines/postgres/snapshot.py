"""Snapshots of PostgreSQL, in which several sessions read the parts of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import psycopg

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.contract.spec import JdbcInput
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER
from lakeload_jobs.sources.databases.columns import CatalogColumn, Relation, SelectedColumn
from lakeload_jobs.sources.databases.engines.failures import LOST_HINT
from lakeload_jobs.sources.databases.engines.postgres.connection import (
    connect,
    failures,
    session_settings,
)
from lakeload_jobs.sources.databases.engines.postgres.sql import literal, quoted
from lakeload_jobs.sources.databases.engines.postgres.types import PLACES
from lakeload_jobs.sources.databases.key_ranges import (
    Places,
    all_of,
    conditions,
    find_bounds,
    with_nulls,
)
from lakeload_jobs.sources.databases.seen import ID_BYTES, Unseen, check_size

_UNSEEN_OF_PART = 20_000
_ENTRY, _KNOWN = '"lakeload entry"', '"lakeload known"'
_SEEN, _PLACE = '"lakeload seen"', '"lakeload place"'
"""Columns of subqueries, beside those of the table."""


@dataclass(frozen=True)
class PostgresRelation(Relation):
    """A table or view of PostgreSQL, or a query.

    `kind` is that of `pg_class.relkind`. `pages` are those of the table, or of the largest one of
    its partitions; 0 where rows are not in pages that can be read one by one.
    """

    kind: str = "r"
    oid: int = 0
    pages: int = 0


@dataclass(frozen=True)
class PostgresPart:
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
    relation: PostgresRelation,
    selected: Sequence[SelectedColumn],
    part: PostgresPart,
    *,
    by_place: bool = False,
) -> str:
    """Return the SELECT of a part: the columns, and behind them the number of values of a row
    that are bad, where some can be. `by_place`: their names are `c0`, `c1` and so on."""
    names = [column.name for column in selected]
    values = [column.checked for column in selected]
    if bad := [f"{column.bad}::int4" for column in selected if column.bad]:
        names.append(BAD_VALUES_HELPER)
        values.append(" + ".join(bad))
    if by_place:
        names = [f"c{place}" for place in range(len(names))]
    values = [f"{value} AS {quoted(name)}" for value, name in zip(values, names, strict=True)]
    where = f" WHERE {part.condition}" if part.condition else ""
    return f"SELECT {', '.join(values)} FROM {part.among or relation.sql}{where}"  # noqa: S608


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


def unseen_parts(
    relation: PostgresRelation,
    selected: Sequence[SelectedColumn],
    window: str,
    entry: str,
    found: Sequence[Unseen],
) -> tuple[PostgresPart, ...]:
    """Return the rows of a window that were not seen. Of equal rows so many are left out as were
    seen, whichever."""
    columns = ", ".join(quoted(column.name) for column in selected)
    parts = []
    for first in range(0, len(found), _UNSEEN_OF_PART):
        part = found[first : first + _UNSEEN_OF_PART]
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
        parts.append(PostgresPart(f"{_PLACE} > {_SEEN}", count, among=f"({numbered}) AS n"))
    return tuple(parts)


_TID_RANGES = 140000
"""The first version that reads a range of `ctid` without the rest of the table."""
_PART_BYTES = 16 << 20
"""No part is made for less."""
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


class ExportedSnapshot:
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

    def parts(
        self, relation: PostgresRelation, most: int, wanted: str = "", by_key: ByKey | None = None
    ) -> tuple[PostgresPart, ...]:
        """Return at most so many parts of a table, of about the same size, with their rows.

        `wanted` is a condition that all rows meet, '' for none. Few rows are one part, which an
        index can serve. What has no pages is one part too, or ranges of a key.

        From here on the transaction holds a lock that every reader holds: other sessions neither
        truncate nor rewrite the table.
        """
        doing = f"counting the rows of `{relation.shown}`"
        with failures(self._read, doing):
            if not self._has_ranges_of_pages(relation):
                parts = self._parts_by_key(relation, most, wanted, by_key) if by_key else ()
                return parts or (self._counted(relation, wanted),)
            whole = self._counted(relation, wanted) if wanted else None
            conditions = self._conditions(relation, most, whole)
            if whole is not None and len(conditions) == 1:
                return (whole,)
            parts = tuple(self._counted(relation, all_of((one, wanted))) for one in conditions)
            return tuple(replace(part, by_page=not wanted) for part in parts)

    def _has_ranges_of_pages(self, relation: PostgresRelation) -> bool:
        return relation.pages > 0 and self.connection.info.server_version >= _TID_RANGES

    def _counted(self, relation: PostgresRelation, condition: str) -> PostgresPart:
        where = f" WHERE {condition}" if condition else ""
        ((rows,),) = self.fetch(f"SELECT pg_catalog.count(*) FROM {relation.sql}{where}")  # noqa: S608
        return PostgresPart(condition, rows, by_page=relation.pages > 0 and not condition)

    def _parts_by_key(
        self, relation: PostgresRelation, most: int, wanted: str, by_key: ByKey
    ) -> tuple[PostgresPart, ...]:
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
            return (PostgresPart(wanted, whole),)
        if nulls:
            condition, count_of_first = found[0]
            found[0] = with_nulls(key, condition), count_of_first + nulls
        return tuple(PostgresPart(all_of((one, wanted)), count) for one, count in found)

    def _ranges(
        self, relation: PostgresRelation, most: int, wanted: str, by_key: ByKey
    ) -> tuple[str, tuple[str, ...]]:
        """Return the SQL of a key and the conditions of its ranges, or none."""
        # No statement of the load itself has this setting.
        with self.connection.transaction(force_rollback=True):
            self.connection.execute("SET LOCAL max_parallel_workers_per_gather = 0")
            whole = self._plan(relation, by_key.selected, wanted)
            rows = int(whole["Plan Rows"])
            count = min(most, rows * int(whole["Plan Width"]) // _PART_BYTES)
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
        self, relation: PostgresRelation, wanted: str, key: str, places: Places, place: int
    ) -> int:
        condition = all_of((f"{key} < {literal(places.text(place))}", wanted))
        return int(self._plan(relation, (), condition)["Plan Rows"])

    def _plan(
        self, relation: PostgresRelation, selected: Sequence[SelectedColumn], condition: str
    ) -> dict[str, Any]:
        select = select_sql(relation, selected, PostgresPart(condition, 0))
        ((found,),) = self.fetch(f"EXPLAIN (FORMAT JSON) {select}")
        plan: dict[str, Any] = found[0]["Plan"]
        return plan

    def _conditions(
        self, relation: PostgresRelation, most: int, whole: PostgresPart | None
    ) -> list[str]:
        size = relation.bytes
        if whole is not None and relation.estimated_rows:
            size = min(size, size * whole.rows // relation.estimated_rows)
        count = min(most, size // _PART_BYTES, relation.pages)
        if count < 2:
            return [""]
        # Of a partitioned table each partition is read in the same ranges of its own pages.
        bounds = [relation.pages * number // count for number in range(1, count)]
        starts = [f"ctid >= '({page},0)'::tid" for page in bounds]
        ends = [f"ctid < '({page},0)'::tid" for page in bounds]
        inner = (f"{start} AND {end}" for start, end in zip(starts, ends[1:], strict=False))
        # The last one has no end: rows are added behind it.
        return [ends[0], *inner, starts[-1]]

    def entries(
        self, relation: PostgresRelation, entry: str, window: str, *, lookback: bool
    ) -> bytes:
        """Return the entries of the rows of a window. Raises `LoadFailed` where they are too many
        to be kept."""
        of_window = f"{relation.sql} WHERE {window}"
        doing = f"comparing the rows of `{relation.shown}` with those that were loaded"
        with failures(self._read, doing):
            rows = self.connection.execute(
                f"SELECT pg_catalog.count(*) FROM {of_window}".encode()  # noqa: S608
            ).fetchone()
            check_size(rows[0] if rows else 0, relation.shown, lookback=lookback)
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
