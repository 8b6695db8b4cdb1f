"""What the bucket holds and where everybody is: one hashable value, changed only by copies."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple, TypeVar

from tests.model.rules import Rules

T = TypeVar("T")

STRANGER = -1
"""Owner of an object that no attempt of ours wrote; a fence's attempt, too."""

NONE, OPEN, SLOW, COMPLETED, ABORTED = "-", "open", "slow", "completed", "aborted"
"""States of an upload. Slow: S3 works on its completion, and already says NoSuchUpload."""

Kind = Literal["writer", "recover", "cleaner", "compactor", "operator"]


class Record(NamedTuple):
    """One record and the markers beside it."""

    attempt: int
    fenced: tuple[int, ...] = ()
    before: int = 0
    after: int = 0
    """State, for incremental jobs: rows of the source up to here."""
    end: str = ""
    clean: bool = False
    cat: bool = False


class Put(NamedTuple):
    """A record PUT that is under way and may arrive at any time."""

    number: int
    before: int
    after: int


class Actor(NamedTuple):
    """Where a process is. `number` is the record it works on, `queue` those it settles next."""

    step: str = "open"
    number: int = 0
    queue: tuple[int, ...] = ()
    seen: int = 0
    void: frozenset[int] = frozenset()
    """Records it knows to be void."""
    file: int = 0
    there: int = 0
    """Bits: files of the record it has found visible."""
    looked: int = 0
    """Bits: files found before anything was completed (without `look_after…`)."""
    before: int = 0
    after: int = 0
    own: str = ""
    """`mine`: it publishes its own record; `other`: another attempt's of its job."""
    first: bool = False
    sent: bool = False
    names: tuple[int, ...] = ()
    """Attempts a cleaner fences."""
    debt: bool = False
    told: str = ""


class World(NamedTuple):
    """Everything. The last five are budgets: how often the environment may still do it."""

    log: tuple[Record | None, ...]
    uploads: tuple[tuple[str, ...], ...]
    objects: tuple[tuple[int | None, ...], ...]
    actors: tuple[Actor, ...]
    in_flight: tuple[Put | None, ...]
    committed: frozenset[int] = frozenset()
    """Attempts that ever had a record."""
    checkpoint: int = 0
    covered: tuple[Record | None, ...] = ()
    """What the checkpoint says of the records up to its number."""
    catalog: frozenset[int] = frozenset()
    source: int = 1
    stranger: tuple[int, int] | None = None
    kills: int = 0
    lost: int = 0
    lifecycle: int = 0
    strangers: int = 0
    outages: int = 0


@dataclass(frozen=True)
class Process:
    """One process of a scenario; writers also have a job."""

    kind: Kind
    name: str
    job: str = ""
    pipeline: str = "p"
    incremental: bool = False
    fail: bool = False
    decision: str = "void"
    retries: str = ""
    """A job whose rejected records it reads again."""


@dataclass(frozen=True)
class Scenario:
    """Who runs, how many files a job has, and how often the environment may interfere."""

    processes: tuple[Process, ...]
    files: int = 1
    kills: int = 1
    lost: int = 1
    lifecycle: int = 0
    strangers: int = 0
    outages: int = 0
    late_puts: bool = False
    slow_completions: bool = False
    interrupts: bool = False
    glue: bool = False
    source_rows: int = 1
    rules: Rules = field(default_factory=Rules)

    @cached_property
    def everybody(self) -> tuple[Process, ...]:
        """The scenario's processes, and those that come when all is quiet."""
        pipelines = {p.pipeline: p for p in self.processes if p.kind == "writer"}
        return (
            *self.processes,
            Process("recover", "last recover"),
            Process("cleaner", "last clean-up"),
            *(
                Process("writer", f"new run of {name}", f"new {name}", name, p.incremental)
                for name, p in pipelines.items()
            ),
        )

    @cached_property
    def jobs(self) -> tuple[str, ...]:
        """Job ids: what keys are made of, whatever the pipeline."""
        return tuple(dict.fromkeys(p.job for p in self.everybody if p.kind == "writer"))

    def initial(self) -> World:
        """An empty table; late processes have not begun."""
        everybody = self.everybody
        actors = tuple(
            Actor() if i < len(self.processes) else Actor("later") for i in range(len(everybody))
        )
        return World(
            log=(),
            uploads=tuple((NONE,) * self.files for _ in everybody),
            objects=tuple((None,) * self.files for _ in self.jobs),
            actors=actors,
            in_flight=tuple(None for _ in everybody),
            kills=self.kills,
            lost=self.lost,
            lifecycle=self.lifecycle,
            strangers=self.strangers,
            outages=self.outages,
        )

    def key(self, attempt: int) -> int:
        """Which row of `objects` an attempt's files have."""
        return self.jobs.index(self.everybody[attempt].job)

    def same_job(self, one: int, other: int) -> bool:
        """Whether two attempts are of one job: (pipeline, job id)."""
        a, b = self.everybody[one], self.everybody[other]
        return (a.pipeline, a.job) == (b.pipeline, b.job)

    def ours(self, attempt: int, owner: int) -> bool:
        """Whether an object or record of `owner` is taken for `attempt`'s."""
        if owner == STRANGER:
            return False
        return attempt == owner if self.rules.ours_by_attempt else self.same_job(attempt, owner)


def exists(world: World, number: int) -> bool:
    """Whether the log holds this record."""
    return 0 < number <= len(world.log) and world.log[number - 1] is not None


def record(world: World, number: int) -> Record:
    """Return a record that exists."""
    found = world.log[number - 1]
    if found is None:
        raise LookupError(number)
    return found


def last(world: World) -> int:
    """The highest number that a reader of log and checkpoint sees."""
    numbers = [n for n in range(1, len(world.log) + 1) if exists(world, n)]
    return max([*numbers, world.checkpoint])


def with_actor(world: World, index: int, actor: Actor) -> World:
    """Return the world with one process elsewhere."""
    return world._replace(actors=(*world.actors[:index], actor, *world.actors[index + 1 :]))


def with_record(world: World, number: int, value: Record | None) -> World:
    """Return the world with one record written or changed."""
    log = (*world.log, *((None,) * (number - len(world.log))))
    return world._replace(log=(*log[: number - 1], value, *log[number:]))


def with_upload(world: World, attempt: int, file: int, state: str) -> World:
    """Return the world with one upload in another state."""
    return world._replace(uploads=_set(world.uploads, attempt, file, state))


def with_object(world: World, key: int, file: int, owner: int | None) -> World:
    """Return the world with another object, or none, at a key."""
    return world._replace(objects=_set(world.objects, key, file, owner))


def known(world: World, number: int) -> Record:
    """A record as checkpoint or log tell it."""
    if number <= world.checkpoint:
        covered = world.covered[number - 1]
        if covered is not None:
            # What a checkpoint covers is taken for done, unless it says void.
            return covered if covered.end == "void" else covered._replace(end="done")
    return record(world, number)


def abort_all(world: World, attempt: int) -> World:
    """Abort what an attempt has staged and not completed."""
    for file, state in enumerate(world.uploads[attempt]):
        if state == OPEN:
            world = with_upload(world, attempt, file, ABORTED)
    return world


def to_step(world: World, index: int, step: str) -> World:
    """Return the world with one process at another step."""
    return change(world, index, step=step)


def change(world: World, index: int, **changes: object) -> World:
    """Return the world with something changed about one process."""
    return with_actor(world, index, world.actors[index]._replace(**changes))  # type: ignore[arg-type]


def _set(
    rows: tuple[tuple[T, ...], ...], row: int, column: int, value: T
) -> tuple[tuple[T, ...], ...]:
    changed = (*rows[row][:column], value, *rows[row][column + 1 :])
    return (*rows[:row], changed, *rows[row + 1 :])
