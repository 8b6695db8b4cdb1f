"""Distribution of test files: Spark starts in the first two workers alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests import scheduler
from tests.scheduler import FewSparkSessions


class Worker:
    """A worker as the scheduler sees it; it runs what it is sent at once."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.tests: list[int] = []
        self.shutting_down = False

    def send_runtest_some(self, tests: list[int]) -> None:
        """Take tests, by their numbers in the collection."""
        self.tests += tests

    def shutdown(self) -> None:
        """End after the tests that were sent."""
        self.shutting_down = True


def _distributed(files: list[str], monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the files of each of three workers, which take turns."""
    monkeypatch.setattr(scheduler, "needs_spark", lambda file: file.startswith("spark"))
    option = SimpleNamespace(loadscopereorder=False)
    config = SimpleNamespace(getvalue=lambda _: ["popen"] * 3, option=option)
    plan: Any = FewSparkSessions(config, None)
    plan.log = lambda *_: None
    workers = [Worker(f"gw{number}") for number in range(3)]
    tests = [f"{file}::test_{number}" for file in files for number in range(3)]
    for worker in workers:
        plan.add_node(worker)
        plan.add_node_collection(worker, tests)
    plan.schedule()
    done = [0, 0, 0]
    while not all(done[n] == len(worker.tests) for n, worker in enumerate(workers)):
        for number, worker in enumerate(workers):
            if done[number] < len(worker.tests):
                plan.mark_test_complete(worker, worker.tests[done[number]])
                done[number] += 1
    assert plan.tests_finished
    return [
        list(dict.fromkeys(tests[number].split("::")[0] for number in worker.tests))
        for worker in workers
    ]


def test_files_that_need_spark_go_to_two_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [f"{kind}_{number}.py" for number in range(6) for kind in ("spark", "plain")]
    *starting, other = _distributed(files, monkeypatch)
    assert all(file.startswith("plain") for file in other)
    assert sorted([*other, *starting[0], *starting[1]]) == sorted(files)
    assert all(run[0].startswith("spark") for run in starting)


def test_workers_with_spark_help_when_no_file_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [f"plain_{number}.py" for number in range(9)]
    assert all(len(run) >= 2 for run in _distributed(files, monkeypatch))


def test_worker_without_files_of_its_kind_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [f"spark_{number}.py" for number in range(5)]
    first, second, other = _distributed(files, monkeypatch)
    assert other == []
    assert sorted([*first, *second]) == files
