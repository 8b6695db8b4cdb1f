"""CPU, memory and requests of a driver: the JVM, Python and its workers."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path

from lakeload_jobs.contract.usage import REQUESTS, Usage
from lakeload_jobs.rows.progress import requests_file

_PEAK = re.compile(r"^VmHWM:\s*(\d+) kB", re.MULTILINE)


class UsageMeter:
    """Measures what one job after another has used. The first one's includes the start of Spark."""

    def __init__(self) -> None:
        self._cpu = 0.0

    def take(self, result_path: str) -> Usage:
        """Return what was used since the last call, and what tasks have counted beside a result."""
        cpu, memory = _of_session()
        used, self._cpu = max(0.0, cpu - self._cpu), cpu
        requests = Counter(REQUESTS.take())
        for counts in _of_tasks(requests_file(Path(result_path).parent)):
            requests.update(counts)
        return Usage(round(used, 3), memory, dict(sorted(requests.items())))


METER = UsageMeter()
"""That of this driver."""


def _of_tasks(path: Path) -> list[dict[str, int]]:
    found = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    for line in lines:
        try:
            found.append({str(kind): int(number) for kind, number in json.loads(line).items()})
        # A task that was killed may have left half a line.
        except (ValueError, AttributeError, TypeError):
            continue
    return found


def _of_session(proc: Path = Path("/proc")) -> tuple[float, int]:
    """Return CPU seconds and the sum of the largest resident memory of the processes of this
    session; of this process alone where the system has no /proc."""
    own, ticks, memory = os.getsid(0), 0, 0
    try:
        entries = [entry for entry in proc.iterdir() if entry.name.isdecimal()]
    except OSError:
        times = os.times()
        return times.user + times.system + times.children_user + times.children_system, 0
    for entry in entries:
        try:
            stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
            # The name before the last parenthesis may hold anything.
            fields = stat.rpartition(")")[2].split()
            if int(fields[3]) != own:
                continue
            # utime, stime, and those of children that have ended.
            ticks += sum(int(field) for field in fields[11:15])
            peak = _PEAK.search((entry / "status").read_text(encoding="utf-8", errors="replace"))
            memory += int(peak[1]) << 10 if peak else 0
        # The process ended meanwhile.
        except (OSError, ValueError, IndexError):
            continue
    return ticks / os.sysconf("SC_CLK_TCK"), memory
