"""Two loads of one pipeline at once, as two machines may run them: the loser names the other."""

from __future__ import annotations

import json
import re
import shutil
import socket
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e.command import SECONDS, lakeload, start, sync
from tests.e2e.conftest import LakeOfFormat
from tests.e2e.test_rounds import SOURCE
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import FaultProxy, before
from tests.servers.ministack import Lake

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600), pytest.mark.usefixtures("warm_spark")]

NAMED = (
    r"job `([0-9a-f-]+)` \((\w+)@(\S+), process (\d+), since ([0-9-]+ [0-9:]+) UTC\) of the same"
)


def test_load_that_loses_names_the_process_that_won(
    lake: Lake, fault_proxy: FaultProxy, tmp_path: Path, of_format: LakeOfFormat
) -> None:
    landing = tmp_path / "landing"
    landing.mkdir()
    machines = [tmp_path / "one", tmp_path / "two"]
    for folder in machines:
        folder.mkdir()
    of_format.write(
        machines[0],
        tables=[{"table": "t", "path": str(landing)}],
        source=SOURCE,
        endpoint=fault_proxy.endpoint,
    )
    for name in ("pipeline.yml", "destination.yml"):
        shutil.copy(machines[0] / name, machines[1])
    (landing / "1.csv").write_text("n\n1\n")
    assert sync(lake, machines[0]).code == 0

    (landing / "2.csv").write_text("n\n2\n")
    reached, released = threading.Event(), threading.Event()

    def hold(_: Request) -> None:
        if not reached.is_set():
            reached.set()
            released.wait(120)

    fault_proxy.on("*", before(hold), key="*.parquet")
    arguments = ("sync", "pipeline.yml", "--output", "json")
    slow = start(lake, machines[0], *arguments, LOGNAME="ana")
    try:
        assert reached.wait(120)
        began = datetime.now(UTC)
        quick = start(lake, machines[1], *arguments, LOGNAME="bob")
        won, _ = quick.communicate(timeout=SECONDS)
        released.set()
        lost, err = slow.communicate(timeout=SECONDS)
    finally:
        released.set()
        slow.kill()

    assert quick.returncode == 0
    told = " ".join(err.split())
    if of_format.gate is None:
        assert slow.returncode == 1
        told = json.loads(lost)["tables"][0]["error"]["message"]
    else:
        # Iceberg's loser reads the table again, and finds nothing that is left to load.
        assert slow.returncode == 0, lost
    found = re.search(NAMED, told)
    assert found is not None, told
    job, user, host, process, since = found.groups()
    assert job == json.loads(won)["job_id"]
    assert (user, host, int(process)) == ("bob", socket.gethostname(), quick.pid)
    since_then = datetime.strptime(since, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    assert abs((since_then - began).total_seconds()) < 30
    assert sorted(int(n) for (n,) in of_format.rows("t", "n")) == [1, 2]

    runs = lakeload(lake, machines[0], "runs", "pipeline.yml", "--output", "json").document
    assert (runs["runs"][0]["author"], runs["runs"][0]["pid"]) == (f"bob@{host}", quick.pid)
    shown = lakeload(lake, machines[0], "runs", "pipeline.yml", "-v").stdout
    assert f"by bob@{host}, process {quick.pid}" in " ".join(shown.split())
