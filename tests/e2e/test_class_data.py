"""The class-data archive: made by `jars fetch`, used by `sync`."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.command import argv, environment, sync
from tests.servers.ministack import Lake

# A minute of CPU to make, which may be several on a machine that is busy.
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]
SECONDS = 1200


def test_an_archive_is_made_and_used(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id\n1\n2\n")
    lake.write_pipeline(tmp_path, tables=[{"table": "t", "path": "t.csv"}])
    # Relative, and with what parts arguments.
    cache = "my cache"
    log = tmp_path / "classes.log"

    fetched = subprocess.run(
        argv("jars", "fetch", "pipeline.yml", "--output", "json"),
        cwd=tmp_path,
        env=environment(lake, tmp_path, LAKELOAD_CACHE_DIR=cache),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert fetched.returncode == 0, fetched.stderr
    assert json.loads(fetched.stdout)["archives"], fetched.stderr
    (made,) = json.loads(fetched.stdout)["archives"]
    assert (made["state"], made["sets"]) == ("usable", [])

    option = f"spark.driver.extraJavaOptions=-Xlog:class+load:file={log}"
    ended = sync(lake, tmp_path, "--conf", option, LAKELOAD_CACHE_DIR=cache)
    assert ended.code == 0, ended.stderr
    assert {table["status"] for table in ended.tables.values()} == {"LOADED"}
    text = log.read_text(encoding="utf-8", errors="replace")
    assert len(re.findall(r"source: shared objects file \(top\)", text)) > 5000
    (spark_log,) = (tmp_path / "runs").glob("*/spark.log")
    assert "cds" not in spark_log.read_text(encoding="utf-8", errors="replace")
