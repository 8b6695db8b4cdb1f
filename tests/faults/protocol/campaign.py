"""Many episodes on a few emulators, until every class has struck as often as asked."""

from __future__ import annotations

import multiprocessing
import multiprocessing.synchronize
import queue
import random
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.protocol.episode import Result, play
from tests.faults.protocol.plan import plan_episode
from tests.faults.protocol.world import SOURCES, World, make_world

FULL: dict[str, int] = {
    "kill": 2000,
    "status": 620,
    "lost": 440,
    "duplicate": 280,
    "delay": 110,
    "truncate": 160,
    "zombie": 240,
    "expired": 150,
    "together": 250,
    "together-faults": 250,
}
"""How often each class strikes in a whole campaign: 2,000 kills; 2,000 faults injected, zombies and
expired uploads among them; 500 rounds of eight."""

EPISODES_A_WORLD = 400
"""An emulator keeps everything in memory, so it is replaced after so many tables."""


@dataclass(frozen=True)
class Channels:
    """Between the campaign and its processes: class and seed there, results or a fault of the
    harness itself back."""

    tasks: multiprocessing.Queue[tuple[str, int]]
    results: multiprocessing.Queue[Result | str]
    over: multiprocessing.synchronize.Event

    def ended(self) -> bool:
        """Whether there is nothing more to do; also when the campaign was killed."""
        parent = multiprocessing.parent_process()
        return self.over.is_set() or (parent is not None and not parent.is_alive())


@dataclass(frozen=True)
class Settings:
    """How a campaign is run. `sources` holds the `lakeload_jobs` to be tried."""

    seed: int
    targets: Mapping[str, int]
    emulators: int = 2
    lanes: int = 4
    glue: bool = True
    sources: Path = SOURCES
    patience: int = 10
    """So many violations end the campaign."""


@dataclass
class Tally:
    """What the episodes of one class showed."""

    episodes: int = 0
    times: int = 0
    attempts: int = 0
    lost: int = 0
    doubled: int = 0
    uploads: int = 0
    violations: int = 0
    struck: Counter[str] = field(default_factory=Counter)
    where: Counter[str] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)
    seconds: float = 0

    def add(self, result: Result) -> None:
        """Count an episode."""
        self.episodes += 1
        self.attempts += result.attempts
        self.lost += result.lost
        self.doubled += result.doubled
        self.uploads += result.uploads
        self.violations += bool(result.problems)
        self.struck += result.struck
        self.where += result.where
        self.told += result.told
        together = result.episode.name.startswith("together")
        self.times += result.rounds if together else result.struck.total()


def seeds(seed: int, name: str) -> Iterator[int]:
    """Yield the seeds of a class's episodes."""
    dice = random.Random(f"{seed} {name}")  # noqa: S311
    while True:
        yield dice.randrange(10**9)


def campaign(settings: Settings) -> Iterator[Result]:
    """Yield results as they come, until every class has struck often enough."""
    context = multiprocessing.get_context("spawn")
    channels = Channels(context.Queue(), context.Queue(), context.Event())
    workers = [
        context.Process(target=_work, args=(settings, channels)) for _ in range(settings.emulators)
    ]
    for worker in workers:
        worker.start()
    try:
        yield from _dispatch(settings, channels)
    finally:
        channels.over.set()
        # A process that waits to hand over what nobody reads would never end.
        channels.results.cancel_join_thread()
        channels.tasks.cancel_join_thread()
        for worker in workers:
            worker.join(60)
            if worker.is_alive():
                worker.terminate()


def _dispatch(settings: Settings, channels: Channels) -> Iterator[Result]:
    left = dict(settings.targets)
    source = {name: seeds(settings.seed, name) for name in left}
    under_way: Counter[str] = Counter()
    violations = 0
    room = settings.emulators * settings.lanes * 2
    while any(count > 0 for count in left.values()) or under_way.total():
        while under_way.total() < room and (name := _next(left, under_way)):
            channels.tasks.put((name, next(source[name])))
            under_way[name] += 1
        result = channels.results.get(timeout=300)
        if isinstance(result, str):
            raise RuntimeError(result)
        name = result.episode.name
        under_way[name] -= 1
        tally = Tally()
        tally.add(result)
        left[name] -= tally.times
        yield result
        violations += bool(result.problems)
        if violations >= settings.patience:
            return


def _next(left: Mapping[str, int], under_way: Mapping[str, int]) -> str | None:
    """Return the class that is furthest behind; an episode strikes about twice."""
    waiting = {name: count - 2 * under_way[name] for name, count in left.items() if count > 0}
    name = max(waiting, key=lambda name: waiting[name], default=None)
    return name if name is not None and waiting[name] > 0 else None


def _work(settings: Settings, channels: Channels) -> None:
    """Play episodes in one world after the other until the campaign is over."""
    while not channels.ended():
        try:
            with make_world(lines=8 + settings.lanes, sources=settings.sources) as world:
                _play_in(world, settings, channels)
        except Exception:  # noqa: BLE001 whatever it is, the campaign must hear of it
            channels.results.put(traceback.format_exc())
            break
    channels.results.cancel_join_thread()


def _play_in(world: World, settings: Settings, channels: Channels) -> None:
    places = threading.Semaphore(EPISODES_A_WORLD)

    def lane() -> None:
        while not channels.ended() and places.acquire(blocking=False):
            try:
                task = channels.tasks.get(timeout=0.5)
            except queue.Empty:
                places.release()
                continue
            try:
                channels.results.put(play(world, plan_episode(*task, glue=settings.glue)))
            except Exception:  # noqa: BLE001 whatever it is, the campaign must hear of it
                channels.results.put(f"{task}: {traceback.format_exc()}")
                return

    threads = [threading.Thread(target=lane) for _ in range(settings.lanes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def tally(results: Iterator[Result]) -> Iterator[tuple[Result, dict[str, Tally]]]:
    """Yield each result with what has been counted so far."""
    started = time.monotonic()
    tallies: dict[str, Tally] = {}
    for result in results:
        one = tallies.setdefault(result.episode.name, Tally())
        one.add(result)
        one.seconds = time.monotonic() - started
        yield result, tallies
