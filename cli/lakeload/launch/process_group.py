"""The processes of one launch: everything that lives in the session spark-submit was started in."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path


def members(session: int, proc: Path = Path("/proc")) -> list[int]:
    """Return the ids of the living processes of a session.

    pyspark's worker daemon makes a process group of its own, so the group alone would miss it.
    A zombie nobody reaps is not living. Where there is no /proc, the group stands for the session.
    """
    if not sys.platform.startswith("linux"):
        return [session] if _group_lives(session) else []
    living = []
    for entry in proc.iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        # The name before the last parenthesis may hold anything.
        state, _, _, process_session = stat.rpartition(")")[2].split()[:4]
        if int(process_session) == session and state not in ("Z", "X"):
            living.append(int(entry.name))
    return living


def signal_group(session: int, number: signal.Signals) -> None:
    """Signal the process group of spark-submit: the JVM and the Python driver."""
    try:
        os.killpg(session, number)
    except ProcessLookupError:
        return


def kill_session(session: int) -> None:
    """Kill whatever is left of the session, in whichever group."""
    signal_group(session, signal.SIGKILL)
    for process in members(session):
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True
