"""Checks of the webhook of `notify`."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from lakeload.probes.runner import Probe, failed, probes_of


class Webhook(Protocol):
    """A webhook that can be asked."""

    def find(self) -> None:
        """Find its URL. Raises `InvalidInput`."""

    def why_unreachable(self) -> str | None:
        """Return why its server does not respond; None where it does. It gets no message."""

    def why_not_sent(self) -> str | None:
        """Send a test message; return why it was not taken, None where it was."""


class ProbeWebhook:
    """The checks, in their order. A message is sent only where somebody asks for it: each is seen
    by people."""

    def __init__(self, webhook: Webhook, *, sends: bool) -> None:
        self._webhook = webhook
        self._sends = sends

    def probes(self) -> list[Probe]:
        """Return the probes."""
        found = probes_of("webhook", self, "message" if self._sends else "")
        # The usual causes are those of AWS.
        return [replace(probe, explain=lambda error: ()) for probe in found]

    def find(self) -> str:
        """Find the URL, which a load needs."""
        self._webhook.find()
        return ""

    def reach(self) -> str:
        """Reach the server of the URL, without the webhook itself."""
        if (reason := self._webhook.why_unreachable()) is not None:
            raise failed("webhook-unreachable", reason=reason)
        return "" if self._sends else "no message was sent; `--notify` sends one"

    def send(self) -> str:
        """Send a test message."""
        if (reason := self._webhook.why_not_sent()) is not None:
            raise failed("webhook-message", reason=reason)
        return "a test message was sent"
