"""Statuses and verdict of checks, of this machine or of a connection; calls in the background."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar


class CheckStatus(StrEnum):
    """What became of a check. Only a failure stops a load."""

    PASSED = "passed"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


class _Result(Protocol):
    @property
    def status(self) -> CheckStatus: ...


R = TypeVar("R", bound=_Result)
T = TypeVar("T")


@dataclass(frozen=True)
class Verdict(Generic[R]):
    """The results of all checks, in their order, and how long they took."""

    results: tuple[R, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether nothing that a load needs has failed; warnings are no failures."""
        return not self.with_status(CheckStatus.FAILED)

    def with_status(self, *statuses: CheckStatus) -> tuple[R, ...]:
        """Return the results of these statuses, those of the first status first."""
        return tuple(one for status in statuses for one in self.results if one.status is status)


def in_background(call: Callable[[], T], name: str) -> Future[T]:
    """Begin a call in a thread that the end of the program does not wait for.

    Stop signals strike in the main thread. Within a request, AWS's clients would take their error
    for a broken connection, and send it again.
    """
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            future.set_exception(error)

    threading.Thread(target=work, name=name, daemon=True).start()
    return future
