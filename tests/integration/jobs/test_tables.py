"""Several tables in one run, the result they make, and what a stop leaves behind."""

from __future__ import annotations

import concurrent.futures
import json
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from lakeload_jobs.contract.codec import from_json, to_json
from lakeload_jobs.contract.errors import Interrupted, InvalidInput
from lakeload_jobs.contract.result import ErrorInfo, RunResult, TableResult
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import (
    ColumnsSpec,
    CredentialsSpec,
    JobSpec,
    ParquetSpec,
    RunOptions,
    RuntimeSpec,
)
from lakeload_jobs.jobs import scheduler as tables_module
from lakeload_jobs.jobs.attempt import read_spec, write_result
from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.load import exit_status, run
from tests.integration.jobs.conftest import SYNCED, Job


def events(spec: JobSpec) -> list[dict[str, object]]:
    return [json.loads(line) for line in Path(spec.events_path).read_text().splitlines()]


def test_failing_table_does_not_fail_the_others(job: Job) -> None:
    tables = [
        job.table(job.file(f"{n}.csv", f"id\n{n}\n{n + 1}\n"), name=f"t{n}") for n in range(5)
    ]
    missing = job.table("/nowhere/x.csv", name="missing")
    broken = job.table(job.file("broken.csv", "a,b\n1\n"), name="broken")
    spec = job.spec(missing, *tables, broken, concurrency=3)

    result = job.run(spec)

    assert [table.status for table in result.tables] == ["FAILED", *["LOADED"] * 5, "FAILED"]
    assert [table.table for table in result.tables] == [t.source for t in spec.tables]
    assert (result.status, exit_status(result)) == ("FAILED", 1)
    assert len(job.lake.data_keys()) == 5
    assert job.lake.uploads() == []


def test_small_tables_do_not_wait_for_the_large_ones(job: Job) -> None:
    sizes = {"large": 900, "first": None, "larger": 1000, "small": 10, "second": None}
    tables = [
        replace(job.table(job.file(f"{name}.csv", "id\n1\n"), name=name), input_bytes=size)
        for name, size in sizes.items()
    ]
    spec = job.spec(*tables, concurrency=1)

    result = job.run(spec)

    begun = [e["table"] for e in events(spec) if (e["kind"], e.get("stage")) == ("stage", "open")]
    assert begun == ["first", "second", "small", "large", "larger"]
    assert [table.table for table in result.tables] == list(sizes)

    spec = job.spec(*tables, concurrency=2)
    job.run(spec)

    begun = [e["table"] for e in events(spec) if (e["kind"], e.get("stage")) == ("stage", "open")]
    assert set(begun[:2]) == {"first", "larger"}


@pytest.mark.parametrize("in_tasks", [True, False])
def test_events_report_each_stage_of_each_table(job: Job, in_tasks: bool) -> None:
    spec = job.spec(
        job.table(job.file("a.csv", "id\n1\n"), name="a"),
        job.table("/nowhere.csv", name="b"),
        runtime=RuntimeSpec(tasks_retried=in_tasks),
    )

    job.run(spec)

    told = events(spec)
    steps = [event["stage"] for event in told if event["kind"] == "stage" and event["table"] == "a"]
    assert steps == ["open", "count", "stage", "commit"]
    ends = {str(e["table"]): (e["name"], e.get("message")) for e in told if e["kind"] == "table"}
    assert ends["a"] == ("LOADED", None)
    assert ends["b"][0] == "FAILED"
    assert "/nowhere.csv" in str(ends["b"][1])
    progress = [event for event in told if event["kind"] == "progress"]
    tasks = [event for event in progress if "done" in event]
    assert bool(tasks) is in_tasks
    assert not tasks or tasks[-1]["done"] == tasks[-1]["total"]
    (rows,) = (event for event in progress if "done" not in event)
    assert (rows["table"], rows["rows"]) == ("a", 1)
    assert int(str(rows["bytes"])) > 100
    assert [e["rows"] for e in told if e.get("stage") == "stage" and e["table"] == "a"] == [1]


def test_warning_is_an_event_and_in_the_result(job: Job) -> None:
    columns = ColumnsSpec(types={"b": "int"})
    table = job.table(job.file("a.csv", "a,b\n1,x\n"), columns=columns)
    spec = job.spec(table, on_bad_value="NULL")

    result = job.run(spec)

    (note,) = (event for event in events(spec) if event["kind"] == "note")
    assert note["level"] == "warning"
    assert result.tables[0].warnings == (note["message"],)


def test_denied_role_is_one_error_and_no_table_starts(job: Job) -> None:
    seeded = job.lake.seeded
    wrong = job.folder / "wrong"
    wrong.write_text("not-the-external-id")
    destination = job.destination()
    credentials = CredentialsSpec(
        role_arn=seeded.role_arn,
        external_id=SecretReference("file", str(wrong)),
        access_key_id=destination.credentials.access_key_id,
        secret_access_key=destination.credentials.secret_access_key,
    )
    tables = [job.table(job.file("a.csv", "id\n1\n"), name=name) for name in ("a", "b")]

    result = job.load(*tables, destination={"credentials": credentials})

    assert result.error is not None
    assert "access denied" in result.error.message
    assert "ExternalId" in (result.error.hint or "")
    assert "not-the-external-id" not in str(result)
    assert exit_status(result) == 3
    assert [table.status for table in result.tables] == ["SKIPPED", "SKIPPED"]
    assert job.lake.keys() == []


def test_a_missing_bucket_is_named(job: Job) -> None:
    result = job.load(
        job.table(job.file("a.csv", "id\n1\n")), destination={"bucket": "not-there-at-all"}
    )

    assert exit_status(result) == 3
    (table,) = result.tables
    assert table.error is not None
    assert "not-there-at-all" in table.error.message


def test_first_run_rejects_a_table_that_is_not_empty(job: Job) -> None:
    table = job.table(job.file("a.csv", "id\n1\n"))
    job.load_one(table)

    result = job.load_one(table, pipeline="other", options=RunOptions())

    assert result.status == "FAILED"
    assert len(job.lake.data_keys()) == 1


def test_a_stop_aborts_what_was_staged(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal's handler raises in the thread that waits; here a thread plays its part."""
    lines = "\n".join(f"{i},{i * 7919}" for i in range(400_000))
    paths = [job.file(f"{n}.csv", "id,n\n" + lines) for n in range(4)]
    spec = job.spec(job.table(*paths), destination={"target_file_size": 100_000})

    def until_staged(futures: object) -> None:
        while not job.lake.uploads():
            time.sleep(0.05)
        raise Interrupted("stopped by SIGTERM")

    real_wait = concurrent.futures.wait
    calls = threading.Event()

    def wait(futures: object, **options: object) -> object:
        if not calls.is_set():
            calls.set()
            until_staged(futures)
        return real_wait(futures, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(tables_module, "wait", wait)
    with EventLog(spec.events_path) as log:
        result = run(job.spark, spec, log)

    (table,) = result.tables
    assert table.status == "INTERRUPTED"
    assert exit_status(result) == 130
    assert job.lake.uploads_left() == []
    assert job.lake.keys() == []


def test_result_file_equals_the_returned_result(tmp_path: Path) -> None:
    error = ErrorInfo("LoadFailed", "no", 1, stage="open")
    result = RunResult(
        1,
        "j",
        "a",
        "FAILED",
        SYNCED,
        SYNCED,
        (TableResult("t", "s.t", "FAILED", error=error),),
    )

    write_result(tmp_path / "result.json", result)

    assert from_json(RunResult, json.loads((tmp_path / "result.json").read_text())) == result
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


@pytest.mark.parametrize(
    ("codes", "expected"), [((3, 3), 3), ((2, 1), 1), ((1,), 1), ((None, 3), 1), ((None,), 0)]
)
def test_the_exit_status_is_what_all_failures_share(
    codes: tuple[int | None, ...], expected: int
) -> None:
    tables = tuple(
        TableResult("t", "t", "LOADED")
        if code is None
        else TableResult("t", "t", "FAILED", error=ErrorInfo("E", "m", code))
        for code in codes
    )
    status = "SUCCEEDED" if codes == (None,) else "FAILED"

    assert exit_status(RunResult(1, "j", "a", status, SYNCED, SYNCED, tables)) == expected  # type: ignore[arg-type]


def test_spec_of_another_contract_version_is_rejected(job: Job, tmp_path: Path) -> None:
    spec = job.spec(job.table("/x.csv"))
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(to_json(spec) | {"contract": 99}))

    with pytest.raises(InvalidInput, match="contract 99"):
        read_spec(str(path))

    path.write_text(json.dumps(to_json(spec)))
    assert read_spec(str(path)) == spec


def test_names_with_uuids_are_new_for_each_file(job: Job) -> None:
    paths = [job.file(f"{n}.csv", "id\n1\n") for n in range(3)]
    parquet = ParquetSpec(partition_strategy="NONE", file_name_pattern="{uuid}")

    result = job.load_one(job.table(*paths), destination={"parquet": parquet})

    names = [file.key.removeprefix("data-lake/test/shop/orders/") for file in result.files]
    assert all("/" not in name for name in names)
    assert len(set(names)) == len(names) > 1
