"""Commands that tidy up when they are ended."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stoppable() -> Iterator[None]:
    """Let SIGTERM and a closed terminal end the block as Ctrl-C does: after it has cleaned up."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    # nohup starts us with SIGHUP ignored, and it has to stay so.
    changed = {number: old for number, old in before.items() if old is not signal.SIG_IGN}
    for number in changed:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, old in changed.items():
            signal.signal(number, old)
