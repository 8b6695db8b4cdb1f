"""Jobs one after another in one driver, without Spark."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakeload_jobs.jobs import rounds, stop_signals


class Node:
    """An object that only the collector of cycles frees, as Java's objects are kept by."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def collector() -> Iterator[None]:
    """Python's own collector comes late. What other tests left, and then the driver, stays frozen:
    each search here, and every later one, would go through all of it."""
    gc.disable()
    gc.freeze()
    yield
    gc.enable()


@pytest.mark.usefixtures("collector")
def test_job_that_has_ended_leaves_no_object_for_the_next(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[weakref.ref[Node]] = []
    left: list[int] = []

    def attempt(*_: object) -> None:
        left.append(sum(one() is not None for one in made))
        made.append(weakref.ref(Node()))

    monkeypatch.setattr(rounds, "attempt", attempt)
    monkeypatch.setattr(stop_signals, "install", lambda: None)
    pipe = tmp_path / "jobs"
    pipe.write_text("a.json\nb.json\nc.json\n")

    assert rounds.main(str(pipe)) == 0
    assert left == [0, 0, 0]
