"""Ctrl-C and SIGTERM in the middle: what is said, what is left, what the next run does.

kill -9 is the business of tests/faults. Both reach spark-submit as SIGTERM: that the JVM ends
is seen in the one that starts a JVM of its own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import psutil
import pytest

from lakeload.machine.spark import find_spark
from tests.e2e.command import SECONDS, start, sync
from tests.servers.aws_requests import Request
from tests.servers.class_data import small_archive
from tests.servers.fault_proxy import Action, FaultProxy, Forward, Response, after, delay
from tests.servers.ministack import Lake

pytestmark = pytest.mark.e2e

ROWS = 3000


def _pipeline(lake: Lake, folder: Path, proxy: FaultProxy) -> None:
    lines = [f"{number},name {number}" for number in range(ROWS)]
    (folder / "people.csv").write_text("id,name\n" + "\n".join(lines) + "\n")
    lake.write_pipeline(
        folder, tables=[{"table": "people", "path": "people.csv"}], endpoint=proxy.endpoint
    )


def _setting(event: threading.Event) -> Callable[[object], None]:
    return lambda request: event.set()


def _slowly(event: threading.Event, seconds: float) -> Action:
    """Set the event, then wait before the server sees the request."""

    def act(request: Request, forward: Forward) -> Response:
        event.set()
        return delay(seconds)(request, forward)

    return act


def _rows(lake: Lake, folder: Path) -> tuple[int, int]:
    """Return rows and distinct ids over every visible file."""
    files = [str(file) for file in lake.download(folder)]
    query = "select count(*), count(distinct id) from read_parquet(?)"
    with duckdb.connect() as connection:
        found = connection.execute(query, [files]).fetchone()
    assert found is not None
    return found[0], found[1]


def _descendants(process: subprocess.Popen[str]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def _alive(process: psutil.Process) -> bool:
    """A zombie is dead, and waits only for whoever runs as process 1."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_ctrl_c_before_the_commit_leaves_nothing_of_a_spark_with_class_data_and_reports_it(
    lake: Lake, fault_proxy: FaultProxy, tmp_path: Path
) -> None:
    _pipeline(lake, tmp_path, fault_proxy)
    uploading = threading.Event()
    fault_proxy.on("UploadPart", _slowly(uploading, 2))
    classes = tmp_path / "classes.log"
    option = f"spark.driver.extraJavaOptions=-Xlog:class+load:file={classes}"
    command = ("sync", "pipeline.yml", "--conf", option)
    process = start(lake, tmp_path, *command, **_class_data(tmp_path))
    assert uploading.wait(SECONDS)
    children = _descendants(process)
    os.kill(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "nothing was committed" in stderr.lower()
    left = lake.keys()
    assert [key for key in left if "/_lakeload/" not in key or "/log/" in key] == []
    assert lake.uploads() == []
    assert not [child for child in children if _alive(child)]
    if " " not in str(find_spark({}).home):
        _check_class_data(tmp_path, classes)


def _class_data(folder: Path) -> dict[str, str | None]:
    """Make an archive; return the variables of a sync that uses it."""
    if " " in str(find_spark({}).home):
        return {}  # Java would not use it
    home, cache = small_archive(folder)
    # Relative, and with what parts arguments.
    (folder / "my cache").symlink_to(cache)
    return {"SPARK_HOME": str(home), "LAKELOAD_CACHE_DIR": "my cache"}


def _check_class_data(folder: Path, classes: Path) -> None:
    """Check that Java took classes from the archive, and says nothing of it."""
    loaded = classes.read_text(encoding="utf-8", errors="replace")
    assert loaded.count("source: shared objects file (top)") > 1000
    (log,) = folder.glob("runs/*/spark.log")
    assert "cds" not in log.read_text(encoding="utf-8", errors="replace")


@pytest.mark.usefixtures("warm_spark")
def test_sigterm_after_the_record_reports_committed_and_the_next_run_publishes(
    lake: Lake, fault_proxy: FaultProxy, tmp_path: Path
) -> None:
    _pipeline(lake, tmp_path, fault_proxy)
    slow = fault_proxy.on("CompleteMultipartUpload", delay(30))
    committed = threading.Event()
    fault_proxy.on("PutObject", after(_setting(committed)), key="*/log/*.json")
    process = start(lake, tmp_path, "sync", "pipeline.yml", "--job-id", "job-1")
    assert committed.wait(SECONDS)
    os.kill(process.pid, signal.SIGTERM)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "nothing was committed" not in stderr.lower()
    assert "next sync" in stderr
    slow.action = delay(0)

    ended = sync(lake, tmp_path, "--job-id", "job-1")
    assert ended.code == 0, ended.stderr
    assert ended.tables["people"]["status"] == "NO_OP"
    assert _rows(lake, tmp_path / "seen") == (ROWS, ROWS)
    assert lake.uploads() == []


@pytest.mark.exhaustive
@pytest.mark.usefixtures("warm_spark")
@pytest.mark.parametrize("seconds", [0, 0.3, 1, 2])
def test_sigterm_after_the_end_marker_reports_a_loaded_table(
    lake: Lake, fault_proxy: FaultProxy, tmp_path: Path, seconds: float
) -> None:
    _pipeline(lake, tmp_path, fault_proxy)
    ended = threading.Event()
    fault_proxy.on("PutObject", after(_setting(ended)), key="*/log/*.end")
    process = start(lake, tmp_path, "sync", "pipeline.yml", "--output", "json")
    assert ended.wait(SECONDS)
    time.sleep(seconds)
    os.kill(process.pid, signal.SIGTERM)
    stdout, stderr = process.communicate(timeout=60)
    document = json.loads(stdout)

    assert (document["status"], document["exit_code"]) == ("SUCCEEDED", 0), stderr
    assert process.returncode == 0, stderr
    assert [(table["status"], table["rows"]) for table in document["tables"]] == [("LOADED", ROWS)]
    assert _rows(lake, tmp_path / "seen") == (ROWS, ROWS)
