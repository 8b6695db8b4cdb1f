"""Maintenance of Iceberg tables by the command line itself: its report and exit codes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lakeload.formats.iceberg import glue_optimizers
from lakeload.formats.iceberg import maintain as module
from lakeload.formats.tables import MaintenanceRequest
from lakeload.launch.run import Maintained
from lakeload.launch.stop import STOP_SIGNALS, StopRequests
from lakeload_jobs.contract.errors import (
    CommitConflict,
    ExitCode,
    Interrupted,
    LoadFailed,
    Refused,
)
from lakeload_jobs.contract.events import Step
from lakeload_jobs.contract.maintain import MaintainSpec, StepResult
from lakeload_jobs.contract.spec import DestinationSpec, FilesInput, TableSpec
from lakeload_jobs.contract.traits import FORMATS
from lakeload_jobs.formats.iceberg import maintenance
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError

DESTINATION = DestinationSpec("lake", "eu", table_format="ICEBERG")
ICEBERG = FORMATS["ICEBERG"]
WITHOUT_SPARK = tuple(set(ICEBERG.maintenance_steps) - ICEBERG.steps_with_jars)
Act = Callable[[Any], StepResult]


def request(*steps: Step) -> MaintenanceRequest:
    """Ask for steps in two tables."""
    given = FilesInput("CSV", ("/a.csv",), {})
    tables = [TableSpec(name, "db", name, given, "f00") for name in ("orders", "lines")]
    return MaintenanceRequest("shop", DESTINATION, tables, tables, MaintainSpec(steps, apply=True))


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> dict[Step, Act]:
    """The steps, of tables that are there. Nothing is asked."""
    here = SimpleNamespace(read=lambda *_: object(), store=SimpleNamespace(open=lambda: None))
    monkeypatch.setattr(module, "preflight", lambda _: None)
    monkeypatch.setattr(module, "CatalogTables", SimpleNamespace(of=lambda *_: here))
    found: dict[Step, Act] = {
        step: lambda _: StepResult("expire", "DONE") for step in WITHOUT_SPARK
    }
    monkeypatch.setattr(module, "STEPS", found)
    return found


def taken(*names: Step) -> Maintained:
    """Take steps here."""
    found = module.maintain(request(*names))
    assert found is not None
    return found


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("step", sorted(ICEBERG.steps_with_jars))
def test_run_with_a_step_of_sparks_is_a_spark_job(step: Step) -> None:
    assert module.maintain(request(*WITHOUT_SPARK, step)) is None


def test_steps_that_need_no_jar_are_those_without_spark() -> None:
    assert maintenance.STEPS.keys() == set(WITHOUT_SPARK)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (None, "DONE", ExitCode.OK),
        (CommitConflict("others came first"), "CONFLICT", ExitCode.FOLLOW_UP_FAILED),
        (LoadFailed("no"), "FAILED", ExitCode.TABLE_FAILED),
        (Refused("denied"), "FAILED", ExitCode.REFUSED),
    ],
)
def test_end_of_a_step_decides_status_and_exit_code(
    error: Exception | None, status: str, code: ExitCode, steps: dict[Step, Act]
) -> None:
    def act(_: Any) -> StepResult:
        if error is not None:
            raise error
        return StepResult("branches", "DONE")

    steps["branches"] = act
    found = taken("branches", "expire")
    assert found.exit_code == code
    for table in found.tables:
        assert [step.status for step in table.steps] == [status, "DONE"]
        assert table.error is None
        assert table.steps[0].error is None or table.steps[0].error.stage == "branches"


def test_table_that_cannot_be_read_leaves_the_others_alone(
    steps: dict[Step, Act], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(_: str, name: str) -> object:
        if name == "orders":
            raise CatalogError("no", code="ForbiddenException", status=403)
        return None

    here = SimpleNamespace(read=read, store=SimpleNamespace(open=lambda: None))
    monkeypatch.setattr(module, "CatalogTables", SimpleNamespace(of=lambda *_: here))
    orders, lines = taken("branches").tables
    assert orders.error is not None
    assert (orders.error.exit_code, orders.error.stage, orders.steps) == (3, "open", ())
    # There is no such table.
    assert (lines.error, lines.steps) == (None, ())


@pytest.fixture
def stopped_request() -> Iterator[Callable[[], None]]:
    """A request that a signal stops, once. As AWS's clients do, it repeats what an error ended."""
    begun, over = threading.Event(), threading.Event()

    def send() -> None:
        if not begun.is_set():
            begun.set()
            with suppress(Exception):
                os.kill(os.getpid(), signal.SIGTERM)
        over.wait(10)

    assert signal.SIGTERM in STOP_SIGNALS
    yield send
    over.set()


def test_stop_ends_the_run_with_what_is_done_and_says_no_word_of_nothing_written(
    steps: dict[Step, Act], stopped_request: Callable[[], None]
) -> None:
    def act(work: Any) -> StepResult:
        if work.of.table == "lines":
            stopped_request()
        return StepResult("branches", "DONE")

    steps["branches"] = act
    with StopRequests() as stop:
        stop.acting = True
        found = taken("branches")
    assert found.exit_code == ExitCode.INTERRUPTED
    assert [table.target for table in found.tables] == ["db.orders"]
    error = cast("Any", found.error)
    assert (error.message, error.hint[:12]) == ("stopped by SIGTERM", "run it again")


def test_stop_ends_the_registering_of_optimizers(
    stopped_request: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def register(*_: object, **__: object) -> str:
        stopped_request()
        return "create"

    monkeypatch.setattr(
        glue_optimizers, "GlueOptimizers", lambda *_: SimpleNamespace(register=register)
    )
    given = request("branches")
    role = "arn:aws:iam::123456789012:role/optimizers"
    with StopRequests(), pytest.raises(Interrupted):
        glue_optimizers.register(given.destination, given.tables, role, given.wanted)
