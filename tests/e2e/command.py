"""The `lakeload` command as a user starts it: its own process, no terminal, its own run folders."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.json_documents import check
from tests.servers.jars import CACHE
from tests.servers.ministack import Lake
from tests.servers.spark import FORKED_PYTHON

SECONDS = 240


@dataclass(frozen=True)
class Ended:
    """A finished command."""

    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        """stdout as the one JSON document of a result, with the keys of its schema."""
        found = self.json
        check(found)
        return found

    @property
    def json(self) -> dict[str, Any]:
        """stdout as one JSON document, such as the policies that `lakeload policy` prints."""
        found: dict[str, Any] = json.loads(self.stdout)
        return found

    @property
    def tables(self) -> dict[str, dict[str, Any]]:
        """The tables of a `sync --output json`, by source name."""
        return {table["table"]: table for table in self.document["tables"]}


def environment(lake: Lake, folder: Path, **changes: str | None) -> dict[str, str]:
    """Return the environment of a command: this test's, the lake's base identity, `changes`."""
    merged: dict[str, str | None] = {
        **os.environ,
        **lake.environment,
        "LAKELOAD_RUN_DIR": str(folder / "runs"),
        "LAKELOAD_CACHE_DIR": str(CACHE),
        **changes,
    }
    return {name: value for name, value in merged.items() if value is not None}


def argv(*arguments: str | Path, python: str = sys.executable) -> list[str]:
    """Return the command line of `lakeload` in this Python."""
    return [python, "-m", "lakeload", *map(str, arguments)]


def forked(spark_home: str | Path | None = None) -> str:
    """Return the Python of a command whose process is not what a test is about: a forked one where
    Spark is warm, or the test uses `forked_commands`."""
    if spark_home and (python := Path(spark_home, "bin", "python")).exists():
        return str(python)
    return os.environ.get(FORKED_PYTHON, sys.executable)


def lakeload(lake: Lake, folder: Path, *arguments: str | Path, **changes: str | None) -> Ended:
    """Run `lakeload` in `folder` to its end; `changes` are environment variables, None unsets."""
    variables = environment(lake, folder, **changes)
    process = subprocess.run(
        argv(*arguments, python=forked(variables.get("SPARK_HOME"))),
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return Ended(process.returncode, process.stdout, process.stderr)


def sync(lake: Lake, folder: Path, *arguments: str | Path, **changes: str | None) -> Ended:
    """Run `lakeload sync pipeline.yml --output json` in `folder`."""
    return lakeload(lake, folder, "sync", "pipeline.yml", "--output", "json", *arguments, **changes)


def start(
    lake: Lake, folder: Path, *arguments: str | Path, **changes: str | None
) -> subprocess.Popen[str]:
    """Start `lakeload` in `folder`, in a session of its own, and return at once."""
    return subprocess.Popen(
        argv(*arguments),
        cwd=folder,
        env=environment(lake, folder, **changes),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_drivers(runs: Path) -> None:
    """Wait for the end of every driver of the runs below `runs`.

    That of a warm Spark is not below its command: it is killed a moment after its spark-submit.
    """
    for events in runs.glob("*/events.jsonl"):
        for line in events.read_text(encoding="utf-8").splitlines():
            if '"opened"' in line:
                with suppress(psutil.NoSuchProcess):
                    psutil.Process(json.loads(line)["pid"]).wait(60)
