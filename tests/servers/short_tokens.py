"""Role sessions that live for seconds: STS says so, and S3 refuses them afterwards."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import FaultProxy, Forward, Response, answer

_EXPIRATION = re.compile(rb"<Expiration>[^<]*</Expiration>")
_TOKEN = re.compile(rb"<SessionToken>([^<]*)</SessionToken>")


class ShortTokens:
    """Makes the proxy shorten every role session to `seconds`.

    `told` is the rest of its life that STS tells the client: a client renews within a window of
    minutes before the expiry, so a life of seconds is told as those minutes and seconds more.
    `slow` makes operations take so many seconds once their session was found valid.
    """

    def __init__(
        self,
        proxy: FaultProxy,
        *,
        seconds: float,
        told: float,
        slow: Mapping[str, float] | None = None,
    ) -> None:
        self._seconds = seconds
        self._told = told
        self._slow = slow or {}
        self._born: dict[str, float] = {}
        self._lock = threading.Lock()
        self.refused = 0
        """Requests that came with an expired session."""
        proxy.on("AssumeRole", self._shorten)
        proxy.on("*", self._check)

    @property
    def issued(self) -> int:
        """How many sessions STS gave out."""
        with self._lock:
            return len(self._born)

    def _shorten(self, request: Request, forward: Forward) -> Response:
        response = forward(request)
        if found := _TOKEN.search(response.body):
            with self._lock:
                self._born[found[1].decode()] = time.monotonic()
        expiry = datetime.now(UTC) + timedelta(seconds=self._told)
        text = f"<Expiration>{expiry:%Y-%m-%dT%H:%M:%SZ}</Expiration>".encode()
        body = _EXPIRATION.sub(text, response.body)
        return Response(response.status, response.headers, body)

    def _check(self, request: Request, forward: Forward) -> Response:
        with self._lock:
            born = self._born.get(request.header("X-Amz-Security-Token"))
            expired = born is not None and time.monotonic() - born > self._seconds
            self.refused += expired
        if expired:
            return answer(400, "ExpiredToken")(request, forward)
        time.sleep(self._slow.get(request.operation, 0))
        return forward(request)
