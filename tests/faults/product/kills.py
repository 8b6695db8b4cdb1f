"""kill -9 of everything before and after each step of the protocol, and what may come too late.

A step is recognised by its request at the proxy.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from tests.faults.product.case import JOB, Case
from tests.faults.product.syncs import Sync, Told, run_sync
from tests.faults.product.world import FILES, World
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import Action, Drop, Forward, Response

LATE_SECONDS = 300.0


@dataclass(frozen=True)
class Step:
    """One step of a table: its request, and how many like it pass before."""

    name: str
    operation: str
    key: str = "*"
    skip: int = 0
    later: bool = False
    """Whether the first load of a table has no such step."""


STEPS = (
    # The command looks at log and data too, before it starts Spark.
    Step("open-list", "ListObjectsV2", skip=2),
    Step("create-upload", "CreateMultipartUpload"),
    Step("upload-part", "UploadPart"),
    Step("record", "PutObject", "*/log/0*.json"),
    Step("first-completion", "CompleteMultipartUpload"),
    Step("last-completion", "CompleteMultipartUpload", skip=FILES - 1),
    Step("end", "PutObject", "*/log/*.end"),
    Step("checkpoint", "PutObject", "*/log/checkpoint.json", later=True),
)
GLUE_STEPS = (
    Step("glue-table", "CreateTable"),
    Step("glue-partitions", "BatchCreatePartition"),
    Step("catalog-mark", "PutObject", "*/log/*.cat"),
)


def step_kills(world: World, *, tables: int) -> list[Case]:
    """Return a case for each step, before and after, of syncs of so many tables."""
    steps = STEPS + GLUE_STEPS if world.glue else STEPS
    cases = []
    for step in steps:
        for after in (False, True):
            name = f"kill{tables}-{step.name}-{'after' if after else 'before'}"
            chosen = world.random.randrange(tables)
            cases.append(_step_kill(name, step, tables, chosen, after=after))
    return cases


def _step_kill(name: str, step: Step, tables: int, chosen: int, *, after: bool) -> Case:
    names = _names(name, tables)

    def trouble(world: World, case: Case) -> list[Told]:
        return [_killed(world, case, step, names[chosen], after=after)]

    kind = f"kill -9, {tables} table{'s' if tables > 1 else ''}"
    before = (names[chosen],) if step.later else ()
    return Case(kind, name, names, trouble, before=before)


def _killed(world: World, case: Case, step: Step, table: str, *, after: bool) -> Told:
    """Kill a sync at the step of one table; the others are wherever they happen to be by then."""
    folder = world.write(case.name, case.tables)
    victim = Victim()
    world.on(
        step.operation,
        victim.kill_after if after else victim.kill_before,
        tables=[table],
        key=step.key,
        skip=step.skip,
        times=1,
    )
    told = victim.run(Sync(world, folder, JOB, spark_home=world.killed_spark))
    if told.code is not None:
        case.findings.problems.append(f"{case.name}: its request never came, exit {told.code}")
    elif not victim.had_spark:
        case.findings.problems.append(f"{case.name}: the command was killed before Spark began")
    return told


class Victim:
    """The sync that a rule kills: it is started after the rule is there."""

    def __init__(self) -> None:
        self._started = threading.Event()
        self._killed = threading.Event()
        self._sync: Sync | None = None
        self.had_spark = False
        """Whether the kill struck a command that had started Spark."""
        self.late_status: int | None = None
        """What a request was answered that arrived after its sender's death."""

    def run(self, sync: Sync) -> Told:
        """Wait for the end of the sync, by whatever cause."""
        self._sync = sync
        self._started.set()
        told = sync.end()
        if told.code is None:
            # The first to die is the command, and that is what ended.
            self._killed.wait(LATE_SECONDS)
        return told

    def kill(self) -> None:
        """kill -9 of the sync's processes, all of them."""
        self._started.wait()
        assert self._sync is not None
        self.had_spark = self._sync.kill()
        self._killed.set()

    def kill_before(self, request: Request, forward: Forward) -> Response:
        """Kill; the server never sees the request."""
        self.kill()
        raise Drop

    def kill_after(self, request: Request, forward: Forward) -> Response:
        """Let the server act, then kill; nobody gets the answer."""
        forward(request)
        self.kill()
        raise Drop

    def kill_and_hold(self, release: threading.Event, done: threading.Event) -> Action:
        """Kill; the request reaches the server much later, when `release` is set."""

        def act(request: Request, forward: Forward) -> Response:
            self.kill()
            release.wait(LATE_SECONDS)
            self.late_status = forward(request).status
            done.set()
            raise Drop

        return act


def twice_killed(world: World) -> list[Case]:
    """Return cases in which the sync that repairs is killed as well."""
    found = []
    for first, second in (
        ("record", "first-completion"),
        ("first-completion", "last-completion"),
        ("last-completion", "end"),
    ):
        name = f"twice-{first}-{second}"

        def trouble(
            world: World, case: Case, first: str = first, second: str = second
        ) -> list[Told]:
            return _twice(world, case, _step(first), _step(second))

        found.append(Case("kill -9, and of its repair", name, _names(name, 1), trouble))
    return found


def _twice(world: World, case: Case, first: Step, second: Step) -> list[Told]:
    told = [_killed(world, case, first, case.tables[0], after=True)]
    folder = world.folder / case.name
    victim = Victim()
    # A completion that was answered is asked for once more: the record does not say so.
    world.on(
        second.operation,
        victim.kill_after,
        tables=case.tables,
        key=second.key,
        skip=second.skip,
        times=1,
    )
    return [*told, victim.run(Sync(world, folder, "repair"))]


def late_requests(world: World) -> list[Case]:
    """Return cases in which a request arrives long after its sender was killed."""
    found = []
    for name in ("record", "first-completion", "end"):

        def trouble(world: World, case: Case, name: str = name) -> list[Told]:
            return _late(world, case, _step(name))

        found.append(Case("late request of a dead", f"late-{name}", _names(name, 1), trouble))
    return found


def _late(world: World, case: Case, step: Step) -> list[Told]:
    folder = world.write(case.name, case.tables)
    victim, release, done = Victim(), threading.Event(), threading.Event()
    action = victim.kill_and_hold(release, done)
    rule = world.on(step.operation, action, tables=case.tables, key=step.key, times=1)
    told = [victim.run(Sync(world, folder, JOB))]
    world.off(rule)
    told.append(run_sync(world, folder, "overtaker"))
    release.set()
    if not done.wait(60):
        case.findings.problems.append(f"{case.name}: the late request never arrived")
    if step.name == "record" and victim.late_status != 412:
        case.findings.problems.append(f"{case.name}: the late record got {victim.late_status}")
    return told


def _step(name: str) -> Step:
    return next(step for step in STEPS if step.name == name)


def _names(case: str, tables: int) -> tuple[str, ...]:
    return tuple(f"{case}_{number}".replace("-", "_") for number in range(tables))
