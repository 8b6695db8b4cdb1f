"""`incremental: true` for a user: files arrive, runs meet, one is killed, all is reloaded."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import duckdb
import psutil
import pytest

from tests.e2e.command import SECONDS, Ended, lakeload, start, sync, wait_for_drivers
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import FaultProxy, after, before
from tests.servers.ministack import Lake

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

SOURCE = {"type": "FILES", "format": "CSV", "options": {"header": True}, "incremental": True}


def _pipeline(lake: Lake, folder: Path, proxy: FaultProxy) -> None:
    tables = [{"table": "orders", "path": "landing/*.csv"}, {"table": "all", "path": "landing"}]
    lake.write_pipeline(folder, tables=tables, source=SOURCE, endpoint=proxy.endpoint)
    (folder / "landing").mkdir()


def _arrives(folder: Path, name: str, *numbers: int) -> None:
    (folder / "landing" / name).write_text("n\n" + "".join(f"{n}\n" for n in numbers))


def _numbers(lake: Lake, folder: Path, table: str) -> list[int]:
    files = [str(file) for file in lake.download(folder) if f"/{table}/" in str(file)]
    with duckdb.connect() as connection:
        found = connection.execute("select n from read_parquet(?)", [files]).fetchall()
    return sorted(n for (n,) in found)


def _start(lake: Lake, folder: Path) -> subprocess.Popen[str]:
    return start(lake, folder, "sync", "pipeline.yml", "--output", "json")


def _ended(process: subprocess.Popen[str]) -> Ended:
    stdout, stderr = process.communicate(timeout=SECONDS)
    return Ended(process.returncode, stdout, stderr)


@pytest.mark.usefixtures("warm_spark")
def test_incremental_sync_loads_new_files_and_reload_loads_all(
    lake: Lake, fault_proxy: FaultProxy, tmp_path: Path
) -> None:
    _pipeline(lake, tmp_path, fault_proxy)
    _arrives(tmp_path, "1.csv", 1, 2)
    _arrives(tmp_path, "2.csv", 3)
    first = sync(lake, tmp_path)
    assert first.code == 0, first.stderr

    idle = sync(lake, tmp_path)
    assert idle.code == 0, idle.stderr
    assert idle.document["log"] is None  # no Spark
    assert idle.tables["orders"]["status"] == "NO_OP"
    assert idle.tables["all"]["notes"] == ["no new files (2 known)"]

    _arrives(tmp_path, "3.csv", 4)
    plan = lakeload(lake, tmp_path, "plan", "pipeline.yml")
    assert "new files: 1 (4 B); known: 2" in plan.stdout

    again = sync(lake, tmp_path, "--reload", "--table", "orders")
    assert again.code == 0, again.stderr
    assert "`--reload` appended all files (3)" in again.tables["orders"]["warnings"][0]
    assert _numbers(lake, tmp_path / "reloaded", "orders") == [1, 1, 2, 2, 3, 3, 4]
    idle = sync(lake, tmp_path, "--table", "orders")
    assert idle.tables["orders"]["status"] == "NO_OP"


@pytest.mark.usefixtures("warm_spark")
def test_incremental_sync_after_a_killed_one_loads_files_once(
    lake: Lake, fault_proxy: FaultProxy, tmp_path: Path
) -> None:
    _pipeline(lake, tmp_path, fault_proxy)
    _arrives(tmp_path, "1.csv", 1, 2)
    _killed_after_its_commit(lake, tmp_path, fault_proxy)

    _arrives(tmp_path, "2.csv", 3)
    after_crash = sync(lake, tmp_path)
    assert after_crash.code == 0, after_crash.stderr
    assert _numbers(lake, tmp_path / "seen", "orders") == [1, 2, 3]
    assert _numbers(lake, tmp_path / "seen too", "all") == [1, 2, 3]


@pytest.mark.usefixtures("warm_spark")
def test_two_concurrent_incremental_syncs_load_files_once(
    lake: Lake, fault_proxy: FaultProxy, tmp_path: Path
) -> None:
    _pipeline(lake, tmp_path, fault_proxy)
    _arrives(tmp_path, "1.csv", 1, 2)
    _arrives(tmp_path, "2.csv", 3)
    met = threading.Barrier(2)

    def meet(request: Request) -> None:
        met.wait(SECONDS)

    # Both have chosen their files and staged them before either may commit.
    fault_proxy.on("PutObject", before(meet), key="*/orders/log/*1.json", times=2)
    ended = [_ended(process) for process in [_start(lake, tmp_path), _start(lake, tmp_path)]]
    by_status = {one.tables["orders"]["status"]: one.tables["orders"] for one in ended}
    assert sorted(by_status) == ["FAILED", "LOADED"]
    assert by_status["FAILED"]["error"]["retryable"]
    assert by_status["LOADED"]["rows"] == 3
    assert by_status["LOADED"]["notes"] == ["2 new files (0 known)"]
    assert _numbers(lake, tmp_path / "met", "orders") == [1, 2, 3]
    assert lake.uploads() == []


def _killed_after_its_commit(lake: Lake, folder: Path, proxy: FaultProxy) -> None:
    committed, release = threading.Event(), threading.Event()

    def hold(request: object) -> None:
        committed.set()
        release.wait(60)

    proxy.on("PutObject", after(hold), key="*/log/*.json", times=1)
    killed = _start(lake, folder)
    assert committed.wait(SECONDS)
    family = [*psutil.Process(killed.pid).children(recursive=True), psutil.Process(killed.pid)]
    assert len(family) > 1, "Spark had been started"
    for process in family:
        process.kill()
    killed.communicate(timeout=60)
    wait_for_drivers(folder / "runs")
    release.set()
