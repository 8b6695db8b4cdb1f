"""Which messages are due after a job, and what they say."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lakeload.config.secret_names import MASK
from lakeload.documents.load import check
from lakeload.documents.notify import Notify, NotifyForm
from lakeload.history.day import FORMAT, HistoryDay, decode, encode, merge, next_day, of_job
from lakeload.monitoring.notifications import due_after, message
from lakeload.reporting.webhook import payload
from lakeload.ui.problems import problems_text
from lakeload_jobs.contract.errors import Refused
from lakeload_jobs.contract.result import ColumnResult, ErrorInfo, TableResult
from tests.unit.monitoring.documents import FAILED, IDLE, LOADED, document, later

ALL = ("FAILED", "PARTIAL", "RECOVERED", "SCHEMA_CHANGED", "REJECTED", "STALE")
OTHER = replace(LOADED, table="visits", target="lake.visits")
STOPPED = TableResult("orders", "lake.orders", "INTERRUPTED")
DOWN = Refused("no way to s3://shop")


def settings(**changes: Any) -> Notify:
    return Notify.model_validate({"url": {"env": "HOOK"}, **changes})


class Webhook:
    """A history whose messages are all delivered, unless `away`."""

    def __init__(self, asked: Notify, freshness: timedelta | None = None) -> None:
        self.day = HistoryDay(FORMAT, "shop")
        self.asked = asked
        self.freshness = freshness

    def after(self, made: dict[str, Any], minute: float, *, away: bool = False) -> tuple[str, ...]:
        """Return what the message after a job is about; () where there is none."""
        self.day = merge(self.day, of_job(made, ("lake.orders",)))
        fresh = {"lake.orders": self.freshness, "lake.visits": None}
        due = due_after(made, self.day, fresh, self.asked, later(minute))
        if due.notified is not None and not (away and due.events):
            self.day = merge(self.day, HistoryDay(FORMAT, "shop", notified=due.notified))
        self.day = next_day(decode(encode(self.day), "s3://b/k"))
        return due.events

    def jobs(self, *steps: tuple[float, TableResult | Refused]) -> list[tuple[str, ...]]:
        """Return what the messages after jobs are about, each with its minute."""
        return [
            self.after(
                document(refused=one, at=later(minute))
                if isinstance(one, Refused)
                else document(one, at=later(minute)),
                minute + 0.1,
            )
            for minute, one in steps
        ]


def test_good_idle_and_stopped_jobs_send_nothing_and_record_nothing() -> None:
    webhook = Webhook(settings())
    assert webhook.jobs((0, LOADED), (1, IDLE), (2, STOPPED)) == [(), (), ()]
    assert webhook.day.notified is None


def test_broken_pipeline_sends_one_message_and_one_all_clear() -> None:
    webhook = Webhook(settings())
    found = webhook.jobs(
        (0, FAILED), (5, DOWN), (300, FAILED), (301, STOPPED), (305, IDLE), (310, LOADED)
    )
    assert found == [("FAILED",), (), (), (), ("RECOVERED",), ()]


def test_message_of_a_load_in_part_is_followed_by_one_that_failed_and_not_the_reverse() -> None:
    webhook = Webhook(settings())
    assert webhook.after(document(FAILED, OTHER), 1) == ("PARTIAL",)
    assert webhook.after(document(FAILED, at=later(5)), 6) == ("FAILED",)
    assert webhook.after(document(FAILED, OTHER, at=later(7)), 8) == ()
    assert webhook.after(document(LOADED, OTHER, at=later(9)), 10) == ("RECOVERED",)


def test_failures_that_are_not_asked_for_are_a_message_when_the_data_is_too_old() -> None:
    asked = settings(on=("STALE", "RECOVERED"))
    webhook = Webhook(asked, timedelta(minutes=30))
    assert webhook.jobs((0, LOADED), (5, FAILED), (20, DOWN)) == [(), (), ()]
    assert webhook.jobs((40, FAILED), (45, DOWN), (50, LOADED)) == [("STALE",), (), ("RECOVERED",)]
    # What is asked for comes first, as it says more.
    webhook = Webhook(settings(on=("FAILED", "STALE")), timedelta(minutes=30))
    assert webhook.jobs((0, LOADED), (40, FAILED), (50, FAILED)) == [(), ("FAILED",), ()]
    webhook = Webhook(settings(on=("PARTIAL", "RECOVERED")), timedelta(minutes=30))
    assert webhook.jobs((0, LOADED), (40, FAILED), (50, LOADED)) == [(), (), ()]


def test_job_of_another_table_is_no_all_clear() -> None:
    webhook = Webhook(settings())
    assert webhook.after(document(FAILED, OTHER), 1) == ("PARTIAL",)
    other = of_job(document(OTHER, at=later(2)), ("lake.visits",))
    webhook.day = merge(webhook.day, other)
    fresh = {"lake.orders": None, "lake.visits": None}
    made = document(OTHER, at=later(2))
    assert due_after(made, webhook.day, fresh, webhook.asked, later(3)).events == ()
    # A table that is removed from the pipeline is no longer waited for.
    del fresh["lake.orders"]
    assert due_after(made, webhook.day, fresh, webhook.asked, later(3)).events == ("RECOVERED",)


def test_quiet_time_keeps_a_second_message_back_and_its_all_clear() -> None:
    webhook = Webhook(settings(quiet="PT1H"))
    steps = [(0, FAILED), (1, LOADED), (10, FAILED), (11, LOADED), (50, FAILED), (70, FAILED)]
    assert webhook.jobs(*steps) == [("FAILED",), ("RECOVERED",), (), (), (), ("FAILED",)]


def test_message_that_was_not_delivered_is_due_after_the_next_job() -> None:
    webhook = Webhook(settings())
    assert webhook.after(document(FAILED), 1, away=True) == ("FAILED",)
    assert webhook.after(document(FAILED, at=later(2)), 3) == ("FAILED",)
    assert webhook.after(document(LOADED, at=later(4)), 5, away=True) == ("RECOVERED",)
    assert webhook.after(document(LOADED, at=later(6)), 7) == ("RECOVERED",)


def test_rejected_records_and_other_columns_are_one_message() -> None:
    columns = (ColumnResult("id", "id", "bigint"), ColumnResult(None, "_supa_id", "string"))
    first = replace(LOADED, columns=columns)
    wider = (*columns, ColumnResult("name", "name", "string"))
    second = replace(LOADED, columns=wider, rejected=2)
    webhook = Webhook(settings(on=ALL))
    steps = [(0, first), (1, IDLE), (2, second), (3, second), (70, second)]
    both = ("SCHEMA_CHANGED", "REJECTED")
    assert webhook.jobs(*steps) == [(), (), both, (), ("REJECTED",)]
    assert Webhook(settings()).jobs(*steps) == [()] * 5


def test_stale_table_sends_one_message_and_one_all_clear() -> None:
    webhook = Webhook(settings(on=("STALE", "RECOVERED")), timedelta(hours=2))
    more = replace(LOADED, more=True)
    steps = [(0, LOADED), (100, more), (130, more), (300, more), (301, LOADED)]
    assert webhook.jobs(*steps) == [(), (), ("STALE",), (), ("RECOVERED",)]


def test_message_names_what_happened_and_no_secret() -> None:
    error = ErrorInfo("LoadFailed", "jdbc:x://u:hunter2@db is <away>", 1)
    made = document(replace(FAILED, error=error), replace(OTHER, rejected=1))
    text, said = message(made, ("PARTIAL",), (), "lakeload runs shop.yml --failed")
    assert text.splitlines() == [
        "lakeload: pipeline shop failed in part",
        f"lake.orders: FAILED, 0 rows, jdbc:x://{MASK}@db is <away>",
        "lake.visits: LOADED, 3 rows, 1 record set aside",
        "job job-1, 3 rows",
        "lakeload runs shop.yml --failed",
    ]
    assert "hunter2" not in json.dumps(said)
    assert (said["events"], said["rows"], said["exit_code"]) == (["PARTIAL"], 3, 1)
    assert [one["status"] for one in said["tables"]] == ["FAILED", "LOADED"]


@pytest.mark.parametrize("form", ["JSON", "SLACK", "TEAMS"])
def test_forms_hold_the_text(form: NotifyForm) -> None:
    body = json.loads(payload(form, "a <b> & c\nd", {"pipeline": "shop"}))
    if form == "TEAMS":
        lines = [one["text"] for one in body["attachments"][0]["content"]["body"]]
        assert lines == ["a <b> & c", "d"]
    elif form == "SLACK":
        assert body == {"text": "a &lt;b&gt; &amp; c\nd"}
    else:
        assert body == {"pipeline": "shop", "text": "a <b> & c\nd"}


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example.com/hidden",
        "{env: 'https://hooks.example.com/hidden'}",
        "https://hooks.example.com/hidden\n  form: [",
        "[https://hooks.example.com/hidden]",
    ],
)
def test_url_in_a_wrong_document_is_not_shown(url: str, tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yml"
    file.write_text(f"version: 1\nname: shop\nnotify:\n  url: {url}\n")
    shown = problems_text(check([file], {}), 100).plain
    assert "pipeline.yml:4" in shown or "pipeline.yml:5" in shown
    assert "hidden" not in shown
