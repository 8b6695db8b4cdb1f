"""Delivery of reports: order, attempts, and an end that does not wait for a receiver."""

from __future__ import annotations

import threading
import time

import pytest

from lakeload.reporting.delivery import Delivery, Rejected, Send


def delivery(send: Send[int]) -> Delivery[int]:
    return Delivery(lambda: send)


def finished(given: Delivery[int], seconds: float = 20) -> str | None:
    given.finish(time.monotonic() + seconds)
    return given.problem


def test_reports_arrive_in_order_after_a_receiver_that_was_away() -> None:
    got: list[int] = []
    refusals = iter([ConnectionError(), TimeoutError()])

    def send(report: int) -> None:
        if (error := next(refusals, None)) is not None:
            raise error
        got.append(report)

    given = delivery(send)
    for report in (1, 2, 3):
        given.put(report)
    while len(got) < 3:
        time.sleep(0.01)
    assert finished(given) is None
    assert got == [1, 2, 3]


def test_rejected_report_leaves_the_others_alone() -> None:
    got: list[int] = []

    def send(report: int) -> None:
        if report == 1:
            raise Rejected("it responded with HTTP 422")
        got.append(report)

    given = delivery(send)
    given.put(1)
    given.put(2)
    assert finished(given) == "1 of 2 were not delivered: it responded with HTTP 422"
    assert got == [2]


def test_end_gives_up_a_receiver_that_is_away_after_two_attempts() -> None:
    attempts: list[int] = []

    def send(report: int) -> None:
        attempts.append(report)
        raise ConnectionError("http://user:secret@host")

    given = delivery(send)
    given.put(1)
    given.put(2)
    assert finished(given) == "2 of 2 were not delivered: it cannot be reached"
    assert set(attempts) == {1}
    assert len(attempts) <= 3


def test_end_waits_no_longer_than_asked_for_a_receiver_that_hangs() -> None:
    released, got = threading.Event(), []

    def send(report: int) -> None:
        released.wait(60)
        got.append(report)

    given = delivery(send)
    given.put(1)
    given.put(2)
    assert finished(given, 0.1) == "2 of 2 were not delivered: it did not respond in time"
    released.set()
    assert given._thread is not None
    given._thread.join(20)
    # What is not sent at the end is not sent later either.
    assert got == [1]


def test_client_that_cannot_start_is_a_problem_and_no_error() -> None:
    def connect() -> Send[int]:
        raise RuntimeError("token=secret")

    given: Delivery[int] = Delivery(connect)
    given.put(1)
    assert finished(given) == "1 of 1 were not delivered: RuntimeError while sending"


@pytest.mark.parametrize("ended", [0, 1])
def test_nothing_to_deliver_is_no_problem(ended: int) -> None:
    given = delivery(lambda report: None)
    for _ in range(ended):
        assert finished(given) is None
    assert given.problem is None
