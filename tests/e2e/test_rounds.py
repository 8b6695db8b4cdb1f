"""`lakeload sync --every` for a user: files arrive, Spark is killed, a stop comes."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import psutil
import pytest
import requests

from tests.e2e.command import SECONDS, lakeload, start
from tests.open_metrics import samples
from tests.servers.free_ports import free_ports
from tests.servers.ministack import Lake

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

SOURCE = {"type": "FILES", "format": "CSV", "options": {"header": True}, "incremental": True}


def arrives(folder: Path, name: str, *numbers: int) -> None:
    """A file appears at once, as with `mv` in one file system."""
    whole = folder / f"{name}.part"
    whole.write_text("n\n" + "".join(f"{number}\n" for number in numbers))
    whole.rename(folder / "landing" / name)


def documents(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    """Yield the rounds as they end."""
    assert process.stdout is not None
    for line in process.stdout:
        yield json.loads(line)


def loaded(rounds: Iterator[dict[str, Any]]) -> dict[str, Any]:
    """Return the next round with something new."""
    return next(done for done in rounds if done["tables"][0]["status"] != "NO_OP")


def drivers(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Return Spark's JVMs below a command."""
    below = psutil.Process(process.pid).children(recursive=True)
    return [child for child in below if "java" in child.name()]


def test_rounds_load_each_file_once_in_one_driver_through_a_kill_and_a_stop(
    lake: Lake, tmp_path: Path
) -> None:
    lake.write_pipeline(
        tmp_path,
        tables=[{"table": "t", "path": "landing"}],
        source=SOURCE,
        lineage={"file": "events.jsonl"},
    )
    (tmp_path / "landing").mkdir()
    arrives(tmp_path, "1.csv", 1, 2)
    arguments = ("sync", "pipeline.yml", "--every", "1s", "--output", "json")
    [port] = free_ports(1)
    address = f"127.0.0.1:{port}"
    recorded = ("--metrics-file", "shop.prom", "--listen", address)
    process = start(lake, tmp_path, *arguments, *recorded)
    try:
        rounds = documents(process)
        first = loaded(rounds)
        [java] = drivers(process)
        arrives(tmp_path, "2.csv", 3)
        second = loaded(rounds)
        assert drivers(process) == [java]

        second_command = lakeload(lake, tmp_path, *arguments)
        assert second_command.code == 3
        assert f"by process {process.pid} of this machine" in second_command.stdout

        served = requests.get(f"http://{address}/metrics", timeout=10).text
        names = {(one.name, one.value) for one in samples(served)}
        assert ("lakeload_table_rows_total", 3) in names
        assert requests.get(f"http://{address}/healthz", timeout=10).status_code == 200

        java.kill()
        arrives(tmp_path, "3.csv", 4)
        third = loaded(rounds)
        while third["exit_code"] != 0:
            third = loaded(rounds)
        [other] = drivers(process)
        assert other != java

        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SECONDS)
    finally:
        process.kill()

    assert process.returncode == 0
    assert not other.is_running()
    assert [done["tables"][0]["rows"] for done in (first, second, third)] == [2, 1, 1]
    assert len({done["job_id"] for done in (first, second, third)}) == 3
    assert first["round"] == 1
    assert first["usage"]["cpu_seconds"] > second["usage"]["cpu_seconds"] > 0
    assert first["usage"]["requests"]["s3.CompleteMultipartUpload"] == 1
    newest = (tmp_path / "landing" / "2.csv").stat().st_mtime
    position = datetime.fromisoformat(second["tables"][0]["position"])
    assert position.timestamp() == pytest.approx(newest, abs=0.001)
    text = (tmp_path / "shop.prom").read_text()
    values = {one.name: one.value for one in samples(text)}
    assert values["lakeload_table_rows_total"] == 4
    assert values["lakeload_table_files_total"] == 3
    assert values["lakeload_job_peak_memory_bytes"] > 100e6
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    # SIGTERM may come while the next round begins, which is an ABORT then.
    ends = [event for event in events if event["eventType"] != "START"]
    complete = [one["outputs"] for one in ends if one["eventType"] == "COMPLETE" and one["outputs"]]
    # Of rounds without anything new there is nothing.
    written = [output["outputFacets"]["outputStatistics"]["rowCount"] for [output] in complete]
    assert written == [2, 1, 1]
    assert len({one["run"]["runId"] for one in events}) == len(ends) == len(events) / 2
    files = [str(file) for file in lake.download(tmp_path / "lake") if "/t/" in str(file)]
    with duckdb.connect() as connection:
        found = connection.execute("select n from read_parquet(?) order by n", [files]).fetchall()
    assert found == [(1,), (2,), (3,), (4,)]


def test_stop_lets_tables_commit_that_have_begun(lake: Lake, tmp_path: Path) -> None:
    lake.write_pipeline(tmp_path, tables=[{"table": "t", "path": "landing"}], source=SOURCE)
    (tmp_path / "landing").mkdir()
    arrives(tmp_path, "1.csv", *range(200_000))
    process = start(lake, tmp_path, "sync", "pipeline.yml", "--every", "PT5M")
    events = tmp_path / "runs"
    until = time.monotonic() + 60
    while not any('"stage"' in file.read_text() for file in events.glob("*/events.jsonl")):
        assert time.monotonic() < until
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=SECONDS)

    assert process.returncode == 0, err
    assert "LOADED" in out
    assert "no further table begins" in err


def test_driver_ends_by_itself_when_its_command_is_killed(lake: Lake, tmp_path: Path) -> None:
    lake.write_pipeline(tmp_path, tables=[{"table": "t", "path": "landing"}], source=SOURCE)
    (tmp_path / "landing").mkdir()
    arrives(tmp_path, "1.csv", 1)
    process = start(lake, tmp_path, "sync", "pipeline.yml", "--every", "1s", "--output", "json")
    loaded(documents(process))
    [java] = drivers(process)
    process.kill()
    process.communicate(timeout=SECONDS)

    assert java.wait(30) in (0, None)


@pytest.mark.usefixtures("warm_spark")
def test_new_files_wait_for_more_and_the_last_round_loads_them(lake: Lake, tmp_path: Path) -> None:
    table = {"table": "t", "path": "landing", "commit_at": {"bytes": "20B", "age": "PT1H"}}
    lake.write_pipeline(tmp_path, tables=[table], source=SOURCE)
    (tmp_path / "landing").mkdir()
    arrives(tmp_path, "1.csv", 1)
    arguments = ("sync", "pipeline.yml", "--every", "1s", "--output", "json")
    process = start(lake, tmp_path, *arguments, "--max-rounds", "12")
    try:
        rounds = documents(process)
        [waiting] = next(rounds)["tables"]
        arrives(tmp_path, "2.csv", *range(10, 20))
        [second] = loaded(rounds)["tables"]
        arrives(tmp_path, "3.csv", 3)
        later = list(rounds)
        process.communicate(timeout=SECONDS)
    finally:
        process.kill()

    assert (waiting["status"], waiting["waiting"]["bytes"]) == ("NO_OP", 4)
    assert waiting["notes"][0].startswith("waiting: 4 B of 20 B, oldest ")
    assert (second["status"], second["rows"]) == ("LOADED", 11)
    assert [done["tables"][0]["rows"] for done in later if done["tables"][0]["rows"]] == [1]
    assert later[-1]["tables"][0]["rows"] == 1
