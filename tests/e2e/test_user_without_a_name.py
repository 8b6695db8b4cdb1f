"""A load under a user id that /etc/passwd does not know, as containers run under."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.command import SECONDS, Ended, argv, environment
from tests.servers.ministack import Lake

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.exhaustive,
    pytest.mark.skipif(
        os.getuid() != 0 or shutil.which("setpriv") is None, reason="changes its user id"
    ),
]

USER = "54321"
# Python may be in a folder of the user who runs the tests.
READS = "+dac_read_search"
AS_USER = [
    *("setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"),
    *("--inh-caps", READS, "--ambient-caps", READS),
]


def test_user_without_a_name_loads(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("id,note\n1,a\n2,b\n3,c\n")
    # Spark reads it, not Python.
    table = {"table": "orders", "path": "orders.csv", "where": "id > 1"}
    lake.write_pipeline(tmp_path, tables=[table])
    (tmp_path / "home").mkdir()
    for path in (tmp_path, *tmp_path.rglob("*")):
        os.chown(path, int(USER), int(USER))
    places = {"HOME": str(tmp_path / "home"), "LAKELOAD_CACHE_DIR": str(tmp_path / "cache")}
    process = subprocess.run(
        [*AS_USER, *argv("sync", "pipeline.yml", "--output", "json")],
        cwd=tmp_path,
        env=environment(lake, tmp_path, **places, USER=None, LOGNAME=None),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    ended = Ended(process.returncode, process.stdout, process.stderr)
    assert ended.code == 0, ended.stderr
    assert ended.tables["orders"]["rows"] == 2
