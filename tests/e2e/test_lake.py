"""The README's commands for a user without an account, exactly as they are written there."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakeload.lake.server import Lake
from tests.servers.free_ports import free_block
from tests.servers.jars import CACHE

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("warm_spark")]

ROOT = Path(__file__).parents[2]
ORDERS = "id,customer,amount\n1,Zoë,12.50\n2,Li,7.00\n3,Bob,1.25\n4,Ada,3.00\n"
FAR_AWAY = "http://127.0.0.1:9"
"""A proxy that nobody runs: whatever leaves this machine fails."""


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """A lake with ports of this test, which is not running."""
    found = Lake(tmp_path / "state")
    found.folder.mkdir(mode=0o700)
    (found.folder / "lake.json").write_text(json.dumps({"port": free_block(6)}))
    yield found
    found.stop()


def _commands(page: str) -> str:
    text = (ROOT / page).read_text(encoding="utf-8")
    (found,) = re.findall(r"^```\n(lakeload lake up\n.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert isinstance(found, str)
    assert len(found.splitlines()) == 4
    return found


def _run(commands: str, folder: Path, lake: Lake, forked_python: str, cache: Path) -> str:
    """Run lines of a shell where `lakeload` is on PATH; return what they print."""
    programs = folder / "bin"
    programs.mkdir()
    (programs / "lakeload").write_text(f'#!/bin/sh\nexec {forked_python} -m lakeload "$@"\n')
    (programs / "lakeload").chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if "AWS" not in name}
    ended = subprocess.run(
        ["sh", "-ec", commands],
        cwd=folder,
        env={
            **environment,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HTTPS_PROXY": FAR_AWAY,
            "AWS_EC2_METADATA_DISABLED": "true",
            "LAKELOAD_LAKE_DIR": str(lake.folder),
            "LAKELOAD_CACHE_DIR": str(cache),
            "LAKELOAD_RUN_DIR": str(folder / "runs"),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_the_readme_leads_to_own_rows_without_account_and_network(
    lake: Lake, tmp_path: Path, forked_python: str
) -> None:
    commands = _commands("README.md")
    assert commands == _commands("docs/try-locally.md")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "orders.csv").write_text(ORDERS, encoding="utf-8")
    printed = _run(commands, tmp_path, lake, forked_python, CACHE)
    # Too wide for a terminal of 80 columns; in a pipe each row is one line.
    rows = re.findall(r"^ +(\d) +(\S+) +([\d.]+) +\d{4}-.*[0-9a-f]{12}$", printed, re.MULTILINE)
    assert rows == [("1", "Zoë", "12.5"), ("2", "Li", "7.0"), ("3", "Bob", "1.25")]


@pytest.mark.exhaustive
def test_iceberg_tables_of_the_local_lake_are_loaded_and_queried(
    lake: Lake, tmp_path: Path, forked_python: str
) -> None:
    commands = _commands("README.md").replace("--local", "--local --table-format ICEBERG")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "orders.csv").write_text(ORDERS, encoding="utf-8")
    commands += "lakeload test-connection shop/destination.yml\n"
    commands += "lakeload lake query 'SELECT sum(amount) AS total FROM orders'\n"
    cache = tmp_path / "cache"
    printed = _run(commands, tmp_path, lake, forked_python, cache)
    assert printed.rstrip().endswith("23.75")
    assert not (cache / "jars").exists()
