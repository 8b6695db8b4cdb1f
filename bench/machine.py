"""What a report says about the machine and the software it ran on."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil


def facts(packages: Sequence[str]) -> list[str]:
    """Lines of Markdown: the machine, the versions, the commit."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    return [
        f"- Machine: {processor()}, {os.cpu_count()} cores, {memory_gib():.0f} GiB, "
        f"{platform.system()} {platform.release()}; load at the end {os.getloadavg()[0]:.1f}",
        f"- Versions: Python {platform.python_version()}, {java()}, {versions}",
        f"- Commit: {commit()}",
    ]


def processor() -> str:
    """The model of the processor."""
    found = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.machine()


def memory_gib() -> float:
    """The machine's memory in GiB."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def java() -> str:
    """The first line of what `java -version` says."""
    answer = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True)
    return answer.stderr.splitlines()[0].replace('"', "")


def commit() -> str:
    """The commit this runs from, with `-dirty` behind it when files were changed."""
    here = Path(__file__).parent
    command = ["git", "-C", str(here), "describe", "--always", "--dirty"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    return answer.stdout.strip() or "unknown"


@contextlib.contextmanager
def on_cores(count: int) -> Iterator[None]:
    """Run this process, what it has started and what it starts meanwhile on so many cores.

    A machine of one core runs the AWS emulator on that core, too. With the other core for itself
    it would cost a run on one core nothing, and a run on two cores its share.
    """
    allowed = os.sched_getaffinity(0)
    try:
        _allow(set(sorted(allowed)[:count]))
        yield
    finally:
        _allow(allowed)


def _allow(cores: set[int]) -> None:
    """Let every thread of this process and of its descendants run on `cores`."""
    own = psutil.Process()
    for process in (own, *own.children(recursive=True)):
        for thread in Path(f"/proc/{process.pid}/task").iterdir():
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread.name), cores)
