"""Plays one table's plan: writers in trouble, the run that mends it, the comparison."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.faults.protocol.lines import Line
from tests.faults.protocol.oracle import Telling, judge
from tests.faults.protocol.plan import Episode, Trouble, Writer
from tests.faults.protocol.world import RUN_SECONDS, Run, World


@dataclass
class Result:
    """What an episode showed. `struck` and `where`: how often which fault was injected, by its
    name and by the operation it struck."""

    episode: Episode
    struck: Counter[str] = field(default_factory=Counter)
    where: Counter[str] = field(default_factory=Counter)
    rounds: int = 0
    attempts: int = 0
    problems: list[str] = field(default_factory=list)
    lost: int = 0
    doubled: int = 0
    uploads: int = 0
    told: Counter[str] = field(default_factory=Counter)


class Player:
    """One episode on its way."""

    def __init__(self, world: World, episode: Episode, lines: list[Line]) -> None:
        self.result = Result(episode)
        self._world = world
        self._episode = episode
        self._lines = lines
        self._bucket = world.bucket()
        self._random = random.Random(episode.seed)  # noqa: S311
        self._tellings: list[Telling] = []
        self._aborted: set[str] = set()
        self._table = f"t{self._bucket.name.removeprefix('lake-')}"

    def play(self) -> Result:
        """Play all of it, up to the first violation."""
        for number, trouble in enumerate(self._episode.troubles, 1):
            self._suffer(trouble)
            if trouble.checked:
                self._mend(trouble)
                self._judge()
            if self.result.problems:
                self.result.problems[0] = f"trouble {number}: {self.result.problems[0]}"
                break
        return self.result

    def _suffer(self, trouble: Trouble) -> None:
        runs: list[tuple[Writer, str, Run]] = []
        for writer, line in zip(trouble.writers, self._lines, strict=False):
            line.prepare(writer.fault)
            attempt = self._attempt()
            run = self._fork(line.endpoint, [_load(writer, attempt)], fresh=writer.fresh)
            assert run.pid is not None
            line.connect(run.pid)
            runs.append((writer, attempt, run))
        if trouble.meanwhile is not None:
            self._overtake(trouble, trouble.meanwhile, runs[0][2])
        for writer, attempt, run in runs:
            self._hear(writer, attempt, run)
        for writer, line in zip(trouble.writers, self._lines, strict=False):
            line.wait_until_quiet()
            if writer.fault is not None and line.struck:
                self.result.struck[writer.fault.what] += 1
                self.result.where[line.where] += 1
        self.result.rounds += len(trouble.writers) > 1
        if trouble.late == "before":
            self._deliver()
        if trouble.meanwhile is None:
            self._expire(trouble)

    def _overtake(self, trouble: Trouble, meanwhile: Writer, run: Run) -> None:
        """Let others load and clean up while the first writer stands still."""
        line = self._lines[0]
        while not line.frozen.wait(0.002) and not run.gone.is_set():
            pass
        try:
            self._expire(trouble)
            self._untroubled(meanwhile, trouble)
        finally:
            line.thawed.set()

    def _expire(self, trouble: Trouble) -> None:
        """Abort uploads as a lifecycle rule would."""
        if trouble.expire == "none":
            return
        uploads = self._bucket.uploads()
        if trouble.expire == "some" and uploads:
            uploads = self._random.sample(uploads, self._random.randint(1, len(uploads)))
        for upload in uploads:
            if self._bucket.abort(upload):
                self._aborted.add(upload.upload_id)
        self.result.struck["expire"] += bool(uploads)

    def _deliver(self) -> None:
        for line in self._lines:
            line.deliver()

    def _mend(self, trouble: Trouble) -> None:
        self._untroubled(trouble.following, trouble)
        if any(line.late for line in self._lines):
            self._deliver()
            self._run_alone([{"do": "recover"}])

    def _untroubled(self, writer: Writer, trouble: Trouble) -> None:
        """Run as the next run does, then `recover`; where a person must decide, decide."""
        attempt = self._attempt()
        told = self._run_alone([_load(writer, attempt), {"do": "recover"}])
        self._note(writer, attempt, told[0])
        if told[0].get("error") == "RecordDamaged":
            self._decide(trouble, told[1].get("damaged", []))
            attempt = self._attempt()
            told = self._run_alone([_load(writer, attempt), {"do": "recover"}])
            self._note(writer, attempt, told[0])
        if told[0]["said"] not in ("loaded", "no-op") and not self._may_fail(told[0]):
            self.result.problems.append(f"an untroubled run was told {told[0]}")
        if told[0].get("stale"):
            self.result.problems.append(f"an untroubled run was told {told[0]}")
        if told[1]["said"] != "recovered":
            self.result.problems.append(f"`recover` was told {told[1]}")

    def _may_fail(self, told: dict[str, Any]) -> bool:
        """A job whose uploads were aborted by others is void, and so is its id."""
        return bool(self._aborted) and bool(told.get("spent"))

    def _decide(self, trouble: Trouble, damaged: Iterable[str]) -> None:
        for job in damaged:
            told = self._run_alone([{"do": trouble.decision, "job": job}])[0]
            self.result.told[trouble.decision] += 1
            if told["said"] != "decided":
                self.result.problems.append(f"`recover --{trouble.decision} {job}`: {told}")

    def _run_alone(self, actions: list[dict[str, Any]]) -> list[dict[str, Any]]:
        run = self._fork(self._world.endpoint, actions, fresh=False)
        self._wait(run)
        told = run.told()
        run.answer.unlink(missing_ok=True)
        if len(told) < len(actions):
            self.result.problems.append(f"a process ended with {run.code} after {told}")
            told += [{"said": "crashed"}] * (len(actions) - len(told))
        return told

    def _fork(self, endpoint: str, actions: list[dict[str, Any]], *, fresh: bool) -> Run:
        self.result.attempts += 1
        return self._world.server.start(
            {
                "endpoint": endpoint,
                "actions": actions,
                "fresh": fresh,
                "bucket": self._bucket.name,
                "table": self._table,
                "strategy": self._episode.strategy,
                "handling": self._episode.handling,
                "glue": self._episode.glue,
            }
        )

    def _attempt(self) -> str:
        return f"attempt-{self.result.attempts + 1}"

    def _hear(self, writer: Writer, attempt: str, run: Run) -> None:
        self._wait(run)
        for told in run.told():
            self._note(writer, attempt, told)
        run.answer.unlink(missing_ok=True)

    def _note(self, writer: Writer, attempt: str, told: dict[str, Any]) -> None:
        self.result.told[told["said"]] += 1
        self._tellings.append(Telling(writer.job, attempt, told["said"], told))

    def _wait(self, run: Run) -> None:
        if not run.gone.wait(RUN_SECONDS):
            self.result.problems.append(f"a process does not end: {run.name}")
            raise RuntimeError(f"{self._episode}: {run.name} does not end")
        if run.code not in (0, -9):
            self.result.problems.append(f"a process ended with {run.code}")

    def _judge(self) -> None:
        verdict = judge(
            self._bucket,
            self._table,
            self._tellings,
            aborted=self._aborted,
            athena=self._world.athena if self._episode.glue else None,
        )
        self.result.problems += verdict.problems
        self.result.lost += verdict.lost
        self.result.doubled += verdict.doubled
        self.result.uploads += verdict.uploads


def play(world: World, episode: Episode) -> Result:
    """Play an episode in a bucket of its own."""
    most = max(len(trouble.writers) for trouble in episode.troubles)
    with world.borrow(most) as lines:
        return Player(world, episode, lines).play()


def _load(writer: Writer, attempt: str) -> dict[str, Any]:
    return {
        "do": "load",
        "job": writer.job,
        "pipeline": writer.pipeline,
        "upto": writer.upto,
        "attempt": attempt,
    }
