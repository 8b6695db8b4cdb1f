"""CPU, memory and requests of this command, besides those of Spark."""

from __future__ import annotations

import resource
import sys
import time

from lakeload_jobs.contract.usage import REQUESTS, Usage


class CommandUsage:
    """Measures what one job after another has used of this process. The first one's includes its
    start."""

    def __init__(self) -> None:
        self._cpu = 0.0

    def take(self) -> Usage:
        """Return what was used since the last call."""
        now = time.process_time()
        used, self._cpu = now - self._cpu, now
        # Linux counts in KiB, macOS in bytes.
        unit = 1 if sys.platform == "darwin" else 1024
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        return Usage(round(used, 3), peak, REQUESTS.take())
