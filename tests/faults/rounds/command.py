"""A `sync --every` under test: its rounds, its kill, and what its processes take."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Literal

import psutil

from lakeload_jobs.contract.errors import ExitCode
from tests.e2e.command import argv, environment
from tests.faults.rounds import fast_clock
from tests.servers.ministack import Lake

Role = Literal["command", "driver", "JVM", "workers"]
ROLES: tuple[Role, ...] = ("command", "driver", "JVM", "workers")
SECONDS = 240.0
"""How long a round may take: the first one starts Spark."""


class NoRound(Exception):
    """The command ended, or did not end a round in time."""


@dataclass(frozen=True)
class Sample:
    """What the processes of a command have: bytes, numbers, and CPU seconds since it was first
    started."""

    cpu: float
    rss: Counter[Role]
    threads: Counter[Role]
    files: Counter[Role]
    heap: int = 0
    """Bytes of the JVM's heap that are in use after a collection."""
    classes: int = 0
    """Bytes of the JVM's classes, those that Spark generates among them."""
    scratch: int = 0
    """Bytes of files that it keeps on this machine: of its runs, and what Spark spills."""


@dataclass
class Command:
    """The command in a folder. It can be killed and started again."""

    lake: Lake
    folder: Path
    arguments: Sequence[str]
    variables: dict[str, str] = field(default_factory=dict)
    speed: float = 1.0
    """How much faster rounds are due than the interval says."""
    starts: int = 0
    _before: float = 0.0
    _process: subprocess.Popen[str] | None = None
    _lines: SimpleQueue[str | None] = field(default_factory=SimpleQueue)

    def start(self) -> None:
        """Start it."""
        self.starts += 1
        scratch = self.folder / "scratch"
        scratch.mkdir(exist_ok=True)
        given = ["sync", "pipeline.yml", *self.arguments, "--output", "json"]
        started = argv(*given)
        if self.speed != 1:
            started = [sys.executable, fast_clock.__file__, str(self.speed), *given]
        with (self.folder / "stderr.log").open("a", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                started,
                cwd=self.folder,
                env=environment(self.lake, self.folder, TMPDIR=str(scratch), **self.variables),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self._lines = SimpleQueue()
        threading.Thread(target=_read, args=(self._process, self._lines), daemon=True).start()

    def round(self) -> dict[str, Any]:
        """Return the document of the next round. Raises `NoRound`."""
        try:
            line = self._lines.get(timeout=SECONDS)
        except Empty:
            raise NoRound(f"no round ended within {SECONDS:.0f} s") from None
        if line is None:
            log = (self.folder / "stderr.log").read_text(errors="replace")
            raise NoRound(f"the command ended: {log[-2000:]}")
        found: dict[str, Any] = json.loads(line)
        return found

    def kill(self) -> None:
        """Kill everything that it has started."""
        assert self._process is not None
        self._before = self.sample().cpu
        _kill(self._process.pid)
        self._process.wait()

    def stop(self) -> int:
        """Stop it as a service does, and return its exit code."""
        assert self._process is not None
        self._process.terminate()
        try:
            return self._process.wait(120)
        finally:
            _kill(self._process.pid)

    def end(self) -> None:
        """Kill what is left of it."""
        if self._process is not None and self._process.poll() is None:
            _kill(self._process.pid)

    def sample(self, *, collect: bool = False) -> Sample:
        """Return what its processes have; with `collect` the JVM collects its garbage first."""
        assert self._process is not None
        cpu, heap, classes = self._before, 0, 0
        rss: Counter[Role] = Counter()
        threads: Counter[Role] = Counter()
        files: Counter[Role] = Counter()
        for process in _family(self._process.pid):
            with suppress(psutil.Error):
                role = _role(process, self._process.pid)
                if collect and role == "JVM":
                    heap, classes = _heap(process.pid)
                rss[role] += process.memory_info().rss
                threads[role] += process.num_threads()
                files[role] += process.num_fds()
            cpu += _cpu(process)
        scratch = sum(_bytes_below(self.folder / name) for name in ("runs", "scratch"))
        return Sample(cpu, rss, threads, files, heap, classes, scratch)


def servers() -> list[psutil.Process]:
    """Return the processes that this one has started so far."""
    return psutil.Process().children(recursive=True)


def servers_cpu(started: Iterable[psutil.Process]) -> float:
    """Return the CPU time of servers."""
    return sum(map(_cpu, started))


def _cpu(process: psutil.Process) -> float:
    """Return the CPU time of a process and of its children that have ended."""
    with suppress(psutil.Error):
        times = process.cpu_times()
        return float(times.user + times.system + times.children_user + times.children_system)
    return 0.0


def _family(pid: int) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []


def _kill(pid: int) -> None:
    for process in _family(pid):
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _role(process: psutil.Process, command: int) -> Role:
    if process.pid == command:
        return "command"
    if "java" in process.name():
        return "JVM"
    return "workers" if "daemon" in " ".join(process.cmdline()) else "driver"


_USED = re.compile(r"used (\d+)K")


def _heap(pid: int) -> tuple[int, int]:
    """Return the bytes in use of a JVM's heap after a collection, and of its classes; 0 where Java
    has no `jcmd`."""
    if (program := shutil.which("jcmd")) is None:
        return 0, 0
    for command in ("GC.run", "GC.heap_info"):
        ended = subprocess.run(
            [program, str(pid), command], capture_output=True, text=True, timeout=60, check=False
        )
    heap, _, rest = ended.stdout.partition("Metaspace")
    classes = rest.partition("class space")[0]
    used = [sum(map(int, _USED.findall(text))) * 1024 for text in (heap, classes)]
    return used[0], used[1]


def _bytes_below(folder: Path) -> int:
    size = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                size += Path(root, name).lstat().st_size
    return size


def _read(process: subprocess.Popen[str], lines: SimpleQueue[str | None]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put(None)


def cost(lake: Lake, folder: Path, *arguments: str, **variables: str) -> tuple[float, int]:
    """Run a command to its end; return its CPU seconds and its exit code. Raises `RuntimeError` for
    one other than 0 and 5, conflicts with other commits."""
    err = folder / "stderr.log"
    with err.open("a", encoding="utf-8") as log:
        process = subprocess.Popen(
            argv(*arguments),
            cwd=folder,
            env=environment(lake, folder, **variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
    limit = threading.Timer(900, process.kill)
    limit.daemon = True
    limit.start()
    # Others may start and end processes meanwhile.
    _, status, used = os.wait4(process.pid, 0)
    limit.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (ExitCode.OK, ExitCode.FOLLOW_UP_FAILED):
        text = err.read_text(encoding="utf-8", errors="replace")[-2000:]
        raise RuntimeError(f"{arguments} ended with {process.returncode}: {text}")
    return used.ru_utime + used.ru_stime, process.returncode
