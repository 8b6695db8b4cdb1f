"""A catalog of one table in memory, whose commits arrive late, twice, second or never."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable
from lakeload_jobs.formats.iceberg.commits.errors import CommitRejected, CommitUnknown
from lakeload_jobs.formats.iceberg.commits.metadata import (
    Metadata,
    NewTable,
    check,
    updated,
)
from tests.unit.formats.iceberg.commits.own_table import OwnTable

Act = Callable[[], ReadTable]
"""Takes a commit as the catalog does."""
Fate = Callable[[Act], ReadTable]
"""What becomes of a commit on its way."""


@dataclass
class OwnStore:
    """Implements `TableStore`, for one table. With `whole` it compares the whole metadata, as Glue
    does, else what a commit asserts, as REST catalogs do."""

    table: OwnTable
    whole: bool
    fates: list[Fate] = field(default_factory=list)
    """Those of the commits to come, the next one first; then each arrives at once."""
    held: list[Act] = field(default_factory=list)
    """Commits that have not arrived."""
    sent: list[Mapping[str, Any]] = field(default_factory=list)
    """The updates of every commit."""
    reads: list[Callable[[], object]] = field(default_factory=list)
    """What happens before the reads to come."""
    version: int = 0

    def load(self, namespace: str, name: str) -> ReadTable:
        """Read the table."""
        if self.reads:
            self.reads.pop(0)()
        return self._read()

    def commit(
        self,
        table: ReadTable,
        requirements: Iterable[Mapping[str, Any]],
        updates: Iterable[Mapping[str, Any]],
    ) -> ReadTable:
        """Send a commit."""
        asserted, changes = list(requirements), list(updates)
        self.sent.append({one["action"]: one for one in changes})

        def act() -> ReadTable:
            if self.whole:
                # The client compares what it has read, the catalog the version of it.
                check(table.metadata, asserted)
                if table.version != self.version:
                    raise CommitUnknown("the version is another one", overtaken=True)
            else:
                check(self.table.metadata, asserted)
            self.change(changes)
            return self._read()

        return self.fates.pop(0)(act) if self.fates else act()

    def change(self, updates: Iterable[Mapping[str, Any]]) -> None:
        """Change the table as another writer does."""
        self.version += 1
        place = f"{self.version}.metadata.json"
        self.table.metadata = updated(self.table.metadata, updates, replaces=place, now_ms=_NOW)

    def deliver(self) -> None:
        """Let held commits arrive, whose answers nobody reads."""
        for act in self.held:
            try:
                act()
            except (CommitRejected, CommitUnknown):
                continue
        self.held.clear()

    def hold(self, act: Act) -> ReadTable:
        """A fate: it arrives with `deliver`."""
        self.held.append(act)
        raise CommitUnknown("no answer")

    def _read(self) -> ReadTable:
        metadata: Metadata = self.table.metadata
        return ReadTable("db", "orders", metadata, f"{self.version}.metadata.json", self.version)

    # What no publish asks for.

    def namespace_location(self, namespace: str) -> str | None:
        """Refuse."""
        raise NotImplementedError

    def create_namespace(self, namespace: str, location: str | None) -> None:
        """Refuse."""
        raise NotImplementedError

    def open(self) -> None:
        """Refuse."""
        raise NotImplementedError

    def create(self, namespace: str, name: str, table: NewTable, location: str | None) -> ReadTable:
        """Refuse."""
        raise NotImplementedError

    def drop(self, table: ReadTable) -> None:
        """Refuse."""
        raise NotImplementedError


_NOW = 1_700_000_000_000


def lost(act: Act) -> ReadTable:
    """A fate: it is taken, and its answer is lost."""
    act()
    raise CommitUnknown("the answer is lost")


def sent_twice(act: Act) -> ReadTable:
    """A fate: its answer is lost, and the client, which sends it again, hears of a conflict with
    itself."""
    act()
    raise CommitUnknown("ConcurrentModificationException", overtaken=True)


def never(act: Act) -> ReadTable:
    """A fate: it does not arrive."""
    raise CommitUnknown("no answer")


def after(do: Callable[[], object]) -> Fate:
    """A fate: something comes first."""

    def fate(act: Act) -> ReadTable:
        do()
        return act()

    return fate
