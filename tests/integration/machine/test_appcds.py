"""Processes that need an AppCDS archive at the same time build one, and leave none that is half."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from lakeload.machine.appcds import FOLDER, find_archive
from tests.unit.machine.test_appcds import KEY, made

MAKE = """
import json, sys, time
from pathlib import Path
from lakeload.machine.appcds import make_archive
from lakeload.machine.appcds import ArchiveKey
def train(target, folder):
    with open(sys.argv[3], "a") as log:
        log.write("begin\\n")
    target.write_bytes(b"x" * 1000)
    time.sleep(float(sys.argv[4]))
    target.write_bytes(b"class data")
make_archive(Path(sys.argv[1]), ArchiveKey(**json.loads(sys.argv[2])), (), train)
"""


def start(cache: Path, log: Path, seconds: float) -> subprocess.Popen[bytes]:
    key = json.dumps({"java": KEY.java, "spark": KEY.spark, "jars": KEY.jars, "conf": KEY.conf})
    return subprocess.Popen([sys.executable, "-c", MAKE, str(cache), key, str(log), str(seconds)])


def test_concurrent_processes_build_one_archive(tmp_path: Path) -> None:
    log = tmp_path / "log"
    processes = [start(tmp_path, log, 0.3) for _ in range(3)]

    assert [process.wait(60) for process in processes] == [0, 0, 0]

    found = find_archive(tmp_path, KEY)
    assert found is not None
    assert found.read_bytes() == b"class data"
    assert log.read_text() == "begin\n"
    assert len(list((tmp_path / FOLDER).iterdir())) == 2


def test_killed_archive_build_does_not_block_the_next(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = start(tmp_path, log, 60)
    while not log.exists():
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(60)
    assert find_archive(tmp_path, KEY) is None

    archive = made(tmp_path)

    assert find_archive(tmp_path, KEY) == archive.path
    assert len(list((tmp_path / FOLDER).iterdir())) == 2
