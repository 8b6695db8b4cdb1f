"""The events of a run: written by the driver, followed by the command line."""

from __future__ import annotations

import contextlib
import fcntl
import json
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.events import Event, EventKind


class EventLog:
    """Appends events; safe for threads. Each line is flushed, so that a reader sees it at once."""

    def __init__(self, path: str) -> None:
        self._lock = threading.Lock()
        self._file = Path(path).open("a", encoding="utf-8")  # noqa: SIM115
        with contextlib.suppress(OSError):
            # Gone with this process, however it ends: others see by it that we live.
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def emit(self, kind: EventKind, **fields: Any) -> None:
        """Append one event with the present time. Unset fields are left out of the line."""
        data = to_json(Event(kind=kind, at=datetime.now(UTC), **fields))
        line = json.dumps({name: value for name, value in data.items() if value is not None})
        with self._lock:
            if not self._file.closed:
                self._file.write(line + "\n")
                self._file.flush()

    def close(self) -> None:
        """Close the file; later events are dropped."""
        with self._lock:
            self._file.close()

    def __enter__(self) -> Self:
        """Use it as a block."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the file."""
        self.close()
