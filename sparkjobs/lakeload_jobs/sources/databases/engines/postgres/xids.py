"""Transaction ids of PostgreSQL: which row versions are new since an earlier snapshot.

A row version has the id of the transaction that inserted it, `xmin`, without the upper 32 of its 64
bits. A snapshot has a horizon, below which no transaction was running, and an end, from which on
none had begun. What was inserted below the horizon was visible in the snapshot, or never will be.
Of what was inserted above, the ids of the visible rows are noted: a transaction becomes visible as
a whole. The snapshot's own list of running transactions would not do. It lacks their
subtransactions, so `pg_visible_in_snapshot` calls rows visible that are not.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.contract.state import Bookmark, Evidence, StateChange, check_format
from lakeload_jobs.core.yaml_lines import yaml_text
from lakeload_jobs.sources.databases.bookmark import cursor_json
from lakeload_jobs.sources.databases.columns import Fetch
from lakeload_jobs.sources.databases.engines.base import XMIN
from lakeload_jobs.sources.databases.relation_identity import (
    NotedRelation,
    RelationIdentity,
    read_relation,
)
from lakeload_jobs.sources.databases.seen import LOAD_AGAIN, SEEN_FORMAT, check_first

EPOCH = 1 << 32
_FIRST = 3
"""Smaller ids belong to no transaction, in any epoch."""
_OLDEST = 1 << 31
MOST_XIDS = 100_000
"""How many ids of visible rows are noted."""
_REFRESH = 1 << 28
"""After so many transactions a load that finds nothing new keeps the snapshot that it has seen."""
_XMIN = "xmin::text::int8"


@dataclass(frozen=True)
class XidSnapshot:
    """A snapshot. `horizon` and `end` have all 64 bits.

    `server` names the history of transactions that they belong to: the cluster and its timeline, ''
    where the user may not read it.
    """

    horizon: int
    end: int
    server: str = ""


def parse_snapshot(text: str, server: str = "") -> XidSnapshot:
    """Return a snapshot as `pg_current_snapshot` writes it: `xmin:xmax:running`."""
    horizon, end, _ = text.split(":", 2)
    return XidSnapshot(int(horizon), int(end), server)


@dataclass(frozen=True)
class Xids:
    """Ids of transactions, as rows have them: those in the ranges, both ends included, without the
    `known` ones."""

    ranges: tuple[tuple[int, int], ...]
    known: frozenset[int] = frozenset()

    def __contains__(self, xmin: int) -> bool:
        """Whether rows of this id are meant."""
        within = any(low <= xmin <= high for low, high in self.ranges)
        return within and xmin not in self.known

    @property
    def sql(self) -> str:
        """The same as a condition of rows."""
        within = " OR ".join(f"{_XMIN} BETWEEN {low} AND {high}" for low, high in self.ranges)
        condition = f"({within})" if within else "false"
        if not self.known:
            return condition
        known = ",".join(map(str, sorted(self.known)))
        return f"{condition} AND {_XMIN} NOT IN (SELECT pg_catalog.unnest('{{{known}}}'::int8[]))"


@dataclass(frozen=True)
class SeenXids:
    """What loads have seen: all that is below the horizon of `snapshot`, and of the ids from there
    on the `visible` ones."""

    snapshot: XidSnapshot
    visible: frozenset[int] = frozenset()

    def new(self, now: XidSnapshot, name: str, *, appends: bool) -> Xids:
        """Return the ids of the rows that are new; without `appends` perhaps of more rows.

        Raises `LoadFailed` where it cannot be known.
        """
        _check_server(self.snapshot, now, name)
        if appends:
            check_epoch(now, name)
        ranges = _ranges(self.snapshot.horizon, now.end)
        # In a later epoch a row of an earlier one may have made an id seem visible.
        return Xids(ranges, self.visible if now.end <= EPOCH else frozenset())

    def after(self, now: XidSnapshot, visible: Collection[int]) -> SeenXids:
        """Return what has been seen after a load in `now`, in which rows with the ids `visible`
        were, of those that `noted` names."""
        # A replica may be behind the server of the last load.
        horizon = max(now.horizon, self.snapshot.horizon)
        kept = noted(now)
        known = {xid for xid in self.visible if xid in kept}
        return SeenXids(replace(now, horizon=horizon), frozenset(visible) | known)


def noted(now: XidSnapshot) -> Xids:
    """Return the ids of which a load notes those of visible rows."""
    return Xids(_ranges(now.horizon, now.end))


def check_epoch(now: XidSnapshot, name: str) -> None:
    """Raise `LoadFailed` where a new row may have the id of one that is 2^32 transactions old."""
    if now.end > EPOCH:
        raise LoadFailed(
            f"loading `{name}` by `xmin`: the server has begun more than 2^32 transactions, so old "
            "rows can have the `xmin` of new ones and would be appended again",
            hint="choose a column as `cursor`, or set `mode: UPSERT` (`table_format: ICEBERG`), "
            "which loads such a row again without harm",
        )


def _check_server(before: XidSnapshot, now: XidSnapshot, name: str) -> None:
    """Raise `LoadFailed` where the snapshots are not of one history, or too far apart."""
    if before.server and now.server and before.server != now.server:
        what = (
            f"the last load read the server `{before.server}` (system identifier and timeline), "
            f"and this is `{now.server}`"
        )
    elif now.end < before.end:
        what = (
            f"the server has begun {now.end:,} transactions, and {before.end:,} at the last load: "
            "it was restored, or is a replica that is behind"
        )
    elif now.end - before.horizon >= _OLDEST:
        what = f"{now.end - before.horizon:,} transactions have begun since the last load"
    else:
        return
    raise LoadFailed(
        f"loading `{name}` by `xmin`: {what}, so new rows cannot be distinguished from old ones",
        hint=LOAD_AGAIN,
    )


def _ranges(first: int, end: int) -> tuple[tuple[int, int], ...]:
    """Return the ids from `first` up to `end`, without it, as ranges of their lower 32 bits."""
    found = []
    while first < end:
        epoch = first - first % EPOCH
        last = min(end, epoch + EPOCH) - 1
        low, high = max(first - epoch, _FIRST), last - epoch
        if low <= high:
            found.append((low, high))
        first = last + 1
    return tuple(found)


@dataclass(frozen=True)
class XminState:
    """What a pipeline keeps of a table: what it has seen, and the tables that rows were in.

    `tables` are the table itself, or its partitions. `seen` is the number of the load that has
    noted the visible ids; None where they were not noted.
    """

    snapshot: XidSnapshot
    tables: frozenset[int]
    seen: int | None
    relation: NotedRelation | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as a commit holds it."""
        now = self.snapshot
        state: dict[str, Any] = {"cursor": XMIN, "type": "XID", "last": None}
        state |= {"horizon": now.horizon, "end": now.end, "server": now.server}
        state["tables"] = sorted(self.tables)
        if self.relation is not None:
            state["relation"] = self.relation.to_json()
        return state if self.seen is None else {**state, "seen": self.seen}


def read_xmin_state(state: Any, name: str) -> XminState | None:
    """Return what a commit holds; None where no load has kept a cursor. Raises `NewerFormat`, and
    `LoadFailed` for the state of another cursor or kind of source, and for one that cannot be
    read."""
    if (state := cursor_json(state)) is None:
        return None
    try:
        if state["cursor"] != XMIN:
            raise LoadFailed(
                f"`cursor` of `{name}` is `{XMIN}`, and earlier loads of this pipeline have used "
                f"`{state['cursor']}`",
                hint=f"set `cursor: {yaml_text(state['cursor'])}` again, or {LOAD_AGAIN}",
            )
        snapshot = XidSnapshot(int(state["horizon"]), int(state["end"]), str(state["server"]))
        relation = read_relation(state)
        return XminState(snapshot, frozenset(state["tables"]), state.get("seen"), relation)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise LoadFailed(
            f"the state of `{name}` cannot be read: {error}", hint=LOAD_AGAIN
        ) from error


def read_seen_xids(noted: Sequence[Evidence], name: str) -> frozenset[int]:
    """Return the visible ids that the newest of some loads has noted. Raises `NewerFormat`, and
    `LoadFailed` where they are not there."""
    try:
        seen = noted[-1].inputs[0]
        check_format(seen, SEEN_FORMAT, "the list of transactions that the last load has seen")
        return frozenset(seen["xids"])
    except (IndexError, KeyError, TypeError) as error:
        raise LoadFailed(
            f"what the last load of `{name}` has noted cannot be read: {error!r}",
            hint=LOAD_AGAIN,
        ) from error


@dataclass(frozen=True)
class XminWindow:
    """The row versions that a load by `xmin` reads, those with `condition`; '' for all."""

    condition: str
    idle: bool
    state: StateChange
    evidence: Evidence | None
    refreshes: bool
    """Whether the state is worth a commit without rows."""
    warnings: tuple[str, ...] = ()
    more: ClassVar[bool] = False

    @property
    def sentence(self) -> str:
        """What is read, for people."""
        if self.idle:
            return "no new rows"
        return "row versions that were committed since the last load" if self.condition else ""


_SNAPSHOT = "SELECT pg_catalog.txid_current_snapshot()::text"
_TABLES = """
WITH RECURSIVE tree(oid) AS (
  SELECT {0}::oid UNION SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN tree t
    ON i.inhparent = t.oid
)
SELECT c.oid::int8, c.relkind::text, COALESCE(a.amname = 'heap', false)
  FROM tree t JOIN pg_catalog.pg_class c ON c.oid = t.oid
  LEFT JOIN pg_catalog.pg_am a ON a.oid = c.relam
 WHERE c.relkind <> 'p'
"""


@dataclass(frozen=True)
class XminRequest:
    """What is read by `xmin`: `relation` is the SQL of the table, `name` what messages call it.
    `appends`: rows are appended, so none may be loaded twice."""

    oid: int
    kind: str
    relation: str
    name: str
    appends: bool
    reload: bool = False
    identity: RelationIdentity | None = None


def find_xmin_window(
    given: XminRequest, bookmark: Bookmark, fetch: Fetch, server: str, *, loads: bool = True
) -> XminWindow:
    """Return the row versions to read, in the transaction of `fetch`. Without `loads` nobody reads
    them: the state stays as it is, which saves a pass over the table.

    Raises `InvalidInput` for what has no `xmin`, and `LoadFailed` where new rows cannot be known.
    """
    tables = _tables(given, fetch)
    now = parse_snapshot(fetch(_SNAPSHOT)[0][0], server)
    before = None if given.reload else read_xmin_state(bookmark.state, given.name)
    if given.appends:
        check_epoch(now, given.name)
        if before is None:
            check_first(given.name, bookmark, reload=given.reload)
    condition, idle, seen = "", False, SeenXids(now)
    identity = given.identity
    if before is not None:
        if before.relation is not None and identity is not None:
            identity.check_same(before.relation.identity, given.name, LOAD_AGAIN)
        seen = SeenXids(before.snapshot, _noted_xids(given, before, bookmark))
        condition = seen.new(now, given.name, appends=given.appends).sql
        if added := tables - before.tables:
            # A partition, or a table of the same name: none of its rows was loaded.
            condition = f"(tableoid IN ({', '.join(map(str, sorted(added)))}) OR ({condition}))"
        exists = f"SELECT EXISTS (SELECT 1 FROM {given.relation} WHERE {condition})"  # noqa: S608
        idle = not fetch(exists)[0][0]
        tables |= before.tables
    refreshes = before is not None and now.end - before.snapshot.horizon >= _REFRESH
    if not loads:
        same = StateChange(bookmark.state, bookmark.state)
        return XminWindow(condition, idle, same, None, refreshes)
    visible = _visible(given, noted(now), fetch)
    after = seen.after(now, visible or ())
    evidence = None if visible is None else Evidence(({"xids": sorted(after.visible)},))
    number = None if visible is None else bookmark.next_number
    relation = None if identity is None else NotedRelation(identity)
    state = XminState(after.snapshot, tables, number, relation)
    change = StateChange(bookmark.state, state.to_json())
    return XminWindow(condition, idle, change, evidence, refreshes)


def _tables(given: XminRequest, fetch: Fetch) -> frozenset[int]:
    found = [] if given.kind not in ("r", "p") else fetch(_TABLES.format(given.oid))
    if given.kind in ("r", "p") and all(kind == "r" and heap for _, kind, heap in found):
        return frozenset(oid for oid, _, _ in found)
    raise InvalidInput(
        f"`cursor: {XMIN}` of `{given.name}`: only tables of PostgreSQL's own have it, and their "
        "partitions: no views and no foreign tables",
        hint="set `cursor` to a column, or load the tables that the view reads",
    )


def _noted_xids(given: XminRequest, before: XminState, bookmark: Bookmark) -> frozenset[int]:
    if before.seen is None:
        if not given.appends:
            return frozenset()
        raise LoadFailed(
            f"the last load of `{given.name}` has not noted which transactions it has seen",
            hint=f"set `mode: UPSERT` again, or {LOAD_AGAIN}",
        )
    return read_seen_xids(bookmark.evidence(before.seen), given.name)


def _visible(given: XminRequest, wanted: Xids, fetch: Fetch) -> frozenset[int] | None:
    """Return the ids of visible rows. None: there are too many to be noted."""
    if not wanted.ranges:
        return frozenset()
    found = fetch(
        f"SELECT DISTINCT {_XMIN} FROM {given.relation} WHERE {wanted.sql}"  # noqa: S608
        f" LIMIT {MOST_XIDS + 1}"
    )
    if len(found) <= MOST_XIDS:
        return frozenset(xid for (xid,) in found)
    if not given.appends:
        return None
    raise LoadFailed(
        f"loading `{given.name}` by `{XMIN}`: more than {MOST_XIDS:,} transactions have written "
        "the table since the oldest one began that is still open, and a load notes no more",
        hint="end the oldest transaction: see `pg_stat_activity` and `pg_prepared_xacts`",
    )
