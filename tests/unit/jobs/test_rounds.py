"""Jobs one after another in one driver, without Spark."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lakeload.launch.run_folder import RunFolder
from lakeload_jobs.contract.result import RunResult
from lakeload_jobs.jobs import rounds, stop_signals
from lakeload_jobs.sources.files.spark import s3a
from tests.unit.launch.specs import SYNCED, job_spec


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
    monkeypatch.setattr(s3a, "_kept_in", None)
    pipe = tmp_path / "jobs"
    pipe.write_text("a.json\nb.json\nc.json\n")

    assert rounds.main(str(pipe)) == 0
    assert left == [0, 0, 0]


class FakeConnection:
    """A connection to a destination, which keeps the credentials that it was made with."""

    aws = None

    def __init__(self) -> None:
        self.closed = False
        self.session = SimpleNamespace(of_job=lambda spec: self)

    def close(self, *, jvm_stays: bool) -> None:
        assert jvm_stays
        self.closed = True


def test_connection_is_kept_until_the_command_line_says_forget(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[FakeConnection] = []
    used: list[FakeConnection] = []
    spec = job_spec(RunFolder(tmp_path))

    def connect(*_: object) -> FakeConnection:
        made.append(FakeConnection())
        return made[-1]

    def load_tables(_: object, spec: Any, __: object, connection: Any, at: object) -> RunResult:
        used.append(connection.session)
        return RunResult(1, spec.job_id, spec.attempt_id, "SUCCEEDED", SYNCED, SYNCED, ())

    def attempt(name: str, work: Any, *_: object) -> None:
        work(None, replace(spec, job_id=name), None)

    monkeypatch.setattr(rounds, "connect", connect)
    monkeypatch.setattr(rounds, "load_tables", load_tables)
    monkeypatch.setattr(rounds, "attempt", attempt)
    monkeypatch.setattr(stop_signals, "install", lambda: None)
    monkeypatch.setattr(s3a, "_kept_in", None)
    pipe = tmp_path / "jobs"
    pipe.write_text("forget\na\nb\nforget\nforget\nc\n")

    assert rounds.main(str(pipe)) == 0
    assert used == [made[0], made[0], made[1]]
    assert [one.closed for one in made] == [True, True]
