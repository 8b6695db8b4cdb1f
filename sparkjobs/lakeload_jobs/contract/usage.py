"""CPU, memory and requests of a job."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Usage:
    """What the processes of a job on this machine have used.

    `peak_memory_bytes` adds up the largest resident memory of each process. `requests` counts the
    requests by service and operation, such as `s3.GetObject`; those that Spark sends are not known.
    """

    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0
    requests: dict[str, int] = field(default_factory=dict)

    def with_more(self, other: Usage | None) -> Usage:
        """Return both, of processes that ran at the same time."""
        if other is None:
            return self
        return Usage(
            round(self.cpu_seconds + other.cpu_seconds, 3),
            self.peak_memory_bytes + other.peak_memory_bytes,
            dict(sorted((Counter(self.requests) + Counter(other.requests)).items())),
        )

    def then(self, later: Usage | None) -> Usage:
        """Return both, of processes that ran one after the other."""
        if later is None:
            return self
        peak = max(self.peak_memory_bytes, later.peak_memory_bytes)
        return replace(self.with_more(later), peak_memory_bytes=peak)


class RequestCounts:
    """Counts the requests of this process. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def add(self, kind: str, number: int = 1) -> None:
        """Count requests of a kind."""
        with self._lock:
            self._counts[kind] += number

    def take(self) -> dict[str, int]:
        """Return the counts since the last call."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        return dict(sorted(counts.items()))


REQUESTS = RequestCounts()
"""The requests of this process, by service and operation."""
