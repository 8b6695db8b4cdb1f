"""Incremental loads of tables of a database: cursor columns, and which rows a load reads.

Only the database compares values of a cursor (`cursor_sql`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Protocol

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.contract.spec import JdbcInput, RunOptions, TableSpec
from lakeload_jobs.contract.state import Bookmark, Evidence, StateChange
from lakeload_jobs.core.names import did_you_mean
from lakeload_jobs.core.yaml_lines import yaml_text
from lakeload_jobs.rows.columns import source_names
from lakeload_jobs.sources.databases.bookmark import (
    CALLED,
    CursorState,
    Kind,
    check_text,
    read_state,
    rows_between,
)
from lakeload_jobs.sources.databases.columns import (
    CatalogColumn,
    Fetch,
    Relation,
    SelectedColumn,
    text_of,
)
from lakeload_jobs.sources.databases.cursor_sql import Cursor, CursorSql
from lakeload_jobs.sources.databases.relation_identity import NotedRelation, RelationIdentity
from lakeload_jobs.sources.databases.seen import (
    LOAD_AGAIN,
    SeenRows,
    check_first,
    check_lookback,
    earlier,
    later,
    read_seen,
)

_WITH_SCALE = ("numeric", "decimal", "NUMERIC", "DECIMAL")


def parse_value(kind: Kind, given: str) -> str:
    """Return a value that a user has written, as it is compared. A timestamp with a time zone is in
    UTC unless it says otherwise. Raises `ValueError`."""
    if kind in ("TIMESTAMP", "TIMESTAMPTZ"):
        time = datetime.fromisoformat(given.strip())
        if time.tzinfo is not None:
            if kind == "TIMESTAMP":
                raise ValueError(f"`{given}` has a time zone, and the column has none")
            time = time.astimezone(UTC).replace(tzinfo=None)
        given = time.isoformat(sep=" ")
    elif kind != "TEXT":
        given = given.strip()
    check_text(kind, given)
    return given


def find_cursor(
    sql: CursorSql,
    columns: Sequence[CatalogColumn],
    wanted: str,
    table: str,
    quote: Callable[[str], str],
) -> Cursor:
    """Return the cursor that a setting names. Raises `InvalidInput` where there is no such column,
    or its values have no order."""
    by_name = {column.name: column for column in columns}
    column = by_name.get(source_names([wanted], by_name)[wanted])
    if column is None:
        raise InvalidInput(
            f"`cursor` of `{table}`: there is no column `{wanted}`",
            hint=did_you_mean(wanted, by_name) or "set `cursor` to a column of the table",
        )
    found = sql.types.get(column.type)
    if found is None or (column.type in _WITH_SCALE and column.scale != 0):
        raise InvalidInput(
            f"`cursor` of `{table}`: column `{column.name}` has the type `{column.declared}`",
            hint=sql.hint,
        )
    kind, literal_type = found
    name = quote(column.name)
    unusable = [f"{name} IS NULL"] if column.nullable else []
    unusable += sql.outside(kind, literal_type, name)
    value = sql.value(kind, name)
    return Cursor(sql, column.name, kind, literal_type, value, " OR ".join(unusable))


@dataclass(frozen=True)
class AppendedWindow:
    """A window whose rows must not be appended twice.

    Rows greater than `last` are new. Others are compared with `seen`; None at the first load, which
    has no others. What is noted are the rows from `kept_from` on.
    """

    last: str | None
    seen: SeenRows | None
    kept_from: str | None


class RowsWindow(Protocol):
    """The rows that an incremental load reads."""

    @property
    def condition(self) -> str:
        """The condition of the rows in SQL, '' for all."""

    @property
    def idle(self) -> bool:
        """Whether no row is new."""

    @property
    def state(self) -> StateChange:
        """The state when they are loaded."""

    @property
    def evidence(self) -> Evidence | None:
        """What is noted beside the state before a row is read."""

    @property
    def refreshes(self) -> bool:
        """Whether the state is worth a commit without rows."""

    @property
    def more(self) -> bool:
        """Whether there are later rows, which a limit leaves for later loads."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may not be meant."""

    @property
    def sentence(self) -> str:
        """What is read, for people."""


@dataclass(frozen=True)
class Window:
    """The rows that an incremental load reads: those from `low` to `high`, both included.

    `low` None: all up to `high`; `high` None: there are no rows. `idle`: they are those that were
    loaded.
    """

    cursor: Cursor
    low: str | None
    high: str | None
    idle: bool
    state: StateChange
    warnings: tuple[str, ...] = ()
    appended: AppendedWindow | None = None
    """What else there is to know where rows are appended."""
    looks_back: bool = False
    """Whether there is a `lookback`."""
    given: bool = False
    """Whether the user has said where it begins."""
    more: bool = False
    """Whether there are rows greater than `high`, which a limit leaves for later loads."""
    refreshes: ClassVar[bool] = False
    evidence: ClassVar[None] = None
    """What is noted is known when the rows are read."""

    @property
    def condition(self) -> str:
        """The condition of the rows in SQL, '' for all."""
        return self.cursor.between(self.low, self.high)

    @property
    def sentence(self) -> str:
        """What is read, for people."""
        name = self.cursor.name
        if self.idle:
            return "no new rows" if self.low is None else f"no new rows (`{name}` is at {self.low})"
        if self.high is None:
            return "the source has no rows"
        low = f"{self.low} (`--from`)" if self.given else self.low
        later = "; there are later ones" if self.more else ""
        return f"{rows_between(name, low, self.high)}{later}"


@dataclass(frozen=True)
class CursorRequest:
    """What the window of a load depends on beside its bookmark.

    `relation` is the SQL of what is read, `name` what messages call it, `selected` are the columns
    that are loaded, `key` those that name a row in messages.
    """

    cursor: Cursor
    relation: str
    name: str
    selected: tuple[SelectedColumn, ...]
    key: tuple[str, ...]
    options: RunOptions
    lookback: int | timedelta | None = None
    appends: bool = False
    since: str | None = None
    """Where the load begins, whatever the state says; None: as the state says."""
    identity: RelationIdentity | None = None
    limit: int | None = None
    """How many rows a load reads of those that are new; None: all."""


def request_of(
    given: JdbcInput,
    sql: CursorSql,
    table: TableSpec,
    relation: Relation,
    columns: Sequence[CatalogColumn],
    selected: Sequence[SelectedColumn],
    key: tuple[str, ...],
    options: RunOptions,
) -> CursorRequest:
    """Return the request of a table. Raises as `find_cursor` does, and `InvalidInput` for a
    `lookback` that it cannot have."""
    name = relation.shown
    cursor = find_cursor(sql, columns, table.cursor or "", name, relation.quoted)
    lookback = check_lookback(given.lookback, cursor.kind, name)
    appends = table.mode == "APPEND"
    if lookback and appends and not table.primary_key:
        raise InvalidInput(
            f"`lookback` of `{name}` needs a key: late rows are compared by it",
            hint="set `primary_key`, or remove `lookback`",
        )
    since = options.since
    try:
        since = None if since is None else parse_value(cursor.kind, since)
    except ValueError as error:
        raise InvalidInput(
            f"`--from {since}`: column `{cursor.name}` of `{name}` is {CALLED[cursor.kind]}: "
            f"{error}",
            hint="write a value of this column, as `2024-02-29 12:00:00` of a timestamp",
        ) from None
    return CursorRequest(
        cursor, relation.sql, name, tuple(selected), key, options, lookback, appends, since,
        relation.identity, table.round_limit.rows if table.round_limit else None,
    )  # fmt: skip


def find_window(given: CursorRequest, bookmark: Bookmark, fetch: Fetch) -> Window:
    """Return the rows to read, by asking the database, in the transaction of `fetch`.

    Raises `LoadFailed` for rows without a value of the cursor, and for a state that another cursor
    or relation has left.
    """
    cursor = given.cursor
    before = None if given.options.reload else read_state(bookmark.state)
    _check_same(given, before)
    _check_relation(given, before, fetch)
    _check_usable(given, fetch)
    if given.since is not None:
        return _window_since(given, given.since, before, bookmark, fetch)
    if given.appends and before is None:
        check_first(given.name, bookmark, reload=given.options.reload)
    last = before.last if before else None
    high, behind = map(text_of, fetch(cursor.sql.greatest(cursor, given.relation, last))[0])
    if high is not None:
        _check_greatest(given, high)
    warnings: tuple[str, ...] = ()
    if before is not None and last is not None and (high is None or behind == "1"):
        # What was loaded stays the bound: values that come later are greater than it.
        now = "the source has no rows" if high is None else f"its greatest value is {high}"
        warnings = (
            f"`{cursor.name}` of `{given.name}` was at {last} in an earlier load, and now {now}: "
            f"rows were deleted, or the database was restored. After a restore {LOAD_AGAIN}",
        )
        if not given.lookback and not given.appends:
            same = StateChange(bookmark.state, bookmark.state)
            return Window(cursor, last, last, True, same, warnings)
        high = last
    more = False
    if given.limit is not None and high is not None and high != last:
        found = fetch(cursor.sql.bound(cursor, given.relation, last, given.limit))
        bound = text_of(found[0][0]) if found else high
        high, more = bound, bound != high
    kept_from = None if high is None else earlier(high, given.lookback)
    at = None if kept_from is None else text_of(fetch(_digest(given, kept_from, high))[0][0])
    idle = before is not None and (before.last, before.at) == (high, at)
    low = None if last is None else earlier(last, given.lookback)
    appended = None
    if given.appends:
        # Also for an idle load, which may go on to delete rows.
        seen = None if before is None or last is None else _seen(given, before, bookmark)
        if seen is not None and low is not None:
            low = later(low, seen.low, given.lookback)
        appended = AppendedWindow(last, seen, kept_from)
    noted = bookmark.next_number if given.appends else None
    relation = _relation(given, high, fetch)
    if warnings and before is not None:
        # Rows that come later are compared with those that were loaded.
        relation = before.relation
    after = CursorState(cursor.name, cursor.kind, high, at, noted, relation=relation)
    state = StateChange(bookmark.state, after.to_json())
    return Window(
        cursor, low, high, idle, state, warnings, appended, bool(given.lookback), more=more
    )


def _window_since(
    given: CursorRequest,
    since: str,
    before: CursorState | None,
    bookmark: Bookmark,
    fetch: Fetch,
) -> Window:
    """Return the rows from a value on that the user gives. Raises `InvalidInput` where rows before
    it would be left out that no load has read."""
    cursor = given.cursor
    last = before.last if before else None
    high, behind = map(text_of, fetch(cursor.sql.greatest(cursor, given.relation, since))[0])
    if high is None or behind == "1":
        raise InvalidInput(
            f"`--from {since}`: `{given.name}` has no such rows"
            + ("" if high is None else f", the greatest `{cursor.name}` is {high}"),
            hint="write a value that is not greater than this",
        )
    _check_greatest(given, high)
    kept_from = earlier(high, given.lookback)
    # No load may begin later than it would without the value: what comes late is in between.
    for bound in () if last is None else (earlier(last, given.lookback), kept_from):
        if bound is None or cursor.sql.is_greater(cursor, since, bound, fetch):
            raise InvalidInput(
                f"`--from {since}`: without it a load of `{given.name}` reads the rows from "
                f"{bound} on, and some of them would be left out",
                hint="leave `--from` out, or write a value that is not greater than this",
            )
    at = None if kept_from is None else text_of(fetch(_digest(given, kept_from, high))[0][0])
    warnings: tuple[str, ...] = ()
    if before is None:
        warnings = (f"rows of `{given.name}` before `--from {since}` were left out",)
    elif given.appends:
        warnings = (f"`--from {since}` appended rows of `{given.name}` that were loaded before",)
    noted = bookmark.next_number if given.appends else None
    relation = _relation(given, high, fetch)
    after = CursorState(cursor.name, cursor.kind, high, at, noted, since, relation)
    state = StateChange(bookmark.state, after.to_json())
    appended = AppendedWindow(None, None, kept_from) if given.appends else None
    looks_back = bool(given.lookback)
    return Window(cursor, since, high, False, state, warnings, appended, looks_back, given=True)


def _seen(given: CursorRequest, before: CursorState, bookmark: Bookmark) -> SeenRows:
    if before.seen is None:
        raise LoadFailed(
            f"the last load of `{given.name}` has kept no list of the rows that it has read, "
            "because it did not append them",
            hint=f"set `mode: UPSERT` again, or {LOAD_AGAIN}",
        )
    return read_seen(bookmark.evidence(before.seen))


def _check_same(given: CursorRequest, before: CursorState | None) -> None:
    cursor = given.cursor
    if before is None:
        return
    if before.cursor != cursor.name:
        raise LoadFailed(
            f"`cursor` of `{given.name}` is `{cursor.name}`, and earlier loads of this pipeline "
            f"have used `{before.cursor}`",
            hint=f"set `cursor: {yaml_text(before.cursor)}` again, or {LOAD_AGAIN}",
        )
    if before.type != cursor.kind:
        raise LoadFailed(
            f"the cursor `{cursor.name}` of `{given.name}` is {CALLED[cursor.kind]}, and was "
            f"{CALLED[before.type]} in earlier loads",
            hint=LOAD_AGAIN,
        )


def _relation(given: CursorRequest, high: str | None, fetch: Fetch) -> NotedRelation | None:
    """Return what the state notes of the relation; None where it has no identity."""
    if given.identity is None or high is None:
        return None
    return NotedRelation(given.identity, _row_digests(given, high, fetch))


def _check_relation(given: CursorRequest, before: CursorState | None, fetch: Fetch) -> None:
    """Raise `LoadFailed` where the rows that were loaded are not those of this relation."""
    noted = None if before is None else before.relation
    if before is None or before.last is None or noted is None or given.identity is None:
        return
    given.identity.check_same(noted.identity, given.name, LOAD_AGAIN)
    if not given.identity.has_other_rows(noted.identity):
        return
    cursor, last = given.cursor, before.last
    earlier_rows = f"{given.relation} WHERE {cursor.between(None, last)}"
    ((count,),) = fetch(f"SELECT {cursor.sql.functions}count(*) FROM {earlier_rows}")  # noqa: S608
    if not int(count):
        # It was emptied, and all rows that have come since are new.
        return
    now = _row_digests(given, last, fetch)
    common = noted.rows.keys() & now.keys()
    if common and all(noted.rows[name] == now[name] for name in common):
        # It was rewritten, as by VACUUM FULL or ALTER TABLE: the rows are the same.
        return
    raise LoadFailed(
        f"`{given.name}` was truncated, created again or rewritten since the last load, and the "
        f"rows with `{cursor.name}` {last} are not those that were loaded: {int(count):,} rows up "
        "to this value may be new, and would be missed",
        hint=LOAD_AGAIN,
    )


def _row_digests(given: CursorRequest, value: str, fetch: Fetch) -> dict[str, str]:
    """Return a digest of each column of the rows with a value of the cursor."""
    digests = map(given.cursor.sql.digest_of_column, given.selected)
    where = given.cursor.between(value, value)
    (row,) = fetch(f"SELECT {', '.join(digests)} FROM {given.relation} WHERE {where}")  # noqa: S608
    names = [column.name for column in given.selected]
    return {name: str(text_of(found)) for name, found in zip(names, row, strict=True)}


def _check_usable(given: CursorRequest, fetch: Fetch) -> None:
    cursor = given.cursor
    if not cursor.unusable:
        return
    where = f" FROM {given.relation} WHERE {cursor.unusable}"
    ((count,),) = fetch(f"SELECT {cursor.sql.functions}count(*){where}")
    if not int(count):
        return
    (value, *key) = fetch(cursor.sql.unusable(cursor, given.key, where))[0]
    at = ", ".join(f"{name} = {part}" for name, part in zip(given.key, key, strict=bool(key)))
    first = f", such as the row with {at}" if at else ""
    raise LoadFailed(
        f"reading `{given.name}`: the cursor `{cursor.name}` is "
        f"{'null' if value is None else f'`{value}`'} in {int(count):,} rows{first}: no "
        "incremental load would find them",
        hint="set a value in these rows, or read a view that sets one or leaves them out",
    )


def _check_greatest(given: CursorRequest, high: str) -> None:
    try:
        check_text(given.cursor.kind, high)
    except ValueError:
        raise LoadFailed(
            f"reading `{given.name}`: the greatest value of the cursor `{given.cursor.name}` is "
            f"`{high}`, which no later load can go on from",
            hint="correct the value in the database",
        ) from None


def _digest(given: CursorRequest, low: str, high: str | None) -> str:
    """Return the SELECT of a digest of the rows that the next load reads again."""
    where = given.cursor.between(low, high)
    return f"SELECT {given.cursor.sql.digest(given.selected)} FROM {given.relation} WHERE {where}"  # noqa: S608
