"""Every runtime, and which one a master belongs to."""

from __future__ import annotations

from lakeload.runtimes.base import Runtime
from lakeload.runtimes.local import LOCAL
from lakeload.runtimes.local_cluster import LOCAL_CLUSTER
from lakeload.runtimes.standalone import STANDALONE

RUNTIMES: tuple[Runtime, ...] = (
    LOCAL,
    LOCAL_CLUSTER,
    STANDALONE,
)


def find_runtime(master: str) -> Runtime | None:
    """Return the runtime that accepts `master`, None where none does."""
    return next((runtime for runtime in RUNTIMES if runtime.accepts(master)), None)


def runtime_of(master: str) -> Runtime:
    """Return the runtime of a master that was checked when it was read."""
    if found := find_runtime(master):
        return found
    raise ValueError(f"no runtime accepts the master {master}")


def misspelt(master: str) -> bool:
    """Tell whether `master`, which no runtime accepts, begins as those of one do."""
    return any(master.startswith(runtime.beginning) for runtime in RUNTIMES)


def masters_written() -> str:
    """Return how masters are written, for messages."""
    *first, last = (f"`{runtime.written}`" for runtime in RUNTIMES)
    return f"{', '.join(first)} and {last}"
