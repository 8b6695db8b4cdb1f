"""Rows that are committed late are neither lost nor doubled, in random histories of transactions.

The rules are the product's own: `sources.databases.seen` and `sources.databases.xids`. The model
has a clock, transactions with subtransactions, and loads that take a snapshot, commit later, or die
before. What a load has to read is what its snapshot has and that of the last committed one had not.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.sources.databases.engines.postgres.xids import (
    EPOCH,
    SeenXids,
    Xids,
    XidSnapshot,
    noted,
)
from lakeload_jobs.sources.databases.seen import earlier, later, unseen

_HISTORIES = 400
_STEPS = 120


@dataclass(frozen=True)
class Version:
    """A version of a row. `number` tells versions apart, which the product cannot see."""

    number: int
    key: int
    cursor: int
    value: int
    xid: int

    @property
    def entry(self) -> bytes:
        """What the database computes of it: the hash of key and cursor, and that of all."""
        place = hashlib.sha256(f"{self.key},{self.cursor}".encode()).digest()[:8]
        row = hashlib.sha256(f"{self.key},{self.cursor},{self.value}".encode()).digest()[8:16]
        return place + row


@dataclass
class Transaction:
    """A transaction: its ids, the first of which is its own, and what it has done."""

    ids: list[int]
    since: int
    written: list[Version] = field(default_factory=list)
    removed: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class Snapshot:
    """What one load sees."""

    rows: tuple[Version, ...]
    xids: XidSnapshot
    running: tuple[int, ...]
    """As `pg_current_snapshot` lists them: without subtransactions."""


@dataclass
class Database:
    """A table of a database, in which cursors are the clock's or any."""

    random: random.Random
    next_xid: int = 1000
    clock: int = 100
    longest: int = 12
    """No transaction is open for longer."""
    rows: dict[int, Version] = field(default_factory=dict)
    open: list[Transaction] = field(default_factory=list)
    number: int = 0

    def step(self) -> None:
        """Let time pass, and one transaction do something."""
        self.clock += self.random.randrange(3)
        for late in [one for one in self.open if self.clock - one.since >= self.longest]:
            self.end(late)
        what = self.random.randrange(8)
        if what == 0 or not self.open:
            self.open.append(Transaction([self._xid()], self.clock))
            return
        transaction = self.random.choice(self.open)
        if what == 1:
            transaction.ids.append(self._xid())
        elif what == 2:
            self.end(transaction)
        else:
            self._write(transaction)

    def _xid(self) -> int:
        given = self.next_xid
        self.next_xid += 1 if (given + 1) % EPOCH else 4
        return given

    def _write(self, transaction: Transaction) -> None:
        taken = {number for one in self.open for number in one.removed}
        free = [row for row in self.rows.values() if row.number not in taken]
        what = self.random.randrange(4)
        key, value = self.number + 1000, self.random.randrange(3)
        if free and what:
            old = self.random.choice(free)
            transaction.removed.add(old.number)
            if what == 3:
                return
            key = old.key
        self.number += 1
        xid = self.random.choice(transaction.ids)
        transaction.written.append(Version(self.number, key, self.clock, value, xid))

    def end(self, transaction: Transaction) -> None:
        """Commit, or abort."""
        self.open.remove(transaction)
        if self.random.random() < 0.2:
            return
        for number in transaction.removed:
            del self.rows[number]
        for row in transaction.written:
            self.rows[row.number] = row

    def snapshot(self) -> Snapshot:
        """Return what a transaction that begins now sees."""
        running = tuple(sorted(one.ids[0] for one in self.open))
        end = self.next_xid
        return Snapshot(
            tuple(self.rows.values()), XidSnapshot(min((*running, end)), end, "one"), running
        )


def histories(start: int = 1000, *, arbitrary: bool = False) -> Iterator[list[Snapshot]]:
    """Yield the snapshots of the committed loads of random histories, in their order.

    A load that dies commits nothing, and neither does one that another has overtaken: the state is
    compared when it commits. So a load always goes on from the one before it in the list.
    """
    for seed in range(_HISTORIES):
        chance = random.Random(seed)  # noqa: S311 - not for secrets
        database = Database(chance, next_xid=start)
        committed: list[Snapshot] = []
        loading: list[tuple[int, Snapshot]] = []
        for _ in range(_STEPS):
            database.step()
            if arbitrary:
                _set_any_cursor(database, chance)
            if chance.random() < 0.15:
                loading.append((len(committed), database.snapshot()))
            if loading and chance.random() < 0.15:
                began, snapshot = loading.pop(chance.randrange(len(loading)))
                if began == len(committed) and chance.random() < 0.8:
                    committed.append(snapshot)
        yield committed


def _set_any_cursor(database: Database, chance: random.Random) -> None:
    for transaction in database.open:
        transaction.written[:] = [
            replace(row, cursor=chance.randrange(100)) if row.cursor >= 100 else row
            for row in transaction.written
        ]


@dataclass(frozen=True)
class CursorRules:
    """Which of the rules hold."""

    lookback: int = 12
    compares: bool = True


def load_by_cursor(
    snapshots: list[Snapshot], rules: CursorRules
) -> Iterator[tuple[int, Counter[bytes], Counter[bytes]]]:
    """Yield the bound that each load goes on from, the rows it loads, and those that are new in its
    snapshot. Equal rows are one entry, as for the product."""
    bound, low, window, content = -1, "-1", b"", Counter[bytes]()
    for snapshot in snapshots:
        first = int(later(earlier(str(bound), rules.lookback), low, rules.lookback))
        before = [row for row in snapshot.rows if first <= row.cursor <= bound]
        loaded = Counter(row.entry for row in snapshot.rows if row.cursor > bound)
        now = b"".join(row.entry for row in before)
        if rules.compares:
            loaded.update({one.entry: one.new for one in unseen(now, window)})
        before_it, content = content, Counter(row.entry for row in snapshot.rows)
        yield bound, loaded, content - before_it
        bound = max([bound, *(row.cursor for row in snapshot.rows)])
        low = earlier(str(bound), rules.lookback)
        kept = [row for row in snapshot.rows if int(low) <= row.cursor <= bound]
        window = b"".join(row.entry for row in kept)


def test_with_a_lookback_of_the_longest_transaction_no_row_is_lost_or_doubled() -> None:
    loads = 0
    for snapshots in histories():
        for _, loaded, new in load_by_cursor(snapshots, CursorRules()):
            assert loaded == new
            loads += 1
    assert loads > 2000


def test_rows_at_most_lookback_below_the_bound_are_loaded_once_whatever_the_cursors_are() -> None:
    late = 0
    for snapshots in histories(arbitrary=True):
        cursors = {row.entry: row.cursor for one in snapshots for row in one.rows}
        for bound, loaded, new in load_by_cursor(snapshots, CursorRules()):
            expected = {
                entry: count for entry, count in new.items() if cursors[entry] >= bound - 12
            }
            assert loaded == expected
            late += len(new) - len(expected)
    assert late > 100


@pytest.mark.parametrize(
    "rules", [CursorRules(lookback=0), CursorRules(lookback=4), CursorRules(compares=False)]
)
def test_without_one_of_the_rules_rows_are_lost(rules: CursorRules) -> None:
    assert any(
        new - loaded
        for snapshots in histories()
        for _, loaded, new in load_by_cursor(snapshots, rules)
    )


def load_by_xmin(
    snapshots: list[Snapshot], *, appends: bool
) -> Iterator[tuple[set[Version], set[Version]]]:
    """Yield the row versions that each load reads, and those that are new in its snapshot."""
    seen: SeenXids | None = None
    earlier: set[Version] = set()
    for snapshot in snapshots:
        now, rows = snapshot.xids, set(snapshot.rows)
        if seen is None:
            seen, loaded = SeenXids(now), rows
        else:
            loaded = _rows_of(rows, seen.new(now, "t", appends=appends))
        kept = noted(now)
        seen = seen.after(now, {row.xid % EPOCH for row in rows if row.xid % EPOCH in kept})
        yield loaded, rows - earlier
        earlier = rows


def _rows_of(rows: set[Version], xids: Xids) -> set[Version]:
    return {row for row in rows if row.xid % EPOCH in xids}


def test_by_xmin_no_row_version_is_lost_or_doubled_however_late() -> None:
    loads = 0
    for snapshots in histories(arbitrary=True):
        for loaded, new in load_by_xmin(snapshots, appends=True):
            assert loaded == new
            loads += 1
    assert loads > 2000


@pytest.mark.parametrize("start", [EPOCH - 40, 5 * EPOCH - 40, EPOCH // 2 - 20])
def test_by_xmin_an_upsert_reads_every_new_row_version_while_the_epoch_changes(start: int) -> None:
    for snapshots in histories(start):
        for loaded, new in load_by_xmin(snapshots, appends=False):
            assert new <= loaded


def test_the_running_transactions_of_a_snapshot_lack_subtransactions() -> None:
    """Without the ids of visible rows, by the list of running transactions, rows are lost."""
    lost = False
    for snapshots in histories():
        for before, snapshot in pairwise(snapshots):
            new = set(snapshot.rows) - set(before.rows)
            listed = {
                row
                for row in snapshot.rows
                if row.xid >= before.xids.end or row.xid in before.running
            }
            lost = lost or not new <= listed
    assert lost


def test_an_append_by_xmin_ends_where_old_rows_can_have_the_ids_of_new_ones() -> None:
    now = XidSnapshot(EPOCH - 10, EPOCH + 10)
    seen = SeenXids(XidSnapshot(EPOCH - 20, EPOCH - 10))

    with pytest.raises(LoadFailed, match=r"more than 2\^32 transactions"):
        seen.new(now, "t", appends=True)

    assert seen.new(now, "t", appends=False).ranges == ((EPOCH - 20, EPOCH - 1), (3, 9))


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (XidSnapshot(90, 95, "a"), "it was restored, or is a replica that is behind"),
        (XidSnapshot(150, 200, "b"), "the last load read the server `a`"),
        (XidSnapshot(1 << 31, (1 << 31) + 200, "a"), "transactions have begun since the last load"),
    ],
)
def test_a_server_with_another_history_is_found_out(now: XidSnapshot, why: str) -> None:
    seen = SeenXids(XidSnapshot(100, 100, "a"))

    with pytest.raises(LoadFailed) as failed:
        seen.new(now, "t", appends=False)

    assert why in failed.value.message
    assert failed.value.hint is not None


def test_a_replica_that_is_behind_doubles_nothing() -> None:
    """The primary shows the rows of 101; the replica, read next, does not yet; then it does."""
    primary, replica = XidSnapshot(100, 105), XidSnapshot(99, 106)
    seen = SeenXids(primary, frozenset({101})).after(replica, {104})

    assert 101 not in seen.new(XidSnapshot(106, 106), "t", appends=True)
    assert 99 not in seen.new(XidSnapshot(106, 106), "t", appends=True)
    assert 105 in seen.new(XidSnapshot(106, 106), "t", appends=True)
