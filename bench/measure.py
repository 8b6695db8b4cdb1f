"""Run one command and measure its whole process tree: CPU, wall time, peak memory.

CPU seconds come from a control group made for the command (cgroup v1 `cpuacct`, else v2), which
counts every descendant whether or not anybody waits for it. Where no group can be made, this
process becomes the reaper of the command's orphans and takes what the kernel adds up for waited
children; the report says which of the two it was.

Peak memory is the highest sum of the tree's PSS (`/proc/PID/smaps_rollup`), sampled. Summed RSS
would count pages shared by forked Python workers once per worker, and a memory control group
would count the page cache of the files that were read.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

SAMPLE_SECONDS = 0.25
GRACE_SECONDS = 10.0
PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Measurement:
    """What one run cost. Seconds and bytes; `method` says how CPU was counted.

    `stopped` names the limit that ended the run, and is empty for one that ended by itself.
    """

    cpu: float
    wall: float
    peak: int
    status: int
    method: str
    stopped: str = ""


@dataclass(frozen=True)
class Limits:
    """When a run is stopped: seconds, bytes of its tree, bytes the machine must have left."""

    seconds: float
    memory: int
    left: int = 2 * 2**30

    def reached(self, seconds: float, peak: int) -> str:
        """The limit that was reached, in words; empty when none was."""
        if seconds > self.seconds:
            return f"{self.seconds:g} s"
        if peak > self.memory:
            return f"{self.memory / 2**20:,.0f} MiB"
        if psutil.virtual_memory().available < self.left:
            return "the machine's last memory, with what the emulator holds"
        return ""


class LeftRunning(RuntimeError):
    """The command ended and processes of its tree went on; their CPU would be missing."""


@dataclass(frozen=True)
class ControlGroup:
    """A fresh control group that only accounts; nothing in it is limited."""

    path: Path
    version: int

    def cpu(self) -> float:
        """CPU seconds of every process that was ever in the group."""
        if self.version == 1:
            return int((self.path / "cpuacct.usage").read_text()) / 1e9
        fields = dict(line.split() for line in (self.path / "cpu.stat").read_text().splitlines())
        return int(fields["usage_usec"]) / 1e6

    def pids(self) -> set[int]:
        """Processes in the group now."""
        return {int(line) for line in (self.path / "cgroup.procs").read_text().split()}

    def enter(self) -> None:
        """Move the calling process into the group (called between fork and exec)."""
        (self.path / "cgroup.procs").write_text(str(os.getpid()))


@contextlib.contextmanager
def control_group() -> Iterator[ControlGroup | None]:
    """Make a control group for one command and remove it afterwards; None where that is denied."""
    for parent, version in _candidates():
        path = parent / f"lakeload-bench-{uuid.uuid4().hex[:12]}"
        try:
            path.mkdir()
        except OSError:
            continue
        try:
            yield ControlGroup(path, version)
        finally:
            with contextlib.suppress(OSError):
                path.rmdir()
        return
    yield None


def _candidates() -> Iterator[tuple[Path, int]]:
    """Where a group could be made: below this process's own groups, v1 accounting first."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, own = line.split(":", 2)
        if "cpuacct" in controllers.split(","):
            yield Path("/sys/fs/cgroup") / controllers / own.lstrip("/"), 1
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        if line.startswith("0::") and Path("/sys/fs/cgroup/cgroup.procs").exists():
            yield Path("/sys/fs/cgroup") / line[3:].strip().lstrip("/"), 2


def measure(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path,
    log: Path,
    memory: bool = True,
    limits: Limits | None = None,
) -> Measurement:
    """Run `command` in `folder` with its output in `log`, wait for its whole tree, and count.

    With `limits` the whole tree is killed when one is reached; `stopped` of the result says which.

    Raises `LeftRunning` when descendants outlive the command by more than `GRACE_SECONDS`
    (they are killed: only processes of the tree this function started).
    """
    with control_group() as group, log.open("wb") as output:
        if group is None:
            _adopt_orphans()
        before, others = _waited_children(), _own_children()
        started = time.monotonic()
        process = subprocess.Popen(
            list(command),
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Nothing but a write of the own process id happens there.
            preexec_fn=group.enter if group else None,
        )
        members = group.pids if group else lambda: _own_children() - others
        with _peak_sampler(members if memory else set) as peak:
            stopped = _stop_at(limits, process, members, peak) if limits else ""
            status = process.wait()
        wall = time.monotonic() - started
        _wait_until_empty(members, command)
        cpu = group.cpu() if group else _waited_children() - before
    method = f"cgroup v{group.version}" if group else "waited children"
    return Measurement(cpu, wall, peak[0], status, method, stopped)


def _waited_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _adopt_orphans() -> None:
    """Become the parent of descendants whose parent ends first, so that they can be waited for."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def _own_children() -> set[int]:
    """Every descendant of this process, adopted orphans included."""
    return {child.pid for child in psutil.Process().children(recursive=True)}


def _stop_at(
    limits: Limits,
    process: subprocess.Popen[bytes],
    members: Callable[[], set[int]],
    peak: Sequence[int],
) -> str:
    """Wait until the process ends or a limit is reached, and kill its tree in that case."""
    started = time.monotonic()
    while True:
        try:
            process.wait(SAMPLE_SECONDS)
        except subprocess.TimeoutExpired:
            if reached := limits.reached(time.monotonic() - started, peak[0]):
                _kill(members())
                return reached
        else:
            return ""


def _kill(pids: set[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _wait_until_empty(members: Callable[[], set[int]], command: Sequence[str]) -> None:
    deadline = time.monotonic() + GRACE_SECONDS
    while left := members():
        _reap(left)
        if time.monotonic() > deadline:
            _kill(left)
            raise LeftRunning(f"{len(left)} processes of `{command[0]}` went on after it ended")
        time.sleep(0.05)


def _reap(pids: set[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


@contextlib.contextmanager
def _peak_sampler(members: Callable[[], set[int]]) -> Iterator[list[int]]:
    """Sample the tree's PSS in a thread; the list's only item is the highest sum in bytes."""
    peak = [0]
    stop = threading.Event()

    def sample() -> None:
        while not stop.wait(SAMPLE_SECONDS):
            peak[0] = max(peak[0], sum(_pss(pid) for pid in members()))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        stop.set()
        thread.join()


def _pss(pid: int) -> int:
    """Proportional set size in bytes; 0 for a process that has just ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
