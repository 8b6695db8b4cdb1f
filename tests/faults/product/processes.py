"""Parts that fail alone: a Python worker, an executor, the command, a task, the whole of AWS, and
a source that changes under the reader."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil

from tests.faults.product.case import JOB, Case
from tests.faults.product.kills import STEPS, Victim
from tests.faults.product.syncs import Sync, Told
from tests.faults.product.world import World
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import Drop, Forward, Response, after, answer, before

OUTAGE_SECONDS = 8.0

Trouble = Callable[[World, Case], list[Told]]


def lone_failures() -> list[Case]:
    """Return one case for each part."""
    troubles: list[tuple[str, str, Trouble]] = [
        ("Python worker killed", "worker-once", partial(_worker, "local[2]", "FAILED")),
        # Each dead worker that was idle fails a try too, once its daemon is gone.
        ("Python worker killed", "worker-retried", partial(_worker, "local[2,5]", "LOADED")),
        ("task fails and retries", "task-retried", _task),
        ("executor lost", "executor-lost", _executor),
        ("command killed alone", "command-while-staging", partial(_command, "upload-part")),
        ("command killed alone", "command-while-committing", partial(_command, "record")),
        ("source changes", "source-grows", partial(_source, "CreateMultipartUpload", 0)),
        ("source changes", "source-rewritten", partial(_source, "UploadPart", 1)),
        *(("AWS gone for a while", f"outage-{s}", partial(_outage, s)) for s in _OUTAGES),
    ]
    return [
        Case(kind, name, (name.replace("-", "_"),), trouble) for kind, name, trouble in troubles
    ]


_BEFORE_COMMIT = ("upload-part",)
_OUTAGES = (*_BEFORE_COMMIT, "record", "first-completion", "end")


def _expect(case: Case, told: Told, status: str) -> None:
    for table in case.tables:
        found = told.tables.get(table, {})
        if found.get("status") != status:
            case.findings.problems.append(f"{table}: expected {status}, told {found}")


def _worker(master: str, status: str, world: World, case: Case) -> list[Told]:
    """kill -9 of the Python workers while one uploads. Without retries the load fails cleanly."""
    # The driver would write so few rows itself, were they not read by Spark.
    folder = world.write(case.name, case.tables, spark={"master": master, "reader": "JVM"})
    told, killed = _killing(world, case, folder, lambda sync: sync.python_workers())
    if not killed:
        case.findings.problems.append(f"{case.name}: there was no Python worker to kill")
    _expect(case, told, status)
    return [told]


def _task(world: World, case: Case) -> list[Told]:
    """A refusal that nobody retries fails the task; Spark runs it again."""
    folder = world.write(case.name, case.tables, spark={"master": "local[2,3]"})
    rule = world.on("UploadPart", answer(403, "AccessDenied"), tables=case.tables, times=2)
    told = Sync(world, folder, JOB).end()
    world.off(rule)
    _expect(case, told, "LOADED")
    return [told]


def _executor(world: World, case: Case) -> list[Told]:
    """kill -9 of an executor that uploads; its tasks run again on the other."""
    folder = world.write(case.name, case.tables, spark={"master": "local-cluster[2,1,1024]"})
    told, killed = _killing(world, case, folder, lambda sync: sync.executors()[:1])
    _expect(case, told, "LOADED")
    if not killed:
        case.findings.problems.append(f"{case.name}: there was no executor to kill")
    return [told]


def _killing(
    world: World, case: Case, folder: Path, choose: Callable[[Sync], list[psutil.Process]]
) -> tuple[Told, bool]:
    """Run a sync whose first part upload kills the processes of its choice; say if it did."""
    sync = _Later()
    killed: list[psutil.Process] = []

    def kill(request: Request) -> None:
        for process in choose(sync.get()):
            process.kill()
            killed.append(process)

    rule = world.on("UploadPart", before(kill), tables=case.tables, times=1)
    told = sync.run(Sync(world, folder, JOB))
    world.off(rule)
    return told, bool(killed)


def _command(step: str, world: World, case: Case) -> list[Told]:
    """kill -9 of `lakeload` alone. spark-submit may go on, but not for ever, and not twice."""
    folder = world.write(case.name, case.tables)
    sync = _Later()
    found = next(each for each in STEPS if each.name == step)
    rule = world.on(
        found.operation,
        before(lambda _: sync.kill_command_only()),
        tables=case.tables,
        key=found.key,
        times=1,
    )
    started = Sync(world, folder, JOB, spark_home=world.killed_spark)
    told = sync.run(started)
    started.wait_for_spark()
    world.off(rule)
    return [told]


def _source(operation: str, skip: int, world: World, case: Case) -> list[Told]:
    """Rows are added to the file that is read last, after it was counted."""
    table = case.tables[0]
    folder = world.write(case.name, case.tables, spark={"master": "local[1]"})
    last = max(world.source(table).glob("*.csv"))

    def grow(request: Request) -> None:
        with last.open("a") as file:
            file.write(f"1000,{table} 1000\n")

    rule = world.on(operation, after(grow), tables=case.tables, skip=skip, times=1)
    told = Sync(world, folder, JOB).end()
    world.off(rule)
    _expect(case, told, "FAILED")
    error = told.tables.get(table, {}).get("error") or {}
    if "the source changed while it was read" not in error.get("message", ""):
        case.findings.problems.append(f"{table}: the change is not named: {error}")
    return [told]


def _outage(step: str, world: World, case: Case) -> list[Told]:
    """From one request on, nobody at AWS answers for a while. What is not committed yet may give
    up, cleanly; what is committed may not."""
    folder = world.write(case.name, case.tables)
    found = next(each for each in STEPS if each.name == step)
    began = threading.Event()
    end = [0.0]

    def gone(request: Request, forward: Forward) -> Response:
        if not began.is_set() and request.operation == found.operation:
            end[0] = time.monotonic() + OUTAGE_SECONDS
            began.set()
        if began.is_set() and time.monotonic() < end[0]:
            raise Drop
        return forward(request)

    # What was set up last is asked first.
    others = world.on("*", lambda r, f: gone(r, f) if began.is_set() else f(r), tables=case.tables)
    first = world.on(found.operation, gone, tables=case.tables, key=found.key)
    told = Sync(world, folder, JOB).end()
    world.off(first, others)
    if not began.is_set():
        case.findings.problems.append(f"{case.name}: the outage never began")
    if step not in _BEFORE_COMMIT:
        _expect(case, told, "LOADED")
    return [told]


class _Later(Victim):
    """A sync for rules that have to be there before it starts."""

    def kill_command_only(self) -> None:
        """kill -9 of `lakeload` alone."""
        self.get().kill_command_only()
        self._killed.set()

    def get(self) -> Sync:
        """Wait for the sync to be started and return it."""
        self._started.wait()
        assert self._sync is not None
        return self._sync
