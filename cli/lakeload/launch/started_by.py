"""Who starts a job, as its commit records will say."""

from __future__ import annotations

import getpass
import os
import socket


def author() -> str:
    """Return `user@host` of this process: for people who ask who loaded something.

    It proves nothing. The identity that wrote is in CloudTrail, whose session names hold the
    attempt's id.
    """
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        # A container may run under a number that no user has.
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
