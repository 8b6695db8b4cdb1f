"""Failures of the checks of a webhook."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from lakeload.probes.runner import Deadline, Failure, run_probes
from lakeload.probes.webhook import ProbeWebhook
from lakeload_jobs.contract.errors import InvalidInput


class _Webhook:
    """A webhook in trouble: `finds` says whether it has a URL, whose server then hangs."""

    def __init__(self, *, finds: bool) -> None:
        self.finds = finds
        self.ended = threading.Event()

    def find(self) -> None:
        if not self.finds:
            raise InvalidInput("`HOOK` is not set", hint="set it")

    def why_unreachable(self) -> str | None:
        self.ended.wait(60)
        return None

    def why_not_sent(self) -> str | None:
        return "it responded with HTTP 404"


@pytest.fixture
def hanging() -> Iterator[_Webhook]:
    webhook = _Webhook(finds=True)
    yield webhook
    webhook.ended.set()


def _failures(webhook: _Webhook, *, sends: bool, skip: tuple[str, ...] = ()) -> list[Failure]:
    results = run_probes(ProbeWebhook(webhook, sends=sends).probes(), Deadline(0.3), skip=skip)
    return [result.failure for result in results if result.failure is not None]


def test_webhook_that_hangs_names_no_cause_of_aws(hanging: _Webhook) -> None:
    (failure,) = _failures(hanging, sends=False)
    assert (failure.code, failure.causes) == ("TimedOut", ())


def test_webhook_without_url_or_that_takes_no_message_names_no_cause_of_aws() -> None:
    (missing,) = _failures(_Webhook(finds=False), sends=True)
    (rejected,) = _failures(_Webhook(finds=True), sends=True, skip=("notify-server",))
    assert [one.code for one in (missing, rejected)] == ["InvalidInput", "WebhookFailed"]
    assert (missing.causes, rejected.causes) == ((), ())
