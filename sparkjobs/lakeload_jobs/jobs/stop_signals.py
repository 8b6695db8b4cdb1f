"""Stop signals of a job: they strike where nothing would be lost, and are only noted elsewhere.

From the first commit on the result must tell of it, so no signal may keep the result from being
made and written.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType

from lakeload_jobs.contract.errors import Interrupted

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

_noted: list[signal.Signals] = []
"""The first signal; later ones must not interrupt the tidying up that it started."""
_holding = False
_draining = threading.Event()


def drain() -> None:
    """Let the tables that are under way end, and begin no other."""
    _draining.set()


def draining() -> bool:
    """Return whether no further table is to begin."""
    return _draining.is_set()


def install() -> None:
    """Let signals raise `Interrupted` in the main thread, where the job is at."""
    _noted.clear()
    release()
    for number in STOP_SIGNALS:
        signal.signal(number, _on_signal)


def hold() -> None:
    """From here on only note what arrives."""
    global _holding
    _holding = True


def release() -> None:
    """Let a signal strike again. Raises `Interrupted` for one that came meanwhile."""
    global _holding
    _holding = False
    if _noted:
        _holding = True
        raise Interrupted(f"stopped by {_noted[0].name}")


def _on_signal(number: int, frame: FrameType | None) -> None:
    if _noted:
        return
    _noted.append(signal.Signals(number))
    if not _holding:
        release()
