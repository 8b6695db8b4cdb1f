"""`lakeload` whose rounds begin more often than once in a second: `fast_clock.py SPEED COMMAND …`.

The clock by which rounds are due runs faster. Nothing else does: what a round does takes as long.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from lakeload.app import main
from lakeload.commands import sync_rounds


@dataclass(frozen=True)
class FastClock:
    """The functions of `time` that `sync_rounds` calls."""

    speed: float
    started: float

    def time(self) -> float:
        """Return the seconds since 1970, as this clock has them."""
        return self.started + (time.time() - self.started) * self.speed

    def sleep(self, seconds: float) -> None:
        """Wait for seconds of this clock."""
        time.sleep(seconds / self.speed)

    def monotonic(self) -> float:
        """Return true seconds: they measure a round."""
        return time.monotonic()


if __name__ == "__main__":
    vars(sync_rounds)["time"] = FastClock(float(sys.argv.pop(1)), time.time())
    main()
