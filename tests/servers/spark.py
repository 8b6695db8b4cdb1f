"""The Spark session that all tests of one process share: a JVM takes one class path in its life.

Syncs through the command line can share its JVM: `warm_spark` names a SPARK_HOME whose spark-submit
starts the driver alone.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakeload.launch.properties import collector, compiler
from lakeload.machine.spark import find_spark
from lakeload.runtimes import LOCAL
from tests.environments import without_settings
from tests.servers.sharing import Servers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DRIVER = Path(__file__).with_name("warm_driver.py")
FORKED_PYTHON = "LAKELOAD_TEST_FORKED_PYTHON"
FORK_SERVER = Path(__file__).with_name("forked_python.py")
FORK_CLIENT = Path(__file__).with_name("forked_python_client.py")
UNVERIFIED = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""Java takes the classes of jars as they are: a sixth of the CPU of a JVM without class data."""
_QUICK = f"{collector(2, '')} {compiler(0, '')} {UNVERIFIED}"
_ROOM = "-Xms1g -Xmn600m -XX:MetaspaceSize=256m"
"""A JVM that lives for the whole run grows to this anyway, with a collection at each step."""


@contextmanager
def _fork_server(folder: Path, _: Servers) -> Iterator[str]:
    """Start it, and yield the `python` whose processes it forks."""
    place, program = folder / "socket", folder / "python"
    command = shlex.join([sys.executable, "-IS", str(FORK_CLIENT), str(place)])
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    program.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-P", str(FORK_SERVER), str(place)],
        cwd=folder,
        env={**without_settings(os.environ), "HOME": str(folder)},
        stdin=subprocess.PIPE,  # it ends when this closes
    )
    assert process.stdin is not None
    while not place.exists():
        if process.poll() is not None:
            raise RuntimeError(f"it ended with {process.returncode}")
        time.sleep(0.05)
    yield str(program)
    process.stdin.close()
    process.wait(10)


@pytest.fixture(scope="session")
def forked_python(servers: Servers) -> str:
    """A `python` whose processes are forked from one that has all libraries imported.

    For processes that are not what a test is about: see forked_python.py.
    """
    if not sys.platform.startswith("linux"):
        return sys.executable  # elsewhere libraries do not survive a fork
    program: str = servers.get(_fork_server)
    return program


@pytest.fixture
def forked_commands(forked_python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the commands of a test be forked: those of `tests.e2e.command.lakeload`."""
    monkeypatch.setenv(FORKED_PYTHON, forked_python)


@pytest.fixture(scope="session")
def spark(
    tmp_path_factory: pytest.TempPathFactory, jars: tuple[Path, ...], forked_python: str
) -> Iterator[SparkSession]:
    """A session on two cores, as `sync` would start it for small input, with the jars of every
    feature."""
    # This module is read by every run, and pyspark takes a second to import.
    from pyspark.sql import SparkSession

    from lakeload_jobs.contract.traits import FORMATS
    from lakeload_jobs.session import configure

    folder = tmp_path_factory.mktemp("spark")
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(without_settings(before))
    os.environ |= {
        "PYSPARK_PYTHON": forked_python,
        "SPARK_HOME": str(_without_python(folder / "home")),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    builder = SparkSession.builder.master("local[2]")
    settings = {**FORMATS["ICEBERG"].session_settings, **LOCAL.properties((), {})}
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = (
        builder.appName("lakeload-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.scheduler.mode", "FAIR")
        .config("spark.sql.codegen.cache.maxEntries", "1000")
        .config("spark.driver.extraClassPath", ":".join(map(str, jars)))
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", f"{_QUICK} {_ROOM}")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.local.dir", str(folder / "local"))
        .getOrCreate()
    )
    os.environ.clear()
    os.environ.update(before)
    session.sparkContext.setLogLevel("OFF")
    configure(session)
    yield session
    session.stop()


def _without_python(home: Path) -> Path:
    """Make a SPARK_HOME whose Python workers import the installed pyspark.

    The one in Spark's own is a zip, which each new pool of workers compiles for half a second.
    """
    home.mkdir()
    for name in ("bin", "jars"):
        (home / name).symlink_to(find_spark({}).home / name)
    return home


@pytest.fixture(scope="session")
def warm_spark_home(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, forked_python: str
) -> Path:
    """A SPARK_HOME whose spark-submit runs jobs on the JVM of `spark`.

    Driver and workers are forked; so are commands that are started with its `bin/python`.
    """
    home = tmp_path_factory.mktemp("warm spark")
    context = spark.sparkContext
    assert context._gateway is not None
    assert context._jvm is not None
    gateway = context._gateway.gateway_parameters
    place = home / "gateway.json"
    place.touch(0o600)
    place.write_text(
        json.dumps(
            {
                "port": str(gateway.port),
                "secret": gateway.auth_token,
                "pid": context._jvm.java.lang.ProcessHandle.current().pid(),
                "python": forked_python,
            }
        )
    )
    (home / "jars").symlink_to(find_spark({}).home / "jars")
    submit = home / "bin" / "spark-submit"
    submit.parent.mkdir()
    driver = shlex.join([forked_python, "-P", str(DRIVER), str(place)])
    submit.write_text(f'#!/bin/sh\nexec {driver} "$@"\n')
    submit.chmod(0o755)
    (home / "bin" / "python").symlink_to(forked_python)
    return home


@pytest.fixture
def warm_spark(warm_spark_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the commands of a test start the driver alone, and no JVM."""
    monkeypatch.setenv("SPARK_HOME", str(warm_spark_home))
