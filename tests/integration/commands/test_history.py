"""The job history of `lakeload sync`, with a stand-in for spark-submit and a real store."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lakeload.history.day import of_job
from lakeload.history.store import LakeHistory, record
from lakeload.monitoring.history import JobHistory
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.result import TableResult
from tests.e2e.command import Ended, environment, lakeload
from tests.fakes.spark_home import fake_spark_home
from tests.integration.commands.conftest import Command
from tests.integration.conftest import make_destination
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import FaultProxy, Forward, Response, answer, delay, drop_answer
from tests.servers.ministack import Lake
from tests.unit.monitoring.documents import FAILED, LOADED, document, later

pytestmark = pytest.mark.usefixtures("forked_commands")

TABLES = [{"table": name, "path": f"{name}.csv"} for name in ("orders", "customers")]
HISTORY = "/job-history/"


def documents(lake: Lake, folder: Path, **changes: Any) -> None:
    """Write a pipeline of two tables, and a driver that does as it is told."""
    for name in ("orders", "customers"):
        (folder / f"{name}.csv").write_text("id,name\n1,a\n2,b\n")
    lake.write_pipeline(folder, tables=TABLES, **changes)
    fake_spark_home(folder)


def sync(lake: Lake, folder: Path, scenario: str = "success", *more: str) -> Ended:
    """Load both tables."""
    return lakeload(
        lake,
        folder,
        *("sync", "pipeline.yml", "--output", "json", *more),
        SPARK_HOME=str(folder / "spark"),
        FAKE_SPARK_SCENARIO=scenario,
    )


def keys(lake: Lake) -> list[str]:
    return [key for key in lake.keys() if HISTORY in key]  # noqa: SIM118


def day(lake: Lake) -> dict[str, Any]:
    """Return the one day of the history in the lake."""
    (key,) = keys(lake)
    assert "/_lakeload/job-history/shop/" in key
    found: dict[str, Any] = json.loads(lake.read(key))
    return found


def test_jobs_of_every_end_are_in_the_history(lake: Lake, tmp_path: Path) -> None:
    documents(lake, tmp_path)
    ends = [sync(lake, tmp_path, name) for name in ("success", "one_table_fails", "killed")]
    assert [ended.code for ended in ends] == [0, 1, 4], ends[-1].stderr
    found = day(lake)
    assert [job["job_id"] for job in found["jobs"]] == [one.document["job_id"] for one in ends]
    assert [job["exit_code"] for job in found["jobs"]] == [0, 1, 4]
    assert [table["status"] for table in found["jobs"][1]["tables"]] == ["FAILED", "LOADED"]
    states = {one["target"]: one for one in found["tables"]}
    assert states["shop.orders"]["failures"] == 2
    assert states["shop.customers"]["failures"] == 1
    assert found["health"]["error"]["type"] == "DriverDied"
    assert not list((tmp_path / "runs").rglob("job-history/*/shop/*.json"))
    assert "warning" not in ends[0].stderr


def test_job_that_the_store_refused_is_in_the_history_of_the_next(
    lake: Lake, tmp_path: Path, fault_proxy: FaultProxy
) -> None:
    documents(lake, tmp_path, endpoint=fault_proxy.endpoint)
    fault_proxy.on("*", answer(403, "AccessDenied"))
    refused = sync(lake, tmp_path)
    fault_proxy.rules.clear()
    assert refused.code == 3
    assert "the job history could not be written" in refused.stderr
    assert keys(lake) == []
    assert sync(lake, tmp_path).code == 0
    assert [job["exit_code"] for job in day(lake)["jobs"]] == [3, 0]
    assert not list((tmp_path / "runs").rglob("job-history/*/shop/*.json"))


@pytest.mark.parametrize("what", ["hangs", "denies", "loses the response"])
def test_store_in_trouble_costs_no_load_and_only_seconds(
    lake: Lake, tmp_path: Path, fault_proxy: FaultProxy, what: str
) -> None:
    act = {
        "hangs": delay(30),
        "denies": answer(403, "AccessDenied"),
        "loses the response": drop_answer,
    }[what]
    asked: list[float] = []

    def troubled(request: Request, forward: Forward) -> Response:
        asked.append(time.monotonic())
        return act(request, forward)

    documents(lake, tmp_path, endpoint=fault_proxy.endpoint)
    assert sync(lake, tmp_path).code == 0
    fault_proxy.on("PutObject", troubled, key=f"*{HISTORY}*")
    ended = sync(lake, tmp_path)
    seconds = time.monotonic() - asked[0]
    fault_proxy.rules.clear()
    assert ended.code == 0
    assert ended.document["status"] == "SUCCEEDED"
    assert seconds < 5.5
    assert ended.stderr.count("the job history could not be written") == 1
    assert "`history: false`" in ended.stderr
    assert sync(lake, tmp_path).code == 0
    assert len(day(lake)["jobs"]) == 3


def test_pipeline_without_a_history_writes_none(lake: Lake, tmp_path: Path) -> None:
    documents(lake, tmp_path, history=False)
    assert sync(lake, tmp_path).code == 0
    assert keys(lake) == []
    assert not (tmp_path / "runs" / "job-history").exists()


def test_jobs_that_end_at_the_same_time_are_all_in_the_history(
    base_identity: Lake, tmp_path: Path
) -> None:
    destination = make_destination(base_identity)
    store = LakeHistory(AwsSession(destination), destination)

    def write(number: int) -> None:
        made = document(LOADED, at=later(number), job=f"job-{number}")
        record(store, of_job(made, ("lake.orders",)))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert [job["job_id"] for job in day(base_identity)["jobs"]] == [f"job-{n}" for n in range(4)]


def test_day_begins_with_the_state_of_the_day_before(base_identity: Lake) -> None:
    destination = make_destination(base_identity)
    store = LakeHistory(AwsSession(destination), destination)
    before = of_job(document(FAILED), ("lake.orders",))
    assert store.write(before, "2026-11-26", None)
    record(store, of_job(document(FAILED, at=later(1)), ("lake.orders",)))
    *_, today = store.days("shop")
    found = store.read("shop", today)
    assert found is not None
    assert [(job.exit_code, found.day.tables[0].failures) for job in found.day.jobs] == [(1, 2)]


def test_history_that_lakeload_did_not_write_stays_as_it_is(lake: Lake, tmp_path: Path) -> None:
    documents(lake, tmp_path)
    assert sync(lake, tmp_path).code == 0
    (key,) = keys(lake)
    lake.server.s3.put_object(Bucket=lake.seeded.bucket, Key=key, Body=b"other")
    ended = sync(lake, tmp_path)
    assert ended.code == 0
    assert "is not what lakeload wrote" in ended.stderr
    assert lake.read(key) == b"other"
    lake.server.s3.delete_object(Bucket=lake.seeded.bucket, Key=key)
    assert sync(lake, tmp_path).code == 0
    assert len(day(lake)["jobs"]) == 2


def test_runs_show_what_failed(lake: Lake, tmp_path: Path) -> None:
    documents(lake, tmp_path)
    codes = [sync(lake, tmp_path, name).code for name in ("one_table_fails", "success", "dies")]
    assert codes == [1, 0, 4]
    failed = lakeload(lake, tmp_path, "runs", "pipeline.yml", "--failed", "--output", "json")
    assert failed.code == 0, failed.stderr
    assert [job["exit_code"] for job in failed.document["jobs"]] == [4, 1]
    assert failed.document["runs"] == []
    text = lakeload(lake, tmp_path, "runs", "destination.yml", "--failed").stdout
    assert text.count("pipeline shop  FAILED with exit code") == 2
    assert "shop.orders     FAILED  the source changed while it was read" in text
    since = ("runs", "pipeline.yml", "--since", "1h", "--output", "json")
    assert len(lakeload(lake, tmp_path, *since).document["jobs"]) == 2
    only = lakeload(lake, tmp_path, *since, "--table", "visits")
    assert only.code == 2
    later = ("runs", "pipeline.yml", "--failed", "--since", "2999-01-01")
    none = lakeload(lake, tmp_path, *later)
    assert (none.code, none.stdout) == (0, "")
    assert "no job that failed" in none.stderr


def test_runs_follow_show_jobs_as_they_end(lake: Lake, tmp_path: Path) -> None:
    documents(lake, tmp_path)
    command = [sys.executable, "-m", "lakeload", "runs", "pipeline.yml", "--follow"]
    variables = environment(lake, tmp_path)
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*command, "--output", "json"], cwd=tmp_path, env=variables, stdout=pipe, stderr=pipe
    ) as following:
        assert following.stdout is not None
        assert following.stderr is not None
        assert b"Ctrl-C ends it" in following.stderr.readline()
        ended = sync(lake, tmp_path, "one_table_fails")
        line = json.loads(following.stdout.readline())
        assert (line["job_id"], line["exit_code"]) == (ended.document["job_id"], 1)
        following.send_signal(signal.SIGINT)
        assert following.wait(20) == 130


@pytest.mark.parametrize("wrong", [("--failed",), ("pipeline.yml", "--since", "soon")])
def test_runs_of_a_wrong_option_say_what_to_write(
    lake: Lake, tmp_path: Path, wrong: tuple[str, ...]
) -> None:
    documents(lake, tmp_path)
    ended = lakeload(lake, tmp_path, "runs", *wrong)
    assert ended.code == 2
    assert "hint:" in ended.stderr


def test_maintain_removes_old_days_where_its_role_may(command: Command, shop: Lake) -> None:
    destination = make_destination(shop)
    store = LakeHistory(AwsSession(destination), destination)
    found = of_job(document(FAILED), ("shop.orders",))
    for name in ("2020-01-01", "2026-11-26"):
        assert store.write(found, name, None)
    ended = command("maintain", "pipeline.yml", "--apply")
    assert ended.code == 0, ended.err
    assert "removed 1 day of the job history" in ended.err
    assert store.days("shop") == ["2026-11-26"]


def test_job_history_that_a_role_may_not_write_is_a_warning_of_the_connection_test(
    base_identity: Lake, tmp_path: Path, fault_proxy: FaultProxy
) -> None:
    fault_proxy.on("PutObject", answer(403, "AccessDenied"), key=f"*{HISTORY}*")
    file = base_identity.write_destination(tmp_path, endpoint=fault_proxy.endpoint)
    ended = lakeload(base_identity, tmp_path, "test-connection", str(file), "--output", "json")
    assert ended.code == 0
    (warned,) = [one for one in ended.document["probes"] if one["status"] == "warning"]
    assert warned["name"] == "job-history"
    assert warned["resource"].endswith("/_lakeload/job-history/*")
    assert "`history: false`" in warned["failure"]["hint"]
    assert warned["failure"]["statement"]["Action"] == "s3:PutObject"


def test_connection_test_leaves_no_job_history(base_identity: Lake, tmp_path: Path) -> None:
    file = base_identity.write_destination(tmp_path)
    ended = lakeload(base_identity, tmp_path, "test-connection", str(file), "--output", "json")
    states = {one["name"]: one["status"] for one in ended.document["probes"]}
    assert states["job-history"] == "passed"
    assert base_identity.keys() == []


def test_status_shows_failing_and_stale_tables_and_ends_with_1(lake: Lake, tmp_path: Path) -> None:
    documents(lake, tmp_path, freshness="PT2H")
    status = ("status", "pipeline.yml", "--output", "json")

    def shown() -> tuple[int, dict[str, str]]:
        ended = lakeload(lake, tmp_path, *status)
        return ended.code, {one["target"]: one["status"] for one in ended.document["tables"]}

    never = shown()
    assert never == (1, {"shop.orders": "STALE", "shop.customers": "STALE"})
    assert sync(lake, tmp_path).code == 0
    assert shown() == (0, {"shop.orders": "FRESH", "shop.customers": "FRESH"})
    assert sync(lake, tmp_path, "one_table_fails").code == 1
    assert shown() == (1, {"shop.orders": "FAILED", "shop.customers": "FRESH"})
    text = lakeload(lake, tmp_path, "status", "pipeline.yml")
    assert text.code == 1
    failing, fresh = text.stdout.splitlines()[1:3]
    assert failing.split()[:2] == ["shop.orders", "FAILED"]
    assert "1 failure: the source" in failing
    assert fresh.split()[:2] == ["shop.customers", "FRESH"]
    assert sync(lake, tmp_path).code == 0
    assert shown()[0] == 0


def test_status_of_chosen_tables_has_their_exit_code_alone(lake: Lake, tmp_path: Path) -> None:
    documents(lake, tmp_path)
    assert sync(lake, tmp_path, "one_table_fails").code == 1
    status = ("status", "pipeline.yml", "--output", "json")

    def shown(*globs: str) -> tuple[int, str, dict[str, str]]:
        options = [word for glob in globs for word in ("--table", glob)]
        ended = lakeload(lake, tmp_path, *status, *options)
        found = ended.document
        tables = {one["target"]: one["status"] for one in found["tables"]}
        assert found["exit_code"] == ended.code
        return ended.code, found["status"], tables

    assert shown("customers") == (0, "FRESH", {"shop.customers": "FRESH"})
    assert shown("shop.orders") == (1, "FAILED", {"shop.orders": "FAILED"})
    both = {"shop.orders": "FAILED", "shop.customers": "FRESH"}
    assert shown("orders", "shop.c*") == (1, "FAILED", both)
    refused = lakeload(lake, tmp_path, "status", "pipeline.yml", "--table", "order")
    assert refused.code == 2
    assert "did you mean `orders`?" in refused.stderr


def test_status_without_a_history_names_the_setting(lake: Lake, tmp_path: Path) -> None:
    documents(lake, tmp_path, history=False)
    ended = lakeload(lake, tmp_path, "status", "pipeline.yml")
    assert ended.code == 2
    assert "remove `history: false`" in ended.stderr
    lake.write_pipeline(tmp_path, tables=TABLES)
    assert sync(lake, tmp_path).code == 0
    assert lakeload(lake, tmp_path, "status", "pipeline.yml").code == 0


def test_good_rounds_are_moved_together_and_one_that_failed_at_once(
    base_identity: Lake, tmp_path: Path
) -> None:
    destination, warnings = make_destination(base_identity), list[str]()
    history = JobHistory(tmp_path / "runs", warnings.append)

    def ended(number: int, table: TableResult) -> list[str]:
        made = document(table, at=later(number), job=f"job-{number}")
        history.begin(made, ("lake.orders",), destination, None, rounds=True)
        history.finish(last=False)
        return [job["job_id"] for job in day(base_identity)["jobs"]]

    assert ended(1, LOADED) == ["job-1"]
    assert ended(2, LOADED) == ["job-1"]
    assert ended(3, FAILED) == ["job-1", "job-2", "job-3"]
    assert ended(4, LOADED) == ["job-1", "job-2", "job-3", "job-4"]
    assert ended(5, LOADED) == ["job-1", "job-2", "job-3", "job-4"]
    history.finish()
    assert [job["job_id"] for job in day(base_identity)["jobs"]][4:] == ["job-5"]
    assert warnings == []
