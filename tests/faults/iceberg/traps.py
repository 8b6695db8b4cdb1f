"""Many ends by one: each table of a sync is held at a place of its own; then everything ends."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping

from tests.faults.iceberg.steps import Point, Step
from tests.faults.product.syncs import Sync, Told
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import Drop, Forward, Response

START_SECONDS = 300.0
"""For the first table to be held: Spark has to start."""
GATHER_SECONDS = 50.0
"""For the others to follow: less than a client waits for the answer to a held request."""


class Traps:
    """Holds each table's request at its place until `spring`, and those of the tables `late` even
    longer: the requests of the dead arrive when `deliver` says so."""

    def __init__(self, places: Mapping[str, Point], *, late: Collection[str] = ()) -> None:
        self._places = dict(places)
        self._late = frozenset(late)
        self._delivered = threading.Event()
        self.statuses: dict[str, int] = {}
        """What late requests were answered, by table."""
        self._counts: Counter[Step] = Counter()
        self._held: set[str] = set()
        self._sprung = threading.Event()
        self._news = threading.Condition()

    @property
    def held(self) -> set[str]:
        """The tables that arrived at their places."""
        return set(self._held)

    def act(self, step: Step, request: Request, forward: Forward) -> Response | None:
        """Let a request pass, or hold it: before or after the server acts on it."""
        place = self._places.get(step.table)
        if place is None or self._sprung.is_set():
            # What comes now is of another sync: the one to be held is dead.
            return None
        with self._news:
            self._counts[step] += 1
            arrived = step.kind == place.kind and self._counts[step] == place.number
            # A client that loses its patience sends the held request once more.
            again = step.table in self._held and step.kind == place.kind
        if not arrived and not again:
            return None
        if arrived and place.after:
            forward(request)
        with self._news:
            self._held.add(step.table)
            self._news.notify_all()
        self._sprung.wait(START_SECONDS)
        if step.table in self._late and arrived:
            self._delivered.wait(START_SECONDS)
            status = forward(request).status
            with self._news:
                self.statuses[step.table] = status
                self._news.notify_all()
        raise Drop

    def spring(self, sync: Sync, end: Callable[[Sync], object] = Sync.kill) -> Told:
        """Wait until every table is held, end the sync, and let go of the requests."""
        self._wait_for(1, START_SECONDS, sync)
        self._wait_for(len(self._places), GATHER_SECONDS, sync)
        if sync.running:
            end(sync)
        told = sync.end()
        self._sprung.set()
        return told

    def deliver(self) -> None:
        """Let the held requests reach the server, and wait for its answers."""
        self._delivered.set()
        end = time.monotonic() + GATHER_SECONDS
        with self._news:
            while len(self.statuses) < len(self._held & self._late) and time.monotonic() < end:
                self._news.wait(0.2)

    def _wait_for(self, count: int, seconds: float, sync: Sync) -> None:
        end = time.monotonic() + seconds
        with self._news:
            while len(self._held) < count and sync.running and time.monotonic() < end:
                self._news.wait(0.2)
