"""Clock skew between this machine and the servers, from the Date header of responses."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any


class ServerClock:
    """Compares the Date header of each answer with the local clock; refusals carry it too.

    AWS refuses requests that are more than 15 minutes off
    (https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html, RequestTimeTooSkewed).
    """

    def __init__(self) -> None:
        self.ahead: float | None = None
        """Seconds this machine is ahead of the server that answered last, negative behind; to about
        a second. None before the first answer, and of servers that tell no time."""

    def note(self, response_dict: Mapping[str, Any] | None = None, **_: Any) -> None:
        """Take an answer, as botocore's event `response-received` hands it over."""
        told = response_dict["headers"].get("Date") if response_dict else None
        if not told:
            return
        try:
            then = parsedate_to_datetime(told)
        except ValueError:
            return
        then = then if then.tzinfo else then.replace(tzinfo=UTC)
        self.ahead = (datetime.now(UTC) - then).total_seconds()
