"""A real standalone Spark: a master, and workers whose environment the test chooses."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
import pytest

from lakeload.launch.properties import collector, compiler
from lakeload.machine.spark import find_spark
from tests.servers.spark import UNVERIFIED

SPARK_HOME = find_spark({}).home
START_SECONDS = 60.0
QUICK = f"{collector(1, '')} {compiler(0, '')} {UNVERIFIED}"
"""Options of JVMs that do little, as `sync` has them on a local master."""
QUICK_DRIVER = ("--conf", f"spark.driver.extraJavaOptions={QUICK}")
"""What a sync is given that would use Java's second compiler, or that has no class data."""
QUICK_EXECUTOR = ("--conf", f"spark.executor.extraJavaOptions={QUICK}")
ON_A_CLUSTER = (*QUICK_DRIVER, *QUICK_EXECUTOR, "--conf", "spark.cores.max=1")
"""What a sync is given beside its master."""
_BOUND = re.compile(r"Starting Spark master at (spark://\S+)")
_LOOPBACK = ("--host", "127.0.0.1", "--webui-port", "0")
_REGISTERED = "Successfully registered with master"


class StandaloneSpark:
    """One master and its workers, each a `spark-class` process of its own on loopback."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.master = ""
        """`spark://127.0.0.1:PORT` once started."""

    def start(self) -> None:
        """Start the master on a free port."""
        log = self._run(
            "master",
            ["org.apache.spark.deploy.master.Master", *_LOOPBACK, "--port", "0"],
            {},
        )
        self.master = self._wait_for("master", log, _BOUND)

    def add_worker(
        self, name: str, environment: Mapping[str, str], *, cores: int = 1, memory: str = "1g"
    ) -> Path:
        """Start a worker with exactly this environment (plus what finds Java); return its log."""
        work = self._folder / f"{name}-work"
        log = self._run(
            name,
            [
                "org.apache.spark.deploy.worker.Worker",
                *_LOOPBACK,
                *("--cores", str(cores), "--memory", memory, "--work-dir", str(work)),
                self.master,
            ],
            environment,
        )
        self._wait_for(name, log, re.compile(f"({_REGISTERED})"))
        return log

    def executor_logs(self, name: str) -> str:
        """Return everything the executors of a worker wrote to standard error."""
        files = sorted((self._folder / f"{name}-work").rglob("stderr"))
        return "\n".join(file.read_text(errors="replace") for file in files)

    def python_workers(self, name: str) -> list[psutil.Process]:
        """Return the Python processes that run the tasks of a worker's executors."""
        below = psutil.Process(self._processes[name].pid).children(recursive=True)
        return [process for process in below if _runs(process, "pyspark.worker")]

    def stop(self) -> None:
        """Kill every process of the cluster with what it started."""
        for name in reversed(list(self._processes)):
            self.stop_worker(name)

    def stop_worker(self, name: str) -> None:
        """Kill one process, the executors it started and their Python, and wait until all ended.

        A worker that is only asked to end leaves executors that take a task more.
        """
        process = self._processes.pop(name)
        below: list[psutil.Process] = []
        with contextlib.suppress(psutil.NoSuchProcess):
            below = psutil.Process(process.pid).children(recursive=True)
        # Workers of Python have a process group of their own.
        for child in below:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        process.kill()
        process.wait()
        psutil.wait_procs(below, timeout=10)

    def _run(self, name: str, arguments: list[str], environment: Mapping[str, str]) -> Path:
        log = self._folder / f"{name}.log"
        needed = {
            "PATH": os.environ["PATH"],
            "PYSPARK_PYTHON": sys.executable,
            # Master and worker end before Java's second compiler has earned its keep.
            "SPARK_DAEMON_JAVA_OPTS": QUICK,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LAUNCHER_OPTS": QUICK,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_NO_DAEMONIZE": "1",
        }
        if java := os.environ.get("JAVA_HOME"):
            needed["JAVA_HOME"] = java
        with log.open("wb") as output:
            self._processes[name] = subprocess.Popen(
                [str(SPARK_HOME / "bin" / "spark-class"), *arguments],
                cwd=self._folder,
                env={**needed, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return log

    def _wait_for(self, name: str, log: Path, pattern: re.Pattern[str]) -> str:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if found := pattern.search(log.read_text(errors="replace")):
                return found.group(1)
            if self._processes[name].poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError(f"Spark did not start:\n{log.read_text(errors='replace')[-3000:]}")


def _runs(process: psutil.Process, argument: str) -> bool:
    try:
        return argument in process.cmdline()
    except psutil.NoSuchProcess:
        # It ended since it was listed: a zombie has no arguments either.
        return False


@pytest.fixture
def standalone_spark(tmp_path: Path) -> Iterator[StandaloneSpark]:
    """A standalone master without workers; the test adds them."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    cluster = StandaloneSpark(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
