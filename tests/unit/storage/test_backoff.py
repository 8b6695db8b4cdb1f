"""Patience, measured with a clock of the test's own."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from lakeload_jobs.aws import AwsError, RefreshWindow
from lakeload_jobs.storage.backoff import Waits
from lakeload_jobs.storage.objects import UnknownOutcome, until_answered


@dataclass
class Clock:
    """Time passes only while somebody sleeps."""

    seconds: float = 0
    pauses: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.pauses.append(seconds)
        self.seconds += seconds

    def waits(self) -> Waits:
        """Return patience by this clock."""
        return Waits(sleep=self.sleep, monotonic=lambda: self.seconds)


def test_pauses_grow_and_end_exactly_at_the_limit() -> None:
    clock = Clock()
    attempts = list(clock.waits().attempts(60))
    assert attempts == list(range(len(attempts)))
    assert clock.seconds == pytest.approx(60)
    assert clock.pauses[0] <= 0.2
    assert max(clock.pauses) <= 10
    assert len(attempts) < 30


def test_retry_with_a_zero_limit_tries_once() -> None:
    assert list(Clock().waits().attempts(0)) == [0]


def refusal(code: str, status: int | None, *, retryable: bool = False) -> AwsError:
    return AwsError("writing", code=code, status=status, retryable=retryable)


def test_retry_failed_connection_is_a_known_outcome() -> None:
    clock = Clock()

    def once() -> bool:
        raise refusal("EndpointConnectionError", None, retryable=True)

    with pytest.raises(AwsError) as caught:
        until_answered(once, "writing", clock.waits())
    assert caught.value.code == "EndpointConnectionError"
    assert clock.seconds == pytest.approx(300)


@pytest.mark.parametrize(
    ("code", "status"),
    [("ReadTimeoutError", None), ("ConnectionClosedError", None), ("InternalError", 500)],
)
def test_retry_without_a_response_is_an_unknown_outcome(code: str, status: int | None) -> None:
    clock, tries = Clock(), []

    def once() -> bool:
        tries.append(1)
        if len(tries) == 1:
            raise refusal(code, status, retryable=True)
        raise refusal("AccessDenied", 403)

    with pytest.raises(UnknownOutcome):
        until_answered(once, "writing", clock.waits())
    assert len(tries) > 10


def test_retry_response_after_a_lost_one_decides() -> None:
    answers = iter([refusal("ReadTimeoutError", None, retryable=True), None, True])

    def once() -> bool | None:
        answer = next(answers)
        if isinstance(answer, AwsError):
            raise answer
        return answer

    assert until_answered(once, "writing", Clock().waits()) is True


@pytest.mark.parametrize("seconds", [900, 3600, 43200])
def test_a_session_is_renewed_in_its_last_third_at_the_earliest(seconds: int) -> None:
    window = RefreshWindow.for_duration(seconds)
    assert 0 < window.late < window.early <= seconds / 3
    assert window.early <= 900
