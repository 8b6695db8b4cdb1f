"""Stands in for spark-submit: reads the real argv and spec, then behaves as a scenario says.

The scenario is in FAKE_SPARK_SCENARIO. It uses the product's contract classes, so what it writes
is what a job would write, and it is a real process with real signals.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lakeload_jobs.contract.codec import from_json, to_json
from lakeload_jobs.contract.events import Event, EventKind
from lakeload_jobs.contract.result import ErrorInfo, FileResult, RunResult, TableResult
from lakeload_jobs.contract.spec import JobSpec


class Job:
    """The side of the contract that a job speaks."""

    def __init__(self, spec: JobSpec) -> None:
        self.spec = spec
        self.started = datetime.now(UTC)

    def raw(self, data: bytes) -> None:
        with Path(self.spec.events_path).open("ab") as events:
            events.write(data)

    def event(self, kind: EventKind, **fields: Any) -> bytes:
        return json.dumps(to_json(Event(kind, datetime.now(UTC), **fields))).encode() + b"\n"

    def say(self, kind: EventKind, **fields: Any) -> None:
        self.raw(self.event(kind, **fields))

    def open(self) -> None:
        self.say("opened", message="4.1.4", pid=os.getpid())
        self.say("stage", stage="session")

    def load(self) -> tuple[TableResult, ...]:
        results = []
        for table in self.spec.tables:
            for stage in ("open", "count", "stage", "commit"):
                self.say("stage", stage=stage, table=table.source)
            self.say("progress", done=1, total=1)
            file = FileResult(f"lake/{table.schema}/{table.table}/part-0.gzip.parquet", 3, 100)
            results.append(
                TableResult(table.source, table.target, "LOADED", 3, 100, 0.5, (file,), "jvm")
            )
            self.say("table", table=table.source, name="LOADED")
        return tuple(results)

    def result(self, tables: tuple[TableResult, ...], error: ErrorInfo | None = None) -> RunResult:
        failed = error is not None or any(t.status == "FAILED" for t in tables)
        return RunResult(
            self.spec.contract,
            self.spec.job_id,
            self.spec.attempt_id,
            "FAILED" if failed else "SUCCEEDED",
            self.started,
            datetime.now(UTC),
            tables,
            error,
        )

    def write(self, result: RunResult, **changes: Any) -> None:
        path = Path(self.spec.result_path)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(to_json(result) | changes), encoding="utf-8")
        part.replace(path)


def success(job: Job) -> int:
    job.open()
    job.write(job.result(job.load()))
    job.say("closed", name="SUCCEEDED")
    return 0


def one_table_fails(job: Job) -> int:
    job.open()
    first, *others = job.load()
    changed = "the source changed while it was read"
    error = ErrorInfo("LoadFailed", changed, 1, stage="stage", retryable=True)
    job.write(job.result((replace(first, status="FAILED", files=(), error=error), *others)))
    return 1


def job_fails(job: Job) -> int:
    job.open()
    job.write(job.result((), ErrorInfo("AwsError", "AccessDenied", 3, "grant s3:PutObject")))
    return 3


def no_result(job: Job) -> int:
    job.open()
    job.load()
    return 0


def failed_result_but_zero(job: Job) -> int:
    one_table_fails(job)
    return 0


def result_but_nonzero(job: Job) -> int:
    success(job)
    return 134


def dies(job: Job) -> int:
    job.open()
    job.say("stage", stage="stage", table=job.spec.tables[0].source)
    sys.stderr.write("java.lang.OutOfMemoryError: Java heap space\n")
    return 1


def native_code_ends_it(job: Job) -> int:
    """The table `damaged` ends the driver, while others are loaded with it."""
    job.open()
    results: list[TableResult] = []
    for first in range(0, len(job.spec.tables), job.spec.concurrency):
        tables = job.spec.tables[first : first + job.spec.concurrency]
        if any(table.source == "damaged" for table in tables):
            for table in tables:
                job.say("stage", stage="open", table=table.source)
            note = Path(os.environ["LAKELOAD_FILES_IN_USE"]) / f"{os.getpid()}-1"
            note.write_text("/data/damaged.parquet")
            return 134
        results += Job(replace(job.spec, tables=tables)).load()
    job.write(job.result(tuple(results)))
    return 0


def killed(job: Job) -> int:
    job.open()
    job.say("stage", stage="commit", table=job.spec.tables[0].source)
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def never_opens(job: Job) -> int:
    sys.stderr.write("Error: Could not find or load main class org.apache.spark.launcher.Main\n")
    return 1


def floods_its_log(job: Job) -> int:
    job.open()
    chunk = b"WARN " + b"x" * 1000 + b"\n"
    # 300 MB in a file that may keep 64: big writes, so that it takes a second and not a minute.
    for _ in range(300):
        os.write(1, chunk * 1000)
    # What is written while the log is being cut may be lost, and this line is asked for.
    while os.fstat(1).st_size > 64 * 1024 * 1024:
        time.sleep(0.1)
    time.sleep(1)
    os.write(2, b"the last line\n")
    job.write(job.result(job.load()))
    return 0


def ends_when_told(job: Job) -> int:
    def tidy(number: int, frame: object) -> None:
        error = ErrorInfo("Interrupted", "nothing was committed", 130)
        tables = tuple(
            TableResult(t.source, t.target, "INTERRUPTED", error=error) for t in job.spec.tables
        )
        job.write(replace(job.result(tables), status="FAILED"))
        os._exit(143)

    signal.signal(signal.SIGTERM, tidy)
    job.open()
    time.sleep(60)
    return 0


def stops_at_once(job: Job) -> int:
    job.open()
    time.sleep(60)
    return 0


def stops_while_committing(job: Job) -> int:
    job.open()
    job.say("stage", stage="commit", table=job.spec.tables[0].source)
    time.sleep(60)
    return 0


def ignores_term(job: Job) -> int:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    job.open()
    time.sleep(60)
    return 0


def partial_lines(job: Job) -> int:
    line = job.event("opened", message="4.1.4", pid=os.getpid())
    job.raw(line[:7])
    time.sleep(0.35)
    stage = job.event("stage", stage="session")
    job.raw(line[7:] + stage[:-2])
    time.sleep(0.35)
    job.raw(stage[-2:])
    job.write(job.result(job.load()))
    return 0


def garbage_events(job: Job) -> int:
    job.raw(b"\xff\xfe not json\n[]\n{}\n" + b"[" * 100_000 + b"\n" + b"y" * 3_000_000 + b"\n")
    return success(job)


def events_of_another_version(job: Job) -> int:
    later = {"kind": "heartbeat", "at": "2026-11-21T10:00:00.000000Z", "load": 0.5}
    job.raw(json.dumps(later).encode() + b"\n")
    return success(job)


def result_of_another_version(job: Job) -> int:
    job.open()
    job.write(job.result(job.load()), contract=2, rows=9)
    return 0


def result_of_another_attempt(job: Job) -> int:
    job.open()
    job.write(job.result(job.load()), attempt_id="somebody-else")
    return 0


def broken_result(job: Job) -> int:
    job.open()
    Path(job.spec.result_path).write_text('{"contract": 1, "job_id"', encoding="utf-8")
    return 0


def closes_stdout(job: Job) -> int:
    os.close(1)
    os.close(2)
    return success(job)


def leaves_a_grandchild(job: Job) -> int:
    if os.fork() == 0:
        os.setpgid(0, 0)  # as pyspark's worker daemon does
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        Path(job.spec.result_path).with_name("grandchild").write_text(str(os.getpid()))
        time.sleep(60)
        os._exit(0)
    while not Path(job.spec.result_path).with_name("grandchild").exists():
        time.sleep(0.01)
    return success(job)


def dies_and_its_driver_tells(job: Job) -> int:
    """The JVM is killed; the Python driver, its child, notices and writes the result."""
    job.open()
    if os.fork() == 0:
        time.sleep(0.5)
        job.write(job.result((), ErrorInfo("LoadFailed", "the JVM is gone", 1)))
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


SCENARIOS: dict[str, Callable[[Job], int]] = {
    function.__name__: function
    for function in (
        success,
        one_table_fails,
        job_fails,
        no_result,
        failed_result_but_zero,
        result_but_nonzero,
        dies,
        native_code_ends_it,
        killed,
        never_opens,
        floods_its_log,
        ends_when_told,
        stops_at_once,
        stops_while_committing,
        ignores_term,
        partial_lines,
        garbage_events,
        events_of_another_version,
        result_of_another_version,
        result_of_another_attempt,
        broken_result,
        closes_stdout,
        leaves_a_grandchild,
        dies_and_its_driver_tells,
    )
}


def makes_an_archive() -> int:
    """Do what the training run of an AppCDS archive does, as far as its caller can see."""
    properties = Path(sys.argv[sys.argv.index("--properties-file") + 1]).read_text("utf-8")
    (target,) = re.findall(r"ArchiveClassesAtExit=([^\s\"]+)", properties)
    Path(target).write_bytes(b"archive")
    return 0


def main() -> int:
    if any(argument.endswith("run_training.py") for argument in sys.argv):
        return makes_an_archive()
    spec = from_json(JobSpec, json.loads(Path(sys.argv[-1]).read_bytes()))
    return SCENARIOS[os.environ["FAKE_SPARK_SCENARIO"]](Job(spec))


if __name__ == "__main__":
    sys.exit(main())
