"""Syncs one after another in one process: each has an outcome of its own."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from lakeload.commands.spark_job import Context
from lakeload.commands.sync_once import LoadJob, Synced, sync_once
from lakeload.documents.load import load_pipeline
from lakeload.documents.spec import table_specs
from lakeload.launch.spec import new_attempt
from lakeload.launch.stop import StopRequests
from lakeload.ui import console
from lakeload_jobs.contract.spec import RunOptions
from tests.e2e.command import environment
from tests.fakes.spark_home import fake_spark_home
from tests.servers.ministack import Lake


@dataclass
class Shop:
    """A pipeline with one table, and its own runs."""

    lake: Lake
    folder: Path

    def sync(self, stop: StopRequests, scenario: str = "success") -> Synced:
        """Load it once; `scenario` is what becomes of Spark."""
        variables = environment(
            self.lake,
            self.folder,
            SPARK_HOME=str(self.folder / "spark"),
            FAKE_SPARK_SCENARIO=scenario,
        )
        document = load_pipeline(self.folder / "pipeline.yml", variables)
        options = RunOptions()
        job = LoadJob(document, table_specs(document, options), new_attempt(None), options)
        return sync_once(job, Context(variables, stop, console.err, quiet=True))

    def runs(self) -> list[Path]:
        """Return the folders of its runs."""
        return sorted((self.folder / "runs").iterdir()) if (self.folder / "runs").exists() else []


@pytest.fixture
def shop(base_identity: Lake, tmp_path: Path) -> Callable[[str], Shop]:
    """Make a pipeline of that name."""

    def make(name: str) -> Shop:
        folder = tmp_path / name
        folder.mkdir()
        (folder / f"{name}.csv").write_text("id,name\n1,a\n")
        tables = [{"table": name, "path": f"{name}.csv"}]
        base_identity.write_pipeline(folder, tables=tables, name=name, destination_prefix=name)
        fake_spark_home(folder)
        return Shop(base_identity, folder)

    return make


def test_sync_after_a_failed_one_of_another_pipeline_succeeds(shop: Callable[[str], Shop]) -> None:
    one, other = shop("orders"), shop("customers")

    with StopRequests() as stop:
        died = one.sync(stop, "dies")
        loaded = other.sync(stop)
        again = one.sync(stop)

    assert died.outcome.kind == "CRASHED"
    assert [table.status for table in died.outcome.tables] == ["FAILED"]
    assert (loaded.outcome.kind, loaded.outcome.error) == ("LOADED", None)
    assert [table.table for table in loaded.outcome.tables] == ["customers"]
    assert again.outcome.kind == "LOADED"
    assert [len(one.runs()), len(other.runs())] == [2, 1]
    logs = {died.log, loaded.log, again.log}
    assert len(logs) == 3
    assert all(log is not None and log.is_file() for log in logs)


def test_tables_beside_one_that_ends_the_driver_are_loaded(shop: Callable[[str], Shop]) -> None:
    orders = shop("orders")
    tables = [{"table": name, "path": "orders.csv"} for name in ("a", "damaged", "b", "c")]
    orders.lake.write_pipeline(
        orders.folder, tables=tables, name="orders", destination_prefix="orders"
    )

    with StopRequests() as stop:
        outcome = orders.sync(stop, "native_code_ends_it").outcome

    statuses = {table.table: table.status for table in outcome.tables}
    assert statuses == {"a": "LOADED", "damaged": "FAILED", "b": "LOADED", "c": "LOADED"}
    assert (outcome.kind, outcome.exit_code, outcome.error) == ("FAILED", 1, None)
    error = outcome.tables[1].error
    assert error is not None
    assert "ended it with SIGABRT while it read `/data/damaged.parquet`" in error.message
    assert error.hint == "replace the file, or leave it out"


def test_sync_after_a_rejected_one_succeeds(shop: Callable[[str], Shop]) -> None:
    one, other = shop("orders"), shop("customers")
    (one.folder / "orders.csv").unlink()

    with StopRequests() as stop:
        refused, loaded = one.sync(stop), other.sync(stop)

    assert refused.outcome.exit_code == 3
    assert refused.log is None
    assert loaded.outcome.kind == "LOADED"


def test_sync_after_a_stopped_one_succeeds(shop: Callable[[str], Shop]) -> None:
    one, other = shop("orders"), shop("customers")

    with StopRequests() as stop:
        threading.Thread(target=_stop_when_it_runs, args=(one,), daemon=True).start()
        stopped = one.sync(stop, "ends_when_told")
        ends_the_loop = other.sync(stop)
    with StopRequests() as fresh:
        loaded = other.sync(fresh)

    assert stopped.outcome.kind == "INTERRUPTED"
    assert "SIGTERM" in (stopped.outcome.error.message if stopped.outcome.error else "")
    assert ends_the_loop.outcome.kind == "INTERRUPTED"
    assert ends_the_loop.log is None
    assert loaded.outcome.kind == "LOADED"
    assert len(other.runs()) == 1


def test_signal_between_two_syncs_stops_the_second_before_spark(
    shop: Callable[[str], Shop],
) -> None:
    one = shop("orders")

    with StopRequests() as stop:
        loaded = one.sync(stop)
        os.kill(os.getpid(), signal.SIGINT)
        stopped = one.sync(stop)

    assert loaded.outcome.kind == "LOADED"
    assert stopped.outcome.kind == "INTERRUPTED"
    assert len(one.runs()) == 1


def _stop_when_it_runs(shop: Shop, seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if any("opened" in (run / "events.jsonl").read_text() for run in _started(shop)):
            break
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGTERM)


def _started(shop: Shop) -> list[Path]:
    return [run for run in shop.runs() if (run / "events.jsonl").is_file()]
