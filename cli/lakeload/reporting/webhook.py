"""A webhook that gets messages: its URL, the forms that it takes, and the request."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from lakeload.config.secret_names import absolute_reference
from lakeload.documents.notify import Notify, NotifyForm
from lakeload.reporting.delivery import REQUEST_SECONDS, TRY_AGAIN, NotTaken, Rejected, Send
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


def connect(url: Secret) -> Send[bytes]:
    """Return what sends a message. No error has the URL in it."""
    opener = urllib.request.build_opener(_NoRedirects())

    def send(body: bytes) -> None:
        headers = {"Content-Type": "application/json", "User-Agent": "lakeload"}
        request = urllib.request.Request(url.reveal(), body, headers)  # noqa: S310 - checked
        try:
            with opener.open(request, timeout=REQUEST_SECONDS):
                return
        except urllib.error.HTTPError as error:
            error.close()
            reason = f"it responded with HTTP {error.code}"
            later = error.code >= 500 or error.code in TRY_AGAIN
            raise (NotTaken if later else Rejected)(reason) from None
        except TimeoutError:
            raise NotTaken("it did not respond in time") from None
        except urllib.error.URLError as error:
            slow = isinstance(error.reason, TimeoutError)
            reason = "it did not respond in time" if slow else "it cannot be reached"
            raise NotTaken(reason) from None

    return send
