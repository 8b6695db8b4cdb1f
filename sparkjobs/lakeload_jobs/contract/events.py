"""Events: JSON lines the driver appends while it works and the command line tails."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Step = Literal[
    "branches", "compact", "deletes", "manifests", "expire", "orphans", "uploads", "optimizers"
]
"""The steps of maintenance."""

Stage = Literal["session", "schema", "open", "count", "stage", "commit", "catalog", Step]
"""Where in its work a job is, or was when it failed.

session   Spark is being started              stage     its rows are written, invisibly
schema    its columns are compared (plan)     commit    it is made visible: in, or not known to be
open      the table is being read             catalog   its columns are made known after a commit
count     the rows of its source are counted
"""

EventKind = Literal["opened", "stage", "progress", "note", "table", "closed"]


@dataclass(frozen=True)
class Event:
    """One line of events.jsonl. Which fields are set depends on `kind`:

    opened    message (Spark version), pid          first line; the JVM and Python are up
    stage     stage; table when it belongs to one; rows where it is known how many there are
    progress  done, total (Spark tasks)             at most two a second
    progress  table, rows, bytes                    at most two a second; in this stage, so far
    note      level, message, table                 something the user should see
    table     table, name (status), message         a table has ended
    closed    name (status)                         last line
    """

    kind: EventKind
    at: datetime
    table: str | None = None
    name: str | None = None
    stage: Stage | None = None
    level: Literal["info", "warning"] | None = None
    message: str | None = None
    done: int | None = None
    total: int | None = None
    pid: int | None = None
    rows: int | None = None
    bytes: int | None = None
