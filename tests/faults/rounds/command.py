"""A `sync --every` under test: its rounds, its kill, and what its processes take."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Literal

import psutil

from tests.e2e.command import argv, environment
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


@dataclass
class Command:
    """The command in a folder. It can be killed and started again."""

    lake: Lake
    folder: Path
    arguments: Sequence[str]
    variables: dict[str, str] = field(default_factory=dict)
    starts: int = 0
    _before: float = 0.0
    _process: subprocess.Popen[str] | None = None
    _lines: SimpleQueue[str | None] = field(default_factory=SimpleQueue)

    def start(self) -> None:
        """Start it."""
        self.starts += 1
        with (self.folder / "stderr.log").open("a", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                argv("sync", "pipeline.yml", *self.arguments, "--output", "json"),
                cwd=self.folder,
                env=environment(self.lake, self.folder, **self.variables),
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

    def sample(self, *, collect: bool = False) -> Sample:
        """Return what its processes have; with `collect` the JVM collects its garbage first."""
        assert self._process is not None
        cpu, heap = self._before, 0
        rss: Counter[Role] = Counter()
        threads: Counter[Role] = Counter()
        files: Counter[Role] = Counter()
        for process in _family(self._process.pid):
            with suppress(psutil.Error):
                role = _role(process, self._process.pid)
                if collect and role == "JVM":
                    heap = _heap(process.pid)
                rss[role] += process.memory_info().rss
                threads[role] += process.num_threads()
                files[role] += process.num_fds()
            cpu += _cpu(process)
        return Sample(cpu, rss, threads, files, heap)


def servers_cpu(command: Command) -> float:
    """Return the CPU time of the servers that this process has started."""
    assert command._process is not None
    family = {process.pid for process in _family(command._process.pid)}
    below = psutil.Process().children(recursive=True)
    return sum(_cpu(process) for process in below if process.pid not in family)


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


def _heap(pid: int) -> int:
    """Return the bytes in use of a JVM's heap after a collection; 0 where Java has no `jcmd`."""
    if (program := shutil.which("jcmd")) is None:
        return 0
    for command in ("GC.run", "GC.heap_info"):
        ended = subprocess.run(
            [program, str(pid), command], capture_output=True, text=True, timeout=60, check=False
        )
    heap = ended.stdout.partition("Metaspace")[0]
    return sum(int(number) for number in _USED.findall(heap)) * 1024


def _read(process: subprocess.Popen[str], lines: SimpleQueue[str | None]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put(None)


def cost(lake: Lake, folder: Path, *arguments: str, **variables: str) -> tuple[float, str]:
    """Run a command to its end; return its CPU seconds and what it has printed. Raises
    `RuntimeError` for an exit code other than 0."""
    before = os.times()
    ended = subprocess.run(
        argv(*arguments),
        cwd=folder,
        env=environment(lake, folder, **variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    after = os.times()
    if ended.returncode != 0:
        raise RuntimeError(f"{arguments} ended with {ended.returncode}: {ended.stderr[-2000:]}")
    children = after.children_user - before.children_user
    return children + after.children_system - before.children_system, ended.stdout
