"""What probes make outside of S3: nothing once the test is over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from types import TracebackType

from lakeload.probes.model import ProbeFailed
from lakeload.probes.runner import Deadline


class Writing:
    """Enter it to make something: one call at a time, and none after `ended`.

    A call that a time-out gave up goes on in its thread. Entering raises `ProbeFailed` then.
    """

    def __init__(self) -> None:
        self._busy = Lock()
        self._over = False

    def __enter__(self) -> None:
        self._busy.acquire()
        if self._over:
            self._busy.release()
            raise ProbeFailed(
                "the test is over", code="TimedOut", hint="give it longer with --timeout"
            )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._busy.release()

    @contextmanager
    def ended(self, deadline: Deadline) -> Iterator[None]:
        """Let nothing begin any more. A call that is under way is waited for, half of the time that
        is left: it could make something after its removal."""
        idle = self._busy.acquire(timeout=deadline.left / 2)
        self._over = True
        try:
            yield
        finally:
            if idle:
                self._busy.release()
