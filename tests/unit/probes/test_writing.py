"""Nothing is made after the end of a test."""

from __future__ import annotations

import threading

import pytest

from lakeload.probes.runner import Deadline, ProbeFailed, Writing


def test_cleanup_waits_for_running_writes_and_blocks_new_ones() -> None:
    writing, begun, answered = Writing(), threading.Event(), threading.Event()
    made: list[str] = []

    def make() -> None:
        with writing:
            begun.set()
            answered.wait(10)
            made.append("a branch")

    thread = threading.Thread(target=make)
    thread.start()
    assert begun.wait(10)
    threading.Timer(0.1, answered.set).start()
    with writing.ended(Deadline(10)):
        assert made == ["a branch"]
    thread.join()
    with pytest.raises(ProbeFailed, match="the test is over"):
        make()
    assert made == ["a branch"]


def test_cleanup_wait_has_a_limit() -> None:
    writing, answered = Writing(), threading.Event()

    def make() -> None:
        with writing:
            begun.set()
            answered.wait(10)

    begun = threading.Event()
    thread = threading.Thread(target=make)
    thread.start()
    assert begun.wait(10)
    with writing.ended(Deadline(0.1)):
        assert thread.is_alive()
    answered.set()
    thread.join()
