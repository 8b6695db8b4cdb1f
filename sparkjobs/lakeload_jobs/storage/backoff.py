"""Retry delays of the protocol, with a clock that tests can replace."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Waits:
    """Seconds of patience, and the clock they are measured with."""

    answer: float = 300
    """A write whose answer is lost is repeated for this long before the outcome is "unknown"."""
    live_author: float = 10
    """The author of a young record may finish it before others do."""
    late_completion: float = 900
    """Longer than S3 works on one CompleteMultipartUpload: only a look after it proves a loss."""
    shortest_pause: float = 0.2
    longest_pause: float = 10
    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = _utc_now

    def attempts(self, seconds: float) -> Iterator[int]:
        """Yield 0, 1, 2, … with growing pauses between them until `seconds` are over.

        There is always a first attempt, and one at the very end.
        """
        end = self.monotonic() + seconds
        number, pause = 0, self.shortest_pause
        yield number
        while (left := end - self.monotonic()) > 0:
            # Jitter keeps writers that lost the same race from meeting again.
            self.sleep(min(left, pause * random.uniform(0.5, 1)))  # noqa: S311
            pause = min(self.longest_pause, pause * 2)
            number += 1
            yield number


def pause(tries: int, *, first: float = 0.1, longest: float = 5.0) -> None:
    """Sleep after so many tries, longer and longer, and not as long as the others do."""
    most = max(min(longest, first * 2 ** min(tries, 10)), first * 2)
    time.sleep(random.uniform(first, most))  # noqa: S311
