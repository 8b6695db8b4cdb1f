"""Messages of `notify`, with a stand-in for spark-submit, a real store and a real webhook."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import Ended, lakeload
from tests.fakes.spark_home import fake_spark_home
from tests.servers.fault_proxy import FaultProxy, answer
from tests.servers.ministack import Lake
from tests.servers.report_receiver import receiving

pytestmark = pytest.mark.usefixtures("forked_commands")

TABLES = [{"table": name, "path": f"{name}.csv"} for name in ("orders", "customers")]
SECRET = "canary-webhook-path-77"
NOTIFY = {"url": {"env": "HOOK"}}


def write(lake: Lake, folder: Path, **changes: Any) -> None:
    for name in ("orders", "customers"):
        (folder / f"{name}.csv").write_text("id,name\n1,a\n2,b\n")
    lake.write_pipeline(folder, tables=TABLES, **{"notify": NOTIFY, **changes})
    if not (folder / "spark").exists():
        fake_spark_home(folder)


def sync(lake: Lake, folder: Path, url: str, scenario: str = "success", *more: str) -> Ended:
    return lakeload(
        lake,
        folder,
        *("sync", "pipeline.yml", "--output", "json", *more),
        SPARK_HOME=str(folder / "spark"),
        FAKE_SPARK_SCENARIO=scenario,
        HOOK=f"{url}/{SECRET}",
    )


def test_runs_on_two_machines_send_one_message_and_one_all_clear(
    lake: Lake, tmp_path: Path
) -> None:
    machines = [tmp_path / "one", tmp_path / "two"]
    for folder in machines:
        folder.mkdir()
        write(lake, folder)
    with receiving() as receiver:
        ends = [
            sync(lake, folder, receiver.url, scenario)
            for scenario in ("one_table_fails", "success")
            for folder in machines
        ]
        assert [ended.code for ended in ends] == [1, 1, 0, 0]
        assert [one["events"] for one in receiver.events] == [["PARTIAL"], ["RECOVERED"]]
    assert receiver.events[0]["job_id"] == ends[0].document["job_id"]
    assert receiver.requests[0].path == f"/{SECRET}"
    assert receiver.events[0]["command"] == "lakeload runs pipeline.yml --failed"
    for ended in ends:
        assert "notify" not in ended.stderr
        assert SECRET not in ended.stdout + ended.stderr
    assert not any(SECRET in lake.read(key).decode(errors="replace") for key in lake.keys())  # noqa: SIM118


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        ({"hangs": True}, "it did not respond in time"),
        ({"statuses": [500] * 100}, "it responded with HTTP 500"),
        ({"statuses": [307] * 100}, "it responded with HTTP 307"),
        (None, "it cannot be reached"),
    ],
)
def test_webhook_in_trouble_costs_only_seconds_and_gets_the_message_after_the_next_job(
    lake: Lake, tmp_path: Path, trouble: dict[str, Any] | None, reason: str
) -> None:
    write(lake, tmp_path, notify=None)
    before = time.monotonic()
    sync(lake, tmp_path, "http://127.0.0.1:1", "one_table_fails")
    usual = time.monotonic() - before
    write(lake, tmp_path)
    with receiving(**(trouble or {})) as receiver:
        url = receiver.url if trouble else "http://127.0.0.1:1"
        began = time.monotonic()
        ended = sync(lake, tmp_path, url, "one_table_fails")
        assert time.monotonic() - began < usual + 5.5
    assert ended.code == 1
    words = " ".join(ended.stderr.split())
    assert f"the message of `notify` was not delivered: {reason}" in words
    assert SECRET not in ended.stdout + ended.stderr
    with receiving() as receiver:
        assert sync(lake, tmp_path, receiver.url, "one_table_fails").code == 1
        assert [one["events"] for one in receiver.events] == [["PARTIAL"]]


def test_store_that_denies_all_is_one_message_and_the_next_good_job_the_all_clear(
    lake: Lake, tmp_path: Path, fault_proxy: FaultProxy
) -> None:
    write(lake, tmp_path, endpoint=fault_proxy.endpoint)
    with receiving() as receiver:
        fault_proxy.on("*", answer(403, "AccessDenied"))
        assert [sync(lake, tmp_path, receiver.url).code for _ in range(2)] == [3, 3]
        fault_proxy.rules.clear()
        assert sync(lake, tmp_path, receiver.url).code == 0
        assert [one["events"] for one in receiver.events] == [["FAILED"], ["RECOVERED"]]


@pytest.mark.parametrize("value", ["", "not-a-url", "ftp://example.com/x", "https://a b"])
def test_url_that_is_missing_or_wrong_ends_the_command_before_spark_starts(
    lake: Lake, tmp_path: Path, value: str
) -> None:
    write(lake, tmp_path)
    ended = lakeload(lake, tmp_path, "sync", "pipeline.yml", HOOK=value)
    assert ended.code == 2
    assert "HOOK" in ended.stdout + ended.stderr
    assert not value or value not in ended.stdout + ended.stderr
    assert not (tmp_path / "runs").exists()


def test_slack_gets_its_form(lake: Lake, tmp_path: Path) -> None:
    write(lake, tmp_path, notify={**NOTIFY, "form": "SLACK"})
    with receiving() as receiver:
        assert sync(lake, tmp_path, receiver.url, "one_table_fails").code == 1
    (body,) = [json.loads(one.body) for one in receiver.requests]
    assert [*body] == ["text"]
    assert "pipeline shop failed in part" in body["text"]


def check_connection(lake: Lake, folder: Path, url: str | None, *flags: str) -> Ended:
    """Run the connection test of a pipeline with a webhook."""
    return lakeload(
        lake, folder, "test-connection", "pipeline.yml", "--output", "json", *flags, HOOK=url
    )


def notify_checks(ended: Ended) -> dict[str, dict[str, Any]]:
    return {
        one["name"]: one for one in ended.document["probes"] if one["name"].startswith("notify")
    }


@pytest.mark.parametrize("form", ["JSON", "SLACK", "TEAMS"])
def test_connection_test_reaches_the_webhook_and_sends_a_message_only_when_asked(
    lake: Lake, tmp_path: Path, form: str
) -> None:
    write(lake, tmp_path, notify={**NOTIFY, "form": form})
    with receiving() as receiver:
        url = f"{receiver.url}/{SECRET}"
        silent = check_connection(lake, tmp_path, url)
        assert receiver.requests == []
        loud = check_connection(lake, tmp_path, url, "--notify")
    assert (silent.code, loud.code) == (0, 0), silent.stdout + loud.stdout
    assert {name: one["status"] for name, one in notify_checks(silent).items()} == {
        "notify": "passed",
        "notify-server": "passed",
    }
    assert "`--notify` sends one" in notify_checks(silent)["notify-server"]["detail"]
    assert notify_checks(loud)["notify-message"]["status"] == "passed"
    (request,) = receiver.requests
    assert request.path == f"/{SECRET}"
    assert "test message of pipeline shop" in json.dumps(request.event)
    if form == "JSON":
        assert (request.event["events"], request.event["job_id"]) == (["TEST"], None)
    for ended in (silent, loud):
        assert SECRET not in ended.stdout + ended.stderr


def test_connection_test_of_a_webhook_that_is_not_reached_is_a_warning(
    lake: Lake, tmp_path: Path
) -> None:
    write(lake, tmp_path)
    ended = check_connection(lake, tmp_path, f"http://127.0.0.1:1/{SECRET}")
    assert ended.code == 0
    failure = notify_checks(ended)["notify-server"]["failure"]
    assert notify_checks(ended)["notify-server"]["status"] == "warning"
    assert failure["code"] == "WebhookUnreachable"
    assert failure["message"].endswith("it cannot be reached: nothing listens at its address")
    assert SECRET not in ended.stdout + ended.stderr


def test_connection_test_fails_where_a_load_would_or_the_message_is_not_taken(
    lake: Lake, tmp_path: Path
) -> None:
    write(lake, tmp_path)
    missing = check_connection(lake, tmp_path, None)
    assert missing.code == 3
    checks = notify_checks(missing)
    assert checks["notify"]["failure"]["code"] == "InvalidInput"
    assert "HOOK" in checks["notify"]["failure"]["message"]
    assert checks["notify-server"]["status"] == "skipped"
    wrong = check_connection(lake, tmp_path, f"{SECRET} a b")
    assert wrong.code == 3
    with receiving(statuses=[404]) as receiver:
        gone = check_connection(lake, tmp_path, f"{receiver.url}/{SECRET}", "--notify")
    assert gone.code == 3
    failure = notify_checks(gone)["notify-message"]["failure"]
    assert failure["code"] == "WebhookFailed"
    assert failure["message"].endswith("it responded with HTTP 404")
    for ended in (missing, wrong, gone):
        assert SECRET not in ended.stdout + ended.stderr


def test_message_without_a_webhook_is_refused_until_the_hint_is_followed(
    lake: Lake, tmp_path: Path
) -> None:
    write(lake, tmp_path, notify=None)
    refused = check_connection(lake, tmp_path, None, "--notify")
    assert refused.code == 2
    assert "add `notify: {url: {env: NAME}}` to the pipeline" in refused.stdout
    write(lake, tmp_path, notify={"url": {"env": "HOOK"}})
    with receiving() as receiver:
        assert check_connection(lake, tmp_path, receiver.url, "--notify").code == 0
    assert len(receiver.requests) == 1
