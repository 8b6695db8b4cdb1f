"""Delivery of reports to a receiver, in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

REQUEST_SECONDS = 3.0
"""How long one request may take."""
END_SECONDS = 4.0
"""How long the end of a job waits for all that is not delivered yet, whatever a receiver does."""
_TRY_AGAIN = (408, 425, 429)
"""HTTP statuses below 500 of requests that may succeed later."""
_PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0)
_LAST_ATTEMPTS = 2
"""Attempts at one report once the job has ended."""


class Rejected(Exception):
    """The receiver does not take this report, however often it is sent. The message has no
    secret."""


class NotTaken(Exception):
    """The receiver did not take a report, and may take it later. The message has no secret."""


def not_sent(status: int | None, reason: str) -> Rejected | NotTaken:
    """Return the error of a report that got a response with this status, None for no response."""
    final = status is not None and 300 <= status < 500 and status not in _TRY_AGAIN
    return Rejected(reason) if final else NotTaken(reason)


Send = Callable[[T], None]


class Delivery(Generic[T]):
    """Sends reports one after the other, in their order, and never raises.

    What a receiver does not take is tried again while the job runs, and a little longer. `connect`
    is called in the thread, and returns what sends one report.
    """

    def __init__(self, connect: Callable[[], Send[T]]) -> None:
        self._connect = connect
        self._waiting: deque[T] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ending = self._ended = False
        self._put = self._lost = 0
        self._reason = ""

    def put(self, report: T) -> None:
        """Send a report when those before it are sent."""
        with self._changed:
            self._waiting.append(report)
            self._put += 1
            self._changed.notify_all()
        if self._thread is None:
            # A receiver that hangs does not keep the process from ending.
            self._thread = threading.Thread(target=self._run, name="report", daemon=True)
            self._thread.start()

    def finish(self, until: float) -> None:
        """Wait for all reports, at most until a time of the monotonic clock. Nothing is sent
        later."""
        if self._thread is None:
            return
        with self._changed:
            self._ending = True
            self._changed.notify_all()
            while not self._ended and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
            if not self._ended:
                self._ended = True
                self._reason = self._reason or "it did not respond in time"

    @property
    def problem(self) -> str | None:
        """How many reports were not delivered, and why; None when all were."""
        lost = self._lost + len(self._waiting)
        return f"{lost} of {self._put} were not delivered: {self._reason}" if lost else None

    @property
    def reason(self) -> str | None:
        """Why a report was not delivered; None when all were."""
        return self._reason if self.problem else None

    def _run(self) -> None:
        try:
            send = self._connect()
        except Exception as error:  # noqa: BLE001 - whatever it is, no load may fail for it
            self._reason = describe_error(error)
        else:
            self._send_all(send)
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _send_all(self, send: Send[T]) -> None:
        failures = last = 0
        while (report := self._next()) is not None:
            try:
                send(report)
            except Rejected as error:
                self._reason = str(error)
                self._lost += 1
            except Exception as error:  # noqa: BLE001 - as above
                self._reason = describe_error(error)
                last += self._ending
                if last >= _LAST_ATTEMPTS:
                    return
                self._pause(_PAUSES[min(failures, len(_PAUSES) - 1)])
                failures += 1
                continue
            failures = last = 0
            with self._changed:
                if not self._ended:
                    self._waiting.popleft()

    def _next(self) -> T | None:
        with self._changed:
            while not self._waiting and not self._ending:
                self._changed.wait()
            return self._waiting[0] if self._waiting and not self._ended else None

    def _pause(self, seconds: float) -> None:
        """Wait before the next attempt; the end of the job makes it short."""
        with self._changed:
            if not self._ending:
                self._changed.wait_for(lambda: self._ending, seconds)
            else:
                self._changed.wait_for(lambda: self._ended, min(seconds, 1.0))


def status_of(error: Exception) -> int | None:
    """Return the HTTP status that an error of a client stands for, if it is one of a response."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return status if isinstance(status, int) else None


def describe_error(error: Exception) -> str:
    """Say why sending failed, never with headers or a body: what libraries say may have both."""
    if isinstance(error, NotTaken):
        return str(error)
    if (status := status_of(error)) is not None:
        return f"it responded with HTTP {status}"
    # Of whatever library the client sends with.
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & {"Timeout", "TimeoutException", "TimeoutError"}:
        return "it did not respond in time"
    if "SSLError" in names:
        return "the TLS connection to it failed"
    if names & {"ConnectionError", "ConnectError"}:
        return "it cannot be reached"
    cause = error.__cause__ or error
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror.lower()
    return f"{type(error).__name__} while sending"
