"""The name of the user of this process, where the system has none."""

from __future__ import annotations

import os
import pwd


def stand_in_name() -> str:
    """Return a name for a user id without an entry in /etc/passwd, as containers run under; else
    ''. Java, and Hadoop in it, do not start without a name."""
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return f"uid-{os.getuid()}"
    return ""
