"""The author of an attempt, as records and snapshots name it: `user@host pid 4711`.

It is for people, and proves nothing: the identity that wrote is in CloudTrail. Records of before
the process was noted have `user@host` alone, or nothing.
"""

from __future__ import annotations

import re
from datetime import datetime

_PROCESS = re.compile(r"(?P<user>.*\S) pid (?P<pid>\d{1,10})\Z", re.DOTALL)


def author_of(user: str, pid: int) -> str:
    """Return what names the process `pid` of `user@host`."""
    return f"{user} pid {pid}"


def split_author(author: str) -> tuple[str, int | None]:
    """Return `user@host` and the number of the process; None where it was not noted."""
    if (found := _PROCESS.match(author)) is None:
        return author, None
    return found["user"], int(found["pid"])


def named_author(author: str) -> str:
    """Return it as people read it: `user@host, process 4711`."""
    user, pid = split_author(author)
    return user if pid is None else f"{user}, process {pid}"


def started_by(author: str, started: datetime | None) -> str:
    """Return ` (user@host, process 4711, since …)` for an error that names another attempt; ''
    where nothing is known of it."""
    parts = [named_author(author)] if author else []
    if started is not None:
        parts.append(f"since {started:%Y-%m-%d %H:%M:%S} UTC")
    return f" ({', '.join(parts)})" if parts else ""
