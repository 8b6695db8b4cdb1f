"""Ctrl-C, SIGTERM and a closed terminal, as one request to stop."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Self

from lakeload_jobs.contract.errors import Interrupted

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
NOTHING_WRITTEN = "nothing was written"
AGAIN = "run it again: finished steps keep their effect, and the others have changed nothing"
"""The hint where what does the steps of a maintenance was stopped, or crashed."""


class StopRequests:
    """While entered, turns the stop signals into a request.

    Before Spark runs there is nothing to tidy up, so a signal raises `Interrupted` where it
    strikes. Between `hold` and the end it is only noted: the child has a session of its own, gets
    no Ctrl-C from the terminal, and whoever waits for it sees `requested` and stops it in order.
    The handlers are functions, never SIG_IGN, which the child would inherit.
    """

    def __init__(self) -> None:
        self.requested: signal.Signals | None = None
        self.impatient = False
        """A second signal came: stop waiting for an orderly end."""
        self.acting = False
        """Whether this process changes tables, so that something may have been written."""
        self._holding = False
        self._previous: dict[signal.Signals, signal._HANDLER] = {}

    def __enter__(self) -> Self:
        for number in STOP_SIGNALS:
            before = signal.getsignal(number)
            # nohup starts us with SIGHUP ignored, and it has to stay so.
            if before is not signal.SIG_IGN:
                self._previous[number] = signal.signal(number, self._noted)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def begin(self) -> None:
        """Let a signal strike again, as before the first run; raise for one that came meanwhile."""
        self._holding = False
        if self.requested is not None:
            raise self._stopped(self.requested)

    def hold(self) -> None:
        """From here on only note what arrives, until the next run begins."""
        self._holding = True

    def _noted(self, number: int, frame: FrameType | None) -> None:
        if self.requested is not None:
            self.impatient = True
        self.requested = signal.Signals(number)
        if not self._holding:
            raise self._stopped(self.requested)

    def _stopped(self, by: signal.Signals) -> Interrupted:
        if self.acting:
            return Interrupted(f"stopped by {by.name}", hint=AGAIN)
        return Interrupted(f"stopped by {by.name} before Spark started: {NOTHING_WRITTEN}")
