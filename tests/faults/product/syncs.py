"""Commands as a user starts them, which can be killed with everything they started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import psutil

from lakeload.launch.process import kill_session, members
from tests.e2e.command import argv, environment, forked, wait_for_drivers
from tests.faults.product.world import World
from tests.servers.ministack import Lake

SECONDS = 900.0
"""Longer than any of these may take on a busy machine."""

IN = ("LOADED", "NO_OP", "LOADED_CATALOG_OUT_OF_DATE")

_SYNC = ("sync", "pipeline.yml", "--output", "json")


class Surroundings(Protocol):
    """What a command needs of its world."""

    @property
    def lake(self) -> Lake:
        """Whose identity it has."""

    @property
    def folder(self) -> Path:
        """Where it may write."""

    @property
    def cache(self) -> Path | None:
        """LAKELOAD_CACHE_DIR; None is one in `folder`."""

    @property
    def runs(self) -> Path | None:
        """LAKELOAD_RUN_DIR; None is one for each folder of documents."""

    @property
    def warm_spark(self) -> Path | None:
        """The SPARK_HOME of syncs whose processes are left alone; None is the one of all others."""


@dataclass(frozen=True)
class Told:
    """What a command said of itself; `code` is None for one that was killed."""

    job_id: str
    code: int | None
    stderr: str
    document: dict[str, Any]

    @property
    def tables(self) -> dict[str, dict[str, Any]]:
        """What was said of each table, by source name."""
        return {table["table"]: table for table in self.document.get("tables", [])}

    @property
    def attempt_id(self) -> str:
        """The attempt, '' when nothing was said."""
        found: str = self.document.get("attempt_id", "")
        return found


class Sync:
    """One `lakeload sync` that has been started."""

    def __init__(
        self,
        world: Surroundings,
        folder: Path,
        job_id: str,
        *arguments: str,
        spark_home: Path | None = None,
        left_alone: bool = False,
    ) -> None:
        """Start it. One whose processes are `left_alone` may be forked."""
        self.job_id = job_id
        self.killed = False
        self._warm_runs = _runs(world, folder) if spark_home else None
        self._spark: set[int] = set()
        self._process = subprocess.Popen(
            argv(
                *(*_SYNC, "--job-id", job_id, *arguments),
                python=forked(spark_home) if left_alone else sys.executable,
            ),
            cwd=folder,
            env=_environment(world, folder, spark_home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def kill(self) -> bool:
        """kill -9 of the command, of spark-submit and of everything below them.

        Returns whether there was anything below the command.
        """
        self.killed = True
        family = self._family()
        sessions = {session for process in family if (session := _session(process))}
        for process in family:
            _kill(process)
        # A process that was forked meanwhile is found by its session.
        for session in sessions - {os.getsid(0)}:
            while members(session):
                kill_session(session)
        if self._warm_runs is not None:
            wait_for_drivers(self._warm_runs)
        return len(family) > 1

    def terminate(self) -> None:
        """SIGTERM to the command alone, as a scheduler sends it."""
        self._spark = self._below()
        self._process.terminate()

    @property
    def left(self) -> list[int]:
        """What still lives of the sessions that the command had when it was ended."""
        return [process for session in self._spark for process in members(session)]

    @property
    def running(self) -> bool:
        """Whether the command has not ended."""
        return self._process.poll() is None

    def kill_command_only(self) -> None:
        """kill -9 of the command; spark-submit has a session of its own and goes on."""
        self.killed = True
        self._spark = self._below()
        self._process.kill()

    def wait_for_spark(self) -> None:
        """Wait until nothing of the sessions of a command that was killed alone is left."""
        end = time.monotonic() + SECONDS
        while any(members(session) for session in self._spark) and time.monotonic() < end:
            time.sleep(0.2)

    def python_workers(self) -> list[psutil.Process]:
        """The executor's Python workers: what runs the tasks."""
        return [p for p in self._family()[1:] if "pyspark.worker" in _command_line(p)]

    def executors(self) -> list[psutil.Process]:
        """The JVMs of executors of their own."""
        name = "CoarseGrainedExecutorBackend"
        return [p for p in self._family()[1:] if name in _command_line(p)]

    def end(self) -> Told:
        """Wait for the end and return what was said."""
        stdout, stderr = self._process.communicate(timeout=SECONDS)
        if self.killed:
            return Told(self.job_id, None, stderr, {})
        try:
            document = json.loads(stdout)
        except ValueError:
            document = {}
        return Told(self.job_id, self._process.returncode, stderr, document)

    def _below(self) -> set[int]:
        return {session for process in self._family() if (session := _session(process))}

    def _family(self) -> list[psutil.Process]:
        """The command first, then everything below it."""
        try:
            command = psutil.Process(self._process.pid)
            return [command, *command.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []


def run_sync(world: Surroundings, folder: Path, job_id: str, *arguments: str) -> Told:
    """Run a sync to its end."""
    return Sync(world, folder, job_id, *arguments).end()


def run_untroubled(world: Surroundings, folder: Path, job_id: str) -> Told:
    """Run a sync to its end whose processes are left alone."""
    return Sync(world, folder, job_id, spark_home=world.warm_spark, left_alone=True).end()


def run_command(world: Surroundings, folder: Path, *arguments: str) -> tuple[int, str]:
    """Run any command of lakeload and return its exit code and what it wrote to stderr."""
    ended = subprocess.run(
        argv(*arguments, python=forked(world.warm_spark)),
        cwd=folder,
        env=_environment(world, folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return ended.returncode, ended.stderr


def untroubled(world: World, name: str, tables: Sequence[str], *job_ids: str) -> list[Told]:
    """Run one sync of `tables` after the other, with nothing in the way."""
    folder = world.write(name, tables)
    return [run_untroubled(world, folder, job_id) for job_id in job_ids]


def _environment(
    world: Surroundings, folder: Path, spark_home: Path | None = None
) -> dict[str, str]:
    cache = world.cache or world.folder / "cache"
    places = {"LAKELOAD_CACHE_DIR": str(cache), "LAKELOAD_RUN_DIR": str(_runs(world, folder))}
    if spark_home:
        places["SPARK_HOME"] = str(spark_home)
    return environment(world.lake, folder, **places)


def _runs(world: Surroundings, folder: Path) -> Path:
    return world.runs or folder / "runs"


def _session(process: psutil.Process) -> int | None:
    try:
        return os.getsid(process.pid)
    except ProcessLookupError:
        return None


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return


def _command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
