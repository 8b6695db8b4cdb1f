"""Events: JSON lines the driver appends while it works and the command line tails."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

EventKind = Literal["opened", "stage", "progress", "note", "table", "closed"]


@dataclass(frozen=True)
class Event:
    """One line of events.jsonl. Which fields are set depends on `kind`:

    opened    message (Spark version), pid          first line; the JVM and Python are up
    stage     name; table when it belongs to one    session, open, count, stage, commit, publish
    progress  done, total (Spark tasks)             at most two a second
    note      level, message, table                 something the user should see
    table     table, name (status), message         a table has ended
    closed    name (status)                         last line
    """

    kind: EventKind
    at: datetime
    table: str | None = None
    name: str | None = None
    level: Literal["info", "warning"] | None = None
    message: str | None = None
    done: int | None = None
    total: int | None = None
    pid: int | None = None
