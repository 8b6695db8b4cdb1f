"""Two loads of one pipeline at once, as two machines may run them: the loser names the other."""

from __future__ import annotations

import json
import re
import shutil
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e.command import SECONDS, lakeload, start, sync
from tests.e2e.rest_lake import CLIENT_SECRET, gate_of
from tests.e2e.test_rounds import SOURCE
from tests.faults.rounds.lake import RoundsLake
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import FaultProxy, before
from tests.servers.ministack import Lake
from tests.servers.oauth2_gate import CATALOG, Gate

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600), pytest.mark.usefixtures("warm_spark")]

NAMED = (
    r"job `([0-9a-f-]+)` \((\w+)@(\S+), process (\d+), since ([0-9-]+ [0-9:]+) UTC\) of the same"
)


@pytest.fixture(params=["parquet", "iceberg"])
def gate(request: pytest.FixtureRequest, lake: Lake, tmp_path: Path) -> Iterator[Gate | None]:
    """The REST catalog of Iceberg tables, which vends no keys; None for Parquet files."""
    if request.param == "parquet":
        yield None
        return
    with gate_of(lake, tmp_path / "catalog") as opened:
        yield opened


def test_load_that_loses_names_the_process_that_won(
    lake: Lake,
    fault_proxy: FaultProxy,
    tmp_path: Path,
    gate: Gate | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CREDENTIAL", f"loader-id:{CLIENT_SECRET}")
    catalog = {
        "type": "REST",
        "uri": gate.uri if gate else "",
        "warehouse": CATALOG,
        "credential": {"env": "CREDENTIAL"},
        "scope": "PRINCIPAL_ROLE:ALL",
        "access_delegation": "NONE",
    }
    landing = tmp_path / "landing"
    landing.mkdir()
    machines = [tmp_path / "one", tmp_path / "two"]
    for folder in machines:
        folder.mkdir()
    lake.write_pipeline(
        machines[0],
        tables=[{"table": "t", "path": str(landing)}],
        source=SOURCE,
        endpoint=fault_proxy.endpoint,
        destination={"table_format": "ICEBERG", "iceberg": {"catalog": catalog}} if gate else {},
        destination_prefix=None,
        namespace="shop",
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
    if gate is None:
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
    rows = RoundsLake(lake, fault_proxy, gate).rows("t", "n")
    assert sorted(int(n) for (n,) in rows) == [1, 2]

    runs = lakeload(lake, machines[0], "runs", "pipeline.yml", "--output", "json").document
    assert (runs["runs"][0]["author"], runs["runs"][0]["pid"]) == (f"bob@{host}", quick.pid)
    shown = lakeload(lake, machines[0], "runs", "pipeline.yml", "-v").stdout
    assert f"by bob@{host}, process {quick.pid}" in " ".join(shown.split())
