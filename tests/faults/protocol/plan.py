"""What happens to one table, decided by a class and a seed before anything runs.

The same seed gives the same plan; what the processes make of it also depends on their timing.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from tests.faults.protocol.rows import append_rows
from tests.faults.protocol.steps import (
    COMPLETION,
    GLUE_STEPS,
    MENDING_STEPS,
    PUBLISHING_STEPS,
    S3_STEPS,
    STAGING_STEPS,
    STATUSES,
    STS_STEP,
    Steps,
)

What = Literal[
    "kill", "kill-late", "status", "half-success", "drop-request", "drop-answer", "duplicate",
    "late-duplicate", "delay", "truncate", "freeze", "hold",
]  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """One fault of one writer: from the `ordinal`-th matching request on, `times` times.

    `after`: the server has acted. Service `glue` and `sts` have their own operations.
    """

    what: What
    operation: str = "*"
    key: str = "*"
    ordinal: int = 1
    times: int = 1
    after: bool = False
    status: int = 500
    code: str = "InternalError"


@dataclass(frozen=True)
class Writer:
    """One attempt of one job. `upto`: an incremental job, which loads up to that number.

    `fresh` assumes the role anew, as every process of the product does.
    """

    job: str
    pipeline: str = "shop"
    upto: int | None = None
    fresh: bool = False
    fault: Fault | None = None


@dataclass(frozen=True)
class Trouble:
    """Writers at once, what is done to them, and the untroubled run that must mend it.

    `expire` aborts open uploads as a lifecycle rule would, once the writers ended or stand still.
    `meanwhile` runs while a frozen writer stands still. `late` requests arrive before or after
    the untroubled run. `checked`: is all compared now, or only after the next trouble?
    """

    writers: tuple[Writer, ...]
    following: Writer
    meanwhile: Writer | None = None
    expire: Literal["none", "all", "some"] = "none"
    late: Literal["before", "after"] = "before"
    decision: Literal["void", "accept"] = "void"
    checked: bool = True


@dataclass(frozen=True)
class Episode:
    """The life of one table."""

    name: str
    seed: int
    troubles: tuple[Trouble, ...]
    strategy: Literal["NONE", "DAY", "HOUR", "SYNC_ID"] = "HOUR"
    handling: Literal["FAIL", "APPEND"] = "APPEND"
    glue: bool = False


class _Dice:
    """Draws the parts of an episode."""

    def __init__(self, seed: int, glue: bool) -> None:
        self.random = random.Random(seed)  # noqa: S311
        self.glue = glue and self.random.random() < 0.4
        self.incremental = self.random.random() < 0.4
        self._jobs = 0
        self._upto = 0

    def writer(
        self,
        job: str | None = None,
        what: What | None = None,
        *,
        times: int = 1,
        among: Steps | None = None,
    ) -> Writer:
        """Return a writer of a new job, or of `job` again; `what` strikes it, at a random step or
        at one of `among`."""
        if job is None:
            self._jobs += 1
            job = f"job-{self._jobs}"
        upto = None
        if self.incremental and self.random.random() < 0.8:
            self._upto += self.random.choice((0, 5, 9, 13))
            upto = self._upto
        if what is None:
            return Writer(job, upto=upto)
        # How many files an incremental job will have depends on what came in before it.
        files = len(append_rows(job)) if upto is None else 2
        fault = self._fault(what, times, among or self._steps(what, files), files)
        return Writer(job, upto=upto, fresh=fault.operation == "AssumeRole", fault=fault)

    def following(self, earlier: tuple[Writer, ...]) -> Writer:
        """Return the run after them: the same job again, or the next one."""
        again = self.random.random() < 0.5
        return self.writer(self.random.choice(earlier).job if again else None)

    def _steps(self, what: What, files: int) -> Steps:
        """Return the requests among which one is drawn."""
        if what == "half-success":
            return (COMPLETION,)
        number = self.random.random()
        if number < 0.35:
            requests = 5 + 3 * files + (4 if self.glue else 0)
            return (("*", "*", range(1, requests + 1)),)
        if number < 0.4 and what not in ("freeze", "hold", "delay", "kill-late"):
            return (STS_STEP,)
        if number < 0.46:
            return MENDING_STEPS
        if self.glue and number < 0.9:
            return GLUE_STEPS
        return S3_STEPS if files else S3_STEPS[:4]

    def _fault(self, what: What, times: int, steps: Steps, files: int) -> Fault:
        operation, key, ordinals = self.random.choice(steps)
        ordinal = self.random.choice(ordinals or range(1, max(files, 1) + 1))
        status, code = self.random.choice(STATUSES)
        after = self.random.random() < 0.5
        return Fault(what, operation, key, ordinal, times, after, status, code)


def _kill(dice: _Dice) -> tuple[Trouble, ...]:
    troubles = []
    for _ in range(dice.random.randint(2, 5)):
        what: What = "kill" if dice.random.random() < 0.8 else "kill-late"
        writer = dice.writer(what=what)
        troubles.append(_trouble(dice, (writer,), chained=True))
    return tuple(troubles)


def _fault(*whats: What, times: tuple[int, ...] = (1,)) -> Callable[[_Dice], tuple[Trouble, ...]]:
    def draw(dice: _Dice) -> tuple[Trouble, ...]:
        troubles = []
        for _ in range(dice.random.randint(2, 5)):
            writer = dice.writer(what=dice.random.choice(whats), times=dice.random.choice(times))
            troubles.append(_trouble(dice, (writer,), chained=False))
        return tuple(troubles)

    return draw


def _trouble(dice: _Dice, writers: tuple[Writer, ...], *, chained: bool) -> Trouble:
    return Trouble(
        writers,
        dice.following(writers),
        late=dice.random.choice(("before", "after")),
        decision=dice.random.choice(("void", "accept")),
        checked=not chained or dice.random.random() < 0.6,
    )


def _zombie(dice: _Dice) -> tuple[Trouble, ...]:
    troubles = []
    for _ in range(dice.random.randint(1, 3)):
        among = STAGING_STEPS if dice.random.random() < 0.5 else None
        zombie = dice.writer(what=dice.random.choice(("freeze", "hold")), among=among)
        same = dice.random.random() < 0.5
        troubles.append(
            Trouble(
                (zombie,),
                dice.following((zombie,)),
                meanwhile=dice.writer(zombie.job if same else None),
                expire=dice.random.choice(("none", "none", "none", "all", "some")),
                decision=dice.random.choice(("void", "accept")),
            )
        )
    return tuple(troubles)


def _expire(dice: _Dice) -> tuple[Trouble, ...]:
    troubles = []
    for _ in range(dice.random.randint(1, 3)):
        among = PUBLISHING_STEPS if dice.random.random() < 0.7 else None
        writer = dice.writer(what="kill", among=among)
        troubles.append(
            Trouble(
                (writer,),
                dice.following((writer,)),
                expire=dice.random.choice(("all", "some")),
                decision=dice.random.choice(("void", "accept")),
                checked=dice.random.random() < 0.5,
            )
        )
    return tuple(troubles)


TOGETHER: tuple[What, ...] = (
    "kill",
    "status",
    "drop-answer",
    "drop-request",
    "duplicate",
    "delay",
)


def _together(*, faults: bool) -> Callable[[_Dice], tuple[Trouble, ...]]:
    def draw(dice: _Dice) -> tuple[Trouble, ...]:
        troubles = []
        for _ in range(2):
            shared = f"shared-{dice.random.randrange(10**6)}"
            same = dice.random.choice((0, 0, 8, 3))
            writers = []
            for number in range(8):
                what: What | None = None
                if faults and dice.random.random() < 0.35:
                    what = dice.random.choice(TOGETHER)
                writers.append(dice.writer(shared if number < same else None, what))
            troubles.append(Trouble(tuple(writers), dice.following(tuple(writers))))
        return tuple(troubles)

    return draw


CLASSES: dict[str, Callable[[_Dice], tuple[Trouble, ...]]] = {
    "kill": _kill,
    "status": _fault("status", "status", "status", "half-success", times=(1, 1, 2, 4, 8, 40)),
    "lost": _fault("drop-answer", "drop-request", times=(1, 1, 2, 6)),
    "duplicate": _fault("duplicate", "late-duplicate"),
    "delay": _fault("delay", times=(1, 3)),
    "truncate": _fault("truncate", times=(1, 1, 2, 6)),
    "zombie": _zombie,
    "expired": _expire,
    "together": _together(faults=False),
    "together-faults": _together(faults=True),
}
"""What each class does to its tables."""


def plan_episode(name: str, seed: int, *, glue: bool) -> Episode:
    """Return the plan of one table. `glue`: some tables have a catalog."""
    dice = _Dice(seed, glue)
    troubles = CLASSES[name](dice)
    return Episode(
        name,
        seed,
        # Nothing is left unchecked at the end.
        (*troubles[:-1], _checked(troubles[-1])),
        strategy=dice.random.choice(("NONE", "DAY", "HOUR", "SYNC_ID")),
        handling=dice.random.choice(("FAIL", "APPEND")),
        glue=dice.glue,
    )


def _checked(trouble: Trouble) -> Trouble:
    return replace(trouble, checked=True)
