"""A webhook that gets messages: its URL, the forms that it takes, and the request."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from lakeload.config.secret_names import absolute_reference
from lakeload.documents.notify import Notify, NotifyForm
from lakeload.reporting.delivery import REQUEST_SECONDS, NotTaken, Rejected, Send, not_sent
from lakeload_jobs.aws.network_errors import certificate_problem, proxy_refusal
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.secrets import Secret, resolve_locally


def webhook_of(settings: Notify, folder: Path) -> Secret:
    """Return the URL of the webhook. Raises `InvalidInput` where it is missing or is no URL."""
    reference = absolute_reference(settings.url, folder)
    assert reference is not None, "a valid document has it"  # noqa: S101
    secret = resolve_locally(reference)
    if not _is_url(secret.reveal()):
        raise InvalidInput(
            f"`notify.url`: the value in `{reference}` is not the URL of a webhook",
            hint="write the URL there with `https://`, and nothing else",
        )
    return secret


def _is_url(value: str) -> bool:
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError:
        return False
    plain = value.isascii() and value.isprintable() and " " not in value
    return plain and parts.scheme in ("http", "https") and bool(parts.hostname)


def payload(form: NotifyForm, text: str, document: dict[str, Any]) -> bytes:
    """Return a message as a webhook takes it: its text, or the document that says the same."""
    body: dict[str, Any] = {**document, "text": text}
    if form == "SLACK":
        # https://docs.slack.dev/messaging/formatting-message-text#escaping
        escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        body = {"text": escaped}
    elif form == "TEAMS":
        lines = [{"type": "TextBlock", "text": line, "wrap": True} for line in text.splitlines()]
        card = {"type": "AdaptiveCard", "version": "1.4", "body": lines}
        kind = "application/vnd.microsoft.card.adaptive"
        body = {"type": "message", "attachments": [{"contentType": kind, "content": card}]}
    return json.dumps(body).encode()


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect is an error: the message would be lost on the way, as a GET."""

    def redirect_request(
        self, req: Any, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        """Follow none."""


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_NoRedirects())


def connect(url: Secret) -> Send[bytes]:
    """Return what sends a message. No error has the URL in it."""
    opener = _opener()

    def send(body: bytes) -> None:
        headers = {"Content-Type": "application/json", "User-Agent": "lakeload"}
        request = urllib.request.Request(url.reveal(), body, headers)  # noqa: S310 - checked
        try:
            with opener.open(request, timeout=REQUEST_SECONDS):
                return
        except urllib.error.HTTPError as error:
            error.close()
            raise not_sent(error.code, f"it responded with HTTP {error.code}") from None
        except (OSError, http.client.HTTPException) as error:
            raise NotTaken(_why_unreachable(error)) from None

    return send


def _why_unreachable(error: Exception) -> str:
    """Return why there was no response, without any part of the URL."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, TimeoutError):
        return "it did not respond in time"
    why = ""
    if isinstance(reason, socket.gaierror):
        why = ": the name of its host is not known"
    elif isinstance(reason, ConnectionRefusedError):
        why = ": nothing listens at its address"
    elif (found := certificate_problem(error)) is not None:
        why = f": its certificate {found[1]}"
    elif (found := proxy_refusal(error)) is not None:
        why = f": {found[1]}"
    elif isinstance(reason, ssl.SSLError):
        why = ": it does not speak TLS"
    return f"it cannot be reached{why}"


class Webhook:
    """The webhook of a pipeline, for the connection test."""

    def __init__(self, settings: Notify, folder: Path, pipeline: str, command: str) -> None:
        """`command` is what a test message names."""
        self._settings = settings
        self._folder = folder
        self._pipeline = pipeline
        self._command = command

    def find(self) -> None:
        """Find its URL. Raises `InvalidInput`."""
        webhook_of(self._settings, self._folder)

    def why_unreachable(self) -> str | None:
        """Return why its server does not respond; None where it does. Any response will do: what
        is asked for is its root, and not the webhook."""
        parts = urlsplit(webhook_of(self._settings, self._folder).reveal())
        host = parts.hostname or ""
        place = f"[{host}]" if ":" in host else host
        place += f":{parts.port}" if parts.port else ""
        request = urllib.request.Request(  # noqa: S310 - checked
            f"{parts.scheme}://{place}/", headers={"User-Agent": "lakeload"}, method="HEAD"
        )
        try:
            with _opener().open(request, timeout=REQUEST_SECONDS):
                return None
        except urllib.error.HTTPError as error:
            error.close()
            return None
        except (OSError, http.client.HTTPException) as error:
            return _why_unreachable(error)

    def why_not_sent(self) -> str | None:
        """Send a test message; return why it was not taken, None where it was."""
        text = f"lakeload: test message of pipeline {self._pipeline}\n{self._command}"
        document = {
            "events": ["TEST"],
            "pipeline": self._pipeline,
            "job_id": None,
            "status": "TEST",
            "exit_code": 0,
            "rows": 0,
            "error": None,
            "tables": [],
            "stale": [],
            "command": self._command,
        }
        try:
            connect(webhook_of(self._settings, self._folder))(
                payload(self._settings.form, text, document)
            )
        except (NotTaken, Rejected) as error:
            return str(error)
        return None
