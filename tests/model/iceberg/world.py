"""Who runs, what a catalog holds, and where everybody is: one hashable value, changed by copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeAlias

from lakeload_jobs.contract.spec import Mode
from lakeload_jobs.formats.iceberg.rules.facts import TableAttempt
from tests.model.iceberg.rules import Rules

FOREIGN = -1
"""The author of a snapshot that another engine has made."""


Round: TypeAlias = tuple[int, int]
"""An attempt, and how often it has begun anew."""


class Snap(NamedTuple):
    """One snapshot: who made it and which rows of the source it brings."""

    id: int
    parent: int | None
    author: int
    rows: bool = True
    before: int = 0
    after: int = 0
    replaces: bool = False
    copy_of: int = 0
    filled: bool = True
    """The branch has rows once this is its head."""
    version: int = 0
    """The cursor of the row that merges bring, as the branch has it once this is its head."""

    @property
    def round(self) -> Round:
        """The round that has staged it."""
        return self.author, (self.files - 10 * self.author) // 4

    @property
    def files(self) -> int:
        """The number of its files: a copy names those of the staged snapshot."""
        return self.copy_of or self.id


class Table(NamedTuple):
    """One metadata file. `held` are the snapshots that are not expired."""

    head: int | None = None
    branches: tuple[tuple[Round, int], ...] = ()
    """Staging branches: the round, and the snapshot; 0 is the empty one of an empty table."""
    held: tuple[Snap, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()

    def branch(self, of: Round) -> int | None:
        return dict(self.branches).get(of)

    def with_branch(self, of: Round, snapshot: int) -> Table:
        return self._replace(branches=tuple(sorted({**dict(self.branches), of: snapshot}.items())))

    def without_branch(self, of: Round) -> Table:
        return self._replace(branches=tuple(b for b in self.branches if b[0] != of))

    def with_snap(self, snap: Snap) -> Table:
        return self._replace(held=tuple(sorted({*self.held, snap})))


class Actor(NamedTuple):
    """Where an attempt is. Tables are read by their number in `Run.tables`."""

    step: str = "open"
    seen: int = -1
    """The metadata that `open` has read; -1 is no table."""
    round: int = 0
    base: int | None = None
    staged: int = 0
    before: int = 0
    after: int = 0
    at: int = -1
    """The metadata that the transaction is based on."""
    sent: tuple[int, ...] = ()
    """Snapshots of commits without an answer."""
    why: str = ""
    """What becomes of it when its branch is dropped."""
    then: str = ""
    """Where it goes on when rejected records are settled: a step, or `told` and what it is told."""
    fates: tuple[tuple[Round, str], ...] = ()
    """Rounds that the side table remembers, and what becomes of their records."""
    told: str = ""


class World(NamedTuple):
    """Everything. What follows `source` are budgets: how often the environment may still do it."""

    table: int
    actors: tuple[Actor, ...]
    truth: tuple[Snap, ...] = ()
    """Every snapshot there ever was, expired ones included."""
    landed: frozenset[int] = frozenset()
    """Attempts whose commit came in."""
    written: frozenset[int] = frozenset()
    """Files that no snapshot names yet; those of one round have the number of its snapshot."""
    deleted: frozenset[int] = frozenset()
    """Files that are gone."""
    side: tuple[Round, ...] = ()
    """The rounds whose rejected records are in the side table, once for each time."""
    pending: frozenset[Round] = frozenset()
    """The rounds that the side table remembers."""
    late: tuple[tuple[int, Actor], ...] = ()
    """Commits that are under way and may come in at any time."""
    source: int = 1
    kills: int = 0
    lost: int = 0
    delays: int = 0
    rollbacks: int = 0
    foreign: int = 0
    expiries: int = 0
    drops: int = 0
    orphans: int = 0


_MODES: Mapping[str, Mode] = {"overwrite": "OVERWRITE", "merge": "UPSERT"}


@dataclass(frozen=True)
class Process:
    """One attempt at one job."""

    name: str
    job_id: str
    kind: Literal["whole", "incremental", "empty", "overwrite", "merge"] = "whole"
    """All rows; those past the state; the same where a filter leaves none; all, replaced; one row
    by its key."""
    pipeline: str = "p"
    fail: bool = False
    version: int = 0
    """The cursor of the row that is merged."""
    retries: str | None = None
    """A job whose rejected records it reads again."""

    @property
    def goes_on(self) -> bool:
        return self.kind in ("incremental", "empty")

    @property
    def job(self) -> TableAttempt:
        """The job as the rules know it."""
        return TableAttempt(
            self.pipeline,
            self.job_id,
            self.name,
            "f",
            "source",
            "db.t",
            table_handling="FAIL" if self.fail else "APPEND",
            mode=_MODES.get(self.kind, "APPEND"),
            goes_on=self.goes_on,
            retries=self.retries,
        )


@dataclass(frozen=True)
class Scenario:
    """Who runs against what kind of catalog, and how often the environment may interfere."""

    processes: tuple[Process, ...]
    history: int = 0
    """So many of them have run, one after the other, before the search begins."""
    rest: bool = False
    """The catalog compares the references that a commit sets, and not all metadata."""
    remembered: int = 3
    """How many jobs the table's list keeps."""
    source_rows: int = 1
    rounds: int = 1
    """How often a load begins anew."""
    by_spark: bool = False
    """Spark commits what it has written to the staging branch; else the publish adds a snapshot of
    files that are in none. Merges are always Spark's."""
    rejects: bool = False
    """Each load sets records aside."""
    kills: int = 0
    lost: int = 0
    delays: int = 0
    rollbacks: int = 0
    foreign: int = 0
    expiries: int = 0
    drops: int = 0
    orphans: int = 0
    rules: Rules = field(default_factory=Rules)

    @property
    def everybody(self) -> tuple[Process, ...]:
        """The scenario's attempts, and those that come when all is quiet: each job once more, and
        one new job of each pipeline."""
        jobs = {(p.pipeline, p.job_id): p for p in self.processes}
        kinds = {p.pipeline: p for p in self.processes}
        again = [replace(p, name=f"{p.name} again") for p in jobs.values()]
        new = [
            replace(p, name=f"new {name}", job_id=f"z{i}", retries=None)
            for i, (name, p) in enumerate(kinds.items())
        ]
        return (*self.processes, *again, *new)
