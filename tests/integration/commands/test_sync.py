"""`lakeload sync` against the enforcing AWS, with a stand-in for spark-submit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lakeload.documents.load import load_pipeline
from lakeload.documents.spec import destination_spec, table_specs
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import TableSpec
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.log.admission import LoadAttempt
from lakeload_jobs.formats.parquet.log.records import LoadRecord, Target
from lakeload_jobs.formats.parquet.log.table_log import TableLog
from lakeload_jobs.storage.objects import Objects
from tests.e2e.command import Ended, argv, environment, lakeload
from tests.fakes.spark_home import fake_spark_home
from tests.open_metrics import samples
from tests.servers.fault_proxy import FaultProxy, answer
from tests.servers.ministack import Lake

pytestmark = pytest.mark.usefixtures("forked_commands")

TABLES = [
    {"table": "orders", "path": "orders.csv"},
    {"table": "customers", "path": "customers.csv"},
]


@pytest.fixture
def folder(lake: Lake, tmp_path: Path) -> Path:
    """A folder with two tables, their documents and a SPARK_HOME whose spark-submit is the fake."""
    for name in ("orders", "customers"):
        (tmp_path / f"{name}.csv").write_text("id,name\n1,a\n2,b\n")
    lake.write_pipeline(tmp_path, tables=TABLES)
    fake_spark_home(tmp_path)
    return tmp_path


def run(lake: Lake, folder: Path, scenario: str, *arguments: str, **changes: str) -> Ended:
    return lakeload(
        lake,
        folder,
        *("sync", "pipeline.yml", *arguments),
        SPARK_HOME=str(folder / "spark"),
        FAKE_SPARK_SCENARIO=scenario,
        **changes,
    )


def run_folder(folder: Path) -> Path:
    (found,) = (folder / "runs").glob("2*")
    return found


def spec(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run_folder(folder) / "spec.json").read_bytes())
    return found


def test_sync_prints_the_job_id_first_and_then_the_tables(lake: Lake, folder: Path) -> None:
    ended = run(lake, folder, "success", "--job-id", "job-7")
    assert ended.code == 0, ended.stderr
    assert ended.stderr.splitlines()[0] == "job job-7"
    assert "shop.orders" in ended.stdout
    assert "LOADED" in ended.stdout
    assert f"s3://{lake.seeded.bucket}/lake/shop/orders/" in ended.stdout
    assert max(map(len, ended.stdout.splitlines()[:3])) <= 80


def test_the_json_document_has_exactly_the_agreed_keys(lake: Lake, folder: Path) -> None:
    ended = run(lake, folder, "success", "--output", "json")
    assert list(ended.document) == [
        *("job_id", "attempt_id", "pipeline", "status", "exit_code", "started_at", "seconds"),
        *("tables", "error", "log", "class_data", "usage", "timings"),
    ]
    assert set(ended.document["tables"][0]) == {
        *("table", "target", "status", "rows", "bytes", "seconds", "files", "snapshot_id"),
        *(
            "changes",
            "reader",
            "index",
            "warnings",
            "notes",
            "error",
            "file_count",
            "already",
            "waiting",
        ),
        *("rejected", "deleted", "writer", "same_key", "more", "position"),
        *("location", "columns"),
    }
    assert ended.document["status"] == "SUCCEEDED"
    assert ended.document["error"] is None


def test_job_is_given_what_the_inspection_has_read(lake: Lake, folder: Path) -> None:
    run(lake, folder, "success")
    given = [table["inspected"] for table in spec(folder)["tables"]]
    assert [(one["checkpoint"]["number"], one["first_run"]) for one in given] == [(0, True)] * 2


def test_timings_add_up_to_the_time_of_the_command(lake: Lake, folder: Path) -> None:
    began = time.monotonic()
    ended = run(lake, folder, "success", "--output", "json", "--timings")
    whole = time.monotonic() - began

    times = ended.document["timings"]
    names = [phase["name"] for phase in times["phases"]]
    assert names == [
        *("start", "documents", "machine", "connection", "inspection", "preparation", "spark"),
        *("destination", "tables", "shutdown", "summary"),
    ]
    assert times["seconds"] == pytest.approx(sum(one["seconds"] for one in times["phases"]))
    assert ended.document["seconds"] <= times["seconds"] <= whole + 0.1
    assert [table["table"] for table in times["tables"]] == ["orders", "customers"]
    stages = [stage["name"] for stage in times["tables"][0]["stages"]]
    assert stages == ["open", "count", "stage", "commit"]


def test_metrics_of_jobs_add_up_in_the_file(lake: Lake, folder: Path) -> None:
    path = folder / "shop.prom"
    run(lake, folder, "success", "--metrics-file", str(path))
    ended = run(lake, folder, "one_table_fails", "--metrics-file", str(path))
    away = run(lake, folder, "success", "--metrics-file", str(folder / "away" / "shop.prom"))

    assert ended.code == 1
    found = {
        (sample.name.removeprefix("lakeload_"), sample.labels.get("table", "")): sample.value
        for sample in samples(path.read_text())
    }
    assert found["job_exit_code", ""] == 1
    assert found["table_consecutive_failures", "shop.orders"] == 1
    assert found["table_consecutive_failures", "shop.customers"] == 0
    assert found["job_cpu_seconds_total", ""] > 0.1
    assert away.code == 0
    assert away.stderr.count("warning: writing the metrics file") == 1


def test_timings_of_a_dry_run_are_rejected(lake: Lake, folder: Path) -> None:
    ended = run(lake, folder, "success", "--timings", "--dry-run")

    assert ended.code == 2
    assert "`--timings` needs a load" in ended.stderr


def test_sync_quiet_prints_only_the_result(lake: Lake, folder: Path) -> None:
    ended = run(lake, folder, "success", "-q")
    assert ended.stderr == ""
    assert "LOADED" in ended.stdout


def test_sync_without_archive_names_the_command_once(lake: Lake, folder: Path) -> None:
    cache = str(folder / "cache")
    run(lake, folder, "success", "--quiet", LAKELOAD_CACHE_DIR=cache)
    ended = run(lake, folder, "success", LAKELOAD_CACHE_DIR=cache)
    again = run(lake, folder, "success", LAKELOAD_CACHE_DIR=cache)
    failed = run(lake, folder, "one_table_fails", LAKELOAD_CACHE_DIR=str(folder / "empty"))
    shown = [*ended.stdout.splitlines(), *ended.stderr.splitlines()]
    (line,) = (line for line in shown if "AppCDS" in line)
    assert line in ended.stdout
    assert line == (
        "Spark started without an AppCDS archive: `lakeload jars fetch pipeline.yml` builds one, "
        "once, and later loads start about 1 s sooner"
    )
    assert "AppCDS" not in again.stdout + again.stderr
    assert "AppCDS" not in failed.stdout + failed.stderr

    as_json = run(lake, folder, "success", "--output", "json", LAKELOAD_CACHE_DIR=cache)
    assert as_json.document["class_data"] == {
        "command": "lakeload jars fetch pipeline.yml",
        "saves_seconds": 1,
    }
    assert "AppCDS" not in as_json.stderr


def test_class_data_auto_of_older_pipelines_builds_nothing(lake: Lake, folder: Path) -> None:
    lake.write_pipeline(folder, tables=TABLES, spark={"class_data": "AUTO"})
    cache = folder / "cache"

    ended = run(lake, folder, "success", "--output", "json", LAKELOAD_CACHE_DIR=str(cache))

    assert ended.code == 0
    assert ended.document["class_data"]["command"] == "lakeload jars fetch pipeline.yml"
    assert not list(cache.rglob("*.jsa"))


def test_failed_table_is_printed_with_the_command_that_loads_the_rest(
    lake: Lake, folder: Path
) -> None:
    ended = run(lake, folder, "one_table_fails", "--job-id", "job-8")
    assert ended.code == 1
    assert "error: shop.orders: the source changed" in ended.stderr
    assert str(run_folder(folder) / "spark.log") in ended.stderr
    assert "rerun with `--job-id job-8`" in ended.stderr


def test_error_before_spark_is_one_json_document(lake: Lake, folder: Path) -> None:
    (folder / "orders.csv").unlink()
    (folder / "customers.csv").unlink()
    ended = run(lake, folder, "success", "--output", "json", "--job-id", "job-9")
    assert ended.code == 3
    assert (ended.document["job_id"], ended.document["tables"]) == ("job-9", [])
    assert "orders.csv" in ended.document["error"]["message"]
    assert not (folder / "argv").exists()


def test_store_without_conditional_writes_is_rejected_before_spark(
    lake: Lake, folder: Path, fault_proxy: FaultProxy
) -> None:
    lake.write_pipeline(folder, tables=TABLES, endpoint=fault_proxy.endpoint)
    fault_proxy.on("PutObject", answer(501, "NotImplemented"))
    ended = run(lake, folder, "success", "--output", "json")
    assert ended.code == 3
    assert "no conditional writes" in ended.document["error"]["message"]
    assert "single_writer: true" in ended.document["error"]["hint"]
    assert not (folder / "argv").exists()

    destination = {"single_writer": True}
    lake.write_pipeline(
        folder, tables=TABLES, endpoint=fault_proxy.endpoint, destination=destination
    )
    ended = run(lake, folder, "success", "--output", "json")
    assert ended.code == 0, ended.stderr
    for table in ended.document["tables"]:
        assert "rows may be lost or duplicated" in " ".join(table["warnings"])


def test_the_chosen_tables_and_the_limit_reach_the_job(lake: Lake, folder: Path) -> None:
    ended = run(lake, folder, "success", "--table", "ord*", "--limit", "3")
    assert ended.code == 0, ended.stderr
    assert [table["source"] for table in spec(folder)["tables"]] == ["orders"]
    assert spec(folder)["options"]["limit"] == 3


def test_the_flag_for_the_master_is_checked_without_spark_too(lake: Lake, folder: Path) -> None:
    ended = run(lake, folder, "success", "--dry-run", "--no-schema", "--master", "yarn")
    assert ended.code == 2
    assert "`--master`: the master `yarn` is not supported yet" in ended.stderr


def test_the_run_folder_is_private_and_holds_no_properties_afterwards(
    lake: Lake, folder: Path
) -> None:
    run(lake, folder, "success")
    found = run_folder(folder)
    assert found.stat().st_mode & 0o777 == 0o700
    names = sorted(path.name for path in found.iterdir())
    assert names == ["events.jsonl", "log4j2.properties", "result.json", "spark.log", "spec.json"]


def test_no_secret_is_in_a_file_an_argument_or_the_output(lake: Lake, folder: Path) -> None:
    ended = run(lake, folder, "success", "-vv", "--log-file", "detail.log")
    assert ended.code == 0, ended.stderr
    texts = [ended.stdout, ended.stderr, (folder / "argv").read_text()]
    files = [folder / "detail.log", *run_folder(folder).iterdir()]
    texts += [path.read_text(errors="replace") for path in files]
    for name in ("LAKELOAD_EXTERNAL_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"):
        secret = lake.environment[name]
        assert not any(secret in text for text in texts), name


def test_tables_committed_under_the_job_id_need_no_spark(lake: Lake, folder: Path) -> None:
    for table in _tables(lake, folder):
        _commit(lake, folder, table, "job-1")
    ended = run(lake, folder, "success", "--job-id", "job-1", "--output", "json")
    assert ended.code == 0, ended.stderr
    assert {table["status"] for table in ended.document["tables"]} == {"NO_OP"}
    assert not (folder / "argv").exists()


def test_one_table_that_is_missing_starts_spark_for_all(lake: Lake, folder: Path) -> None:
    orders, _ = _tables(lake, folder)
    _commit(lake, folder, orders, "job-1")
    run(lake, folder, "success", "--job-id", "job-1")
    assert len(spec(folder)["tables"]) == 2


def test_the_same_job_id_for_another_load_is_invalid_before_spark(lake: Lake, folder: Path) -> None:
    for table in _tables(lake, folder):
        _commit(lake, folder, table, "job-1")
    ended = run(lake, folder, "success", "--job-id", "job-1", "--limit", "1")
    assert ended.code == 2
    assert "choose another `--job-id`" in ended.stderr
    assert not (folder / "argv").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_stops_the_job_and_reports_committed_tables(
    lake: Lake, folder: Path, number: signal.Signals
) -> None:
    changes = {"SPARK_HOME": str(folder / "spark"), "FAKE_SPARK_SCENARIO": "stops_at_once"}
    process = subprocess.Popen(
        argv("sync", "pipeline.yml"),
        cwd=folder,
        env=environment(lake, folder, **changes),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 60
    while not list((folder / "runs").glob("*/events.jsonl")) and time.monotonic() < until:
        time.sleep(0.05)
    os.kill(process.pid, number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert f"stopped by {number.name}: nothing was committed" in stderr


def test_first_line_is_printed_before_any_aws_request(lake: Lake, folder: Path) -> None:
    """boto3 alone takes a third of the second that the first line may take."""
    program = (
        "import sys, lakeload.ui.console as console\n"
        "note = console.note\n"
        "def check(text):\n"
        "    assert not {'boto3', 'pyarrow', 'pyspark'} & set(sys.modules), text\n"
        "    note(text); raise SystemExit(7)\n"
        "console.note = check\n"
        "sys.argv = ['lakeload', 'sync', 'pipeline.yml']\n"
        "from lakeload.app import main; main()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=environment(lake, folder),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr[:4]) == (7, "job ")


def _tables(lake: Lake, folder: Path) -> tuple[TableSpec, ...]:
    return table_specs(load_pipeline(folder / "pipeline.yml", lake.environment))


def _commit(lake: Lake, folder: Path, table: TableSpec, job_id: str) -> None:
    """Bring a job without rows in, as the Spark job would."""
    destination = destination_spec(
        load_pipeline(folder / "pipeline.yml", lake.environment).destination
    )
    with pytest.MonkeyPatch.context() as patch:
        for name, value in lake.environment.items():
            patch.setenv(name, value)
        location = TableLocation(destination.prefix, table.schema, table.table)
        log = TableLog(Objects(AwsSession(destination), destination), location)
        log.open(LoadAttempt("shop", job_id, "attempt-0", table.fingerprint, table.source, "FAIL"))
        log.commit(_record(table, destination.prefix, job_id))


def _record(table: TableSpec, prefix: str, job_id: str) -> LoadRecord:
    now = datetime.now(UTC)
    return LoadRecord(
        tool="test",
        pipeline="shop",
        source=table.source,
        job_id=job_id,
        attempt_id="attempt-0",
        started_at=now,
        created_at=now,
        synced=now,
        mode="APPEND",
        table_handling="FAIL",
        fingerprint=table.fingerprint,
        target=Target(prefix, table.schema, table.table),
        partition_strategy="HOUR",
        file_name_pattern="part-{supa_job_id}-{seq}",
        partition="",
        columns=(),
        column_map={},
        index="dense",
        rows=0,
        files=(),
    )
