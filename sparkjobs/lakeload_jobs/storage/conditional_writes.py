"""Whether a store keeps If-None-Match: found out by asking, not by its name (DESIGN section 5)."""

from __future__ import annotations

import threading
from collections.abc import Callable

from lakeload_jobs.storage.responses import ConditionalWritesUnsupported

Create = Callable[[], bool]
"""Writes the marker with If-None-Match; False when the store says that it is there already."""

MARKER = b"lakeload asks here whether this store has conditional writes; keep it\n"

WHAT_IS_LOST = (
    "this store has no conditional writes (`single_writer: true`): a second sync, recover or reset "
    "of this table at the same time is not noticed, and rows of either may be lost or doubled"
)


def has_conditional_writes(create: Create) -> bool:
    """Return whether the store refuses to write an object that is there.

    The marker stays, so that one request answers on every later run. A store that lacks the feature
    says so (501), or ignores the header and takes the second write as it took the first.
    """
    try:
        return not create() or not create()
    except ConditionalWritesUnsupported:
        return False


class Conditions:
    """Whether writes of one process carry conditions. Thread-safe.

    They do, unless the document says `single_writer: true` of a store that has none: such a
    document must not weaken a store that has them, so the store is asked once, at the first write.
    That is `in_force` None; else the answer is given.
    """

    def __init__(self, create: Create, in_force: bool | None) -> None:
        self._create = create
        self._in_force = in_force
        self._lock = threading.Lock()

    def in_force(self) -> bool:
        """Return whether to send conditions; may ask the store. Raises what a write raises."""
        with self._lock:
            if self._in_force is None:
                self._in_force = has_conditional_writes(self._create)
            return self._in_force
