"""Tables made by a plain process, and the commands that look after them, in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lakeload.app import app
from lakeload.ui import console
from lakeload_jobs.storage.objects import Objects
from tests.integration.conftest import (  # noqa: F401 - fixtures of this folder too
    QUICK,
    admin_objects,
    destination,
    objects,
    proxied,
)
from tests.integration.formats.parquet.log.writer import Writer
from tests.servers.ministack import Lake

ADMIN = {
    "access_key_id": {"env": "LAKE_ADMIN_KEY"},
    "secret_access_key": {"env": "LAKE_ADMIN_KEY"},
}
TABLES = ("orders", "visits", "payments")


@dataclass(frozen=True)
class Ended:
    """What a command wrote and how it ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """stdout as the one JSON document it has to be."""
        found: dict[str, Any] = json.loads(self.out)
        return found

    def lines(self) -> list[str]:
        """Return the lines of stdout without the padding of a terminal."""
        return [line.rstrip() for line in self.out.splitlines()]


Command = Callable[..., Ended]


@pytest.fixture
def shop(base_identity: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A lake and, in the current folder, documents of a pipeline that may delete data."""
    monkeypatch.setenv("LAKE_ADMIN_KEY", "test")
    tables = [{"table": name, "path": f"{name}/*.csv"} for name in TABLES]
    base_identity.write_pipeline(tmp_path, tables=tables, destination={"credentials": ADMIN})
    monkeypatch.chdir(tmp_path)
    return base_identity


@pytest.fixture
def command(shop: Lake, monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    """`command("recover", "pipeline.yml")` runs it here, 80 columns wide, waiting for nobody."""
    monkeypatch.setattr("lakeload_jobs.storage.objects.Waits", lambda: QUICK)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: str) -> Ended:
        result = CliRunner().invoke(app, list(arguments))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ended(result.exit_code, result.stdout, result.stderr)

    yield run
    console.configure()


@pytest.fixture
def load(admin_objects: Objects) -> Callable[..., Writer]:  # noqa: F811
    """`load("job-1", table="visits")` commits and publishes a job and returns its writer."""

    def run(job_id: str, **settings: Any) -> Writer:
        settings.setdefault("source", settings.get("table", "orders"))
        writer = Writer(admin_objects, job_id, **settings)
        writer.run()
        return writer

    return run
