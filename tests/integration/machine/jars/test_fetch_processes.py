"""Several processes fetch the same jars, and some of them die on the way."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lakeload.machine.jars.fetch import fetch
from lakeload.machine.jars.pins import Jar, is_intact
from lakeload.machine.jars.repository import REPOSITORY_VARIABLE
from tests.servers.maven_repository import MavenRepository

CONTENT = bytes(range(256)) * 4000
JARS = [
    Jar("org.example", name, "1", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))
    for name in ("one", "two")
]

FETCH = """
import os, sys
from pathlib import Path
from lakeload.machine.jars.fetch import fetch
from lakeload.machine.jars.pins import Jar
jars = [Jar("org.example", name, "1", sys.argv[2], int(sys.argv[3])) for name in ("one", "two")]
fetch(jars, Path(sys.argv[1]), os.environ)
"""


@pytest.fixture
def repository(maven_repository: MavenRepository) -> MavenRepository:
    for jar in JARS:
        maven_repository.content[jar.path] = CONTENT
    return maven_repository


def start(repository: MavenRepository, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", FETCH, str(folder), JARS[0].sha256, str(len(CONTENT))],
        env={**os.environ, REPOSITORY_VARIABLE: repository.url},
    )


def test_concurrent_processes_download_each_jar_once(
    repository: MavenRepository, tmp_path: Path
) -> None:
    repository.seconds_a_chunk = 0.002

    processes = [start(repository, tmp_path) for _ in range(4)]

    assert [process.wait(60) for process in processes] == [0] * 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one-1.jar", "two-1.jar"]
    assert all(is_intact(jar, tmp_path) for jar in JARS)
    assert len(repository.asked) == len(JARS)


def test_partial_download_of_a_killed_process_is_resumed_by_a_waiter(
    repository: MavenRepository, tmp_path: Path
) -> None:
    repository.seconds_a_chunk = 0.02
    first = start(repository, tmp_path)
    while sum(request.sent for request in repository.asked) < 200_000:
        time.sleep(0.01)
    second = start(repository, tmp_path)
    time.sleep(0.5)
    os.kill(first.pid, signal.SIGKILL)
    first.wait(60)
    repository.seconds_a_chunk = 0

    assert second.wait(60) == 0

    assert all(is_intact(jar, tmp_path) for jar in JARS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one-1.jar", "two-1.jar"]
    assert [request for request in repository.asked if request.range]


def test_killed_process_leaves_a_usable_cache(repository: MavenRepository, tmp_path: Path) -> None:
    repository.seconds_a_chunk = 0.02
    process = start(repository, tmp_path)
    while sum(request.sent for request in repository.asked) < 200_000:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(60)
    assert not any((tmp_path / jar.file_name).exists() for jar in JARS)
    repository.seconds_a_chunk = 0

    fetch(JARS, tmp_path, {REPOSITORY_VARIABLE: repository.url})

    assert all(is_intact(jar, tmp_path) for jar in JARS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one-1.jar", "two-1.jar"]
