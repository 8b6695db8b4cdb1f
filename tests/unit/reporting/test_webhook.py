"""What is said of a webhook that does not respond: the reason, and nothing of its URL."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import trustme

from lakeload.documents.notify import Notify
from lakeload.reporting import webhook
from lakeload.reporting.webhook import Webhook
from tests.servers.report_receiver import receiving

SECRET = "canary-webhook-path-77"


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy of this machine is between a test and its server."""
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(webhook, "REQUEST_SECONDS", 0.5)


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that accepts connections and never responds."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


def asked(folder: Path, url: str) -> tuple[str | None, str | None]:
    """Return what is said of a server, and of a message to it."""
    (folder / "hook").write_text(url)
    settings = Notify.model_validate({"url": {"file": str(folder / "hook")}})
    found = Webhook(settings, folder, "shop", "lakeload test-connection p.yml --notify")
    found.find()
    return found.why_unreachable(), found.why_not_sent()


def test_server_that_responds_with_anything_is_reached_and_gets_the_message_alone(
    tmp_path: Path,
) -> None:
    with receiving() as receiver:
        assert asked(tmp_path, f"{receiver.url}/{SECRET}?a=b") == (None, None)
    assert [one.path for one in receiver.requests] == [f"/{SECRET}?a=b"]


def test_webhook_that_is_gone_is_reached_and_does_not_take_the_message(tmp_path: Path) -> None:
    with receiving(statuses=[404]) as receiver:
        said = asked(tmp_path, f"{receiver.url}/{SECRET}")
    assert said == (None, "it responded with HTTP 404")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://127.0.0.1:1", "it cannot be reached: nothing listens at its address"),
        ("http://nowhere.invalid", "it cannot be reached: the name of its host is not known"),
        ("http://127.0.0.1:{silent}", "it did not respond in time"),
        ("https://127.0.0.1:{plain}", "it cannot be reached: it does not speak TLS"),
    ],
)
def test_server_that_does_not_respond_is_explained_without_its_url(
    tmp_path: Path, silent: int, url: str, reason: str
) -> None:
    with receiving() as receiver:
        plain = receiver.url.rpartition(":")[2]
        given = f"{url.format(silent=silent, plain=plain)}/{SECRET}"
        assert asked(tmp_path, given) == (reason, reason)


def test_certificate_that_is_not_trusted_is_named(tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with receiving(tls=context) as receiver:
        said = asked(tmp_path, f"{receiver.url}/{SECRET}")
    assert said == (f"it cannot be reached: its certificate {UNTRUSTED}",) * 2
    assert receiver.requests == []


UNTRUSTED = "is not signed by an authority that this machine trusts"
