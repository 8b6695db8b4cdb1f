"""A writer's own line to the emulator: a fault proxy that does what the plan says, and can tell
when nothing of a dead writer is under way any more."""

from __future__ import annotations

import http.client
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from tests.faults.protocol.lake import KEEP_SECONDS
from tests.faults.protocol.plan import Fault
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import (
    Drop,
    FaultProxy,
    Response,
    answer,
    drop_answer,
    drop_request,
)

HALF_SUCCESS = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n'
    b"<Error><Code>InternalError</Code><Message>injected</Message></Error>"
)
"""CompleteMultipartUpload may say 200 first and fail in its body."""


_GLUE_ERRORS = {
    "InternalError": (500, "InternalServiceException"),
    "SlowDown": (400, "ThrottlingException"),
}


@dataclass
class Line(FaultProxy):
    """The line of one writer. `struck` counts how often the fault was injected."""

    struck: int = 0
    where: str = ""
    """The operation that the fault struck last."""
    under_way: int = 0
    late: list[Request] = field(default_factory=list)
    """Requests on their way whose sender is dead or has its answer: `deliver` lets them arrive."""
    frozen: threading.Event = field(default_factory=threading.Event)
    thawed: threading.Event = field(default_factory=threading.Event)
    _fault: Fault | None = None
    _matches: int = 0
    _pid: int | None = None
    _living: threading.Event = field(default_factory=threading.Event)
    _own: threading.local = field(default_factory=threading.local)
    _counting: threading.Lock = field(default_factory=threading.Lock)

    def prepare(self, fault: Fault | None) -> None:
        """Be a new line, with this fault or without."""
        self._living.clear()
        self.frozen.clear()
        self.thawed.clear()
        with self._counting:
            self._fault, self._matches, self._pid = fault, 0, None
            self.struck, self.where = 0, ""
            self.late.clear()
            self.requests.clear()

    def connect(self, pid: int) -> None:
        """Name the process at the other end."""
        self._pid = pid
        self._living.set()

    def handle(self, request: Request) -> Response:
        """Pass a request on, or do to it what the plan says."""
        with self._counting:
            self.under_way += 1
            fault = self._fault if self._strikes(request) else None
            if fault is not None:
                self.struck += 1
                self.where = request.operation
        try:
            if fault is None:
                return self.forward(request)
            return _ACTIONS[fault.what](self, fault, request)
        finally:
            with self._counting:
                self.under_way -= 1

    def forward(self, request: Request) -> Response:
        """The same as any proxy, over one connection for each of the writer's."""
        if not hasattr(self._own, "connection"):
            self._own.connection = http.client.HTTPConnection(urlsplit(self.upstream).netloc)
            self._own.used = 0.0
        connection: http.client.HTTPConnection = self._own.connection
        if time.monotonic() - self._own.used > KEEP_SECONDS:
            connection.close()
        try:
            response = self.exchange(connection, request)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Drop from error
        self._own.used = time.monotonic()
        return response

    def deliver(self) -> None:
        """Let the late requests arrive, in any order; nobody waits for their answers."""
        with self._counting:
            late, self.late = self.late, []
        random.shuffle(late)
        for request in late:
            try:
                self.forward(request)
            except Drop:
                continue

    def wait_until_quiet(self) -> None:
        """Return when nothing of a dead writer is under way: what was sent has arrived."""
        while self.under_way or self.connections:
            time.sleep(0.002)

    def signal(self, number: int) -> None:
        """Send a signal to the writer; returns when it is certain that it was sent."""
        if not self._living.wait(30) or self._pid is None:
            raise RuntimeError("the fork server did not say which process this is")
        try:
            os.kill(self._pid, number)
        except ProcessLookupError:
            return

    def _strikes(self, request: Request) -> bool:
        fault = self._fault
        if fault is None or fault.operation not in ("*", request.operation):
            return False
        if not fnmatchcase(request.key, fault.key):
            return False
        self._matches += 1
        return fault.ordinal <= self._matches < fault.ordinal + fault.times


def _kill(line: Line, fault: Fault, request: Request) -> Response:
    if fault.after:
        line.forward(request)
    line.signal(signal.SIGKILL)
    raise Drop


def _kill_late(line: Line, fault: Fault, request: Request) -> Response:
    line.signal(signal.SIGKILL)
    line.late.append(request)
    raise Drop


def _status(line: Line, fault: Fault, request: Request) -> Response:
    # A server that failed may have acted all the same; a busy one has not.
    if fault.after and fault.code == "InternalError":
        line.forward(request)
    status, code = fault.status, fault.code
    if request.header("X-Amz-Target"):
        status, code = _GLUE_ERRORS.get(code, (status, code))
    return answer(status, code)(request, line.forward)


def _half_success(line: Line, fault: Fault, request: Request) -> Response:
    if fault.after:
        line.forward(request)
    return Response(200, (("Content-Type", "application/xml"),), HALF_SUCCESS)


def _duplicate(line: Line, fault: Fault, request: Request) -> Response:
    first = line.forward(request)
    second = line.forward(request)
    return second if fault.after else first


def _late_duplicate(line: Line, fault: Fault, request: Request) -> Response:
    line.late.append(request)
    return line.forward(request)


def _delay(line: Line, fault: Fault, request: Request) -> Response:
    if not fault.after:
        time.sleep(0.1 * fault.ordinal % 0.4)
        return line.forward(request)
    response = line.forward(request)
    time.sleep(0.1 * fault.ordinal % 0.4)
    return response


def _truncate(line: Line, fault: Fault, request: Request) -> Response:
    response = line.forward(request)
    if fault.after or not response.body:
        return replace(response, send_bytes=len(response.body) // 2)
    return replace(response, send_bytes=0)


def _freeze(line: Line, fault: Fault, request: Request) -> Response:
    """Stop the process itself, its request sent (after) or about to arrive when it wakes."""
    line.signal(signal.SIGSTOP)
    response = line.forward(request) if fault.after else None
    _stand_still(line)
    line.signal(signal.SIGCONT)
    return response or line.forward(request)


def _hold(line: Line, fault: Fault, request: Request) -> Response:
    """Hold the request, or its answer, on its way; the process waits, and lives."""
    response = line.forward(request) if fault.after else None
    _stand_still(line)
    return response or line.forward(request)


def _stand_still(line: Line) -> None:
    line.frozen.set()
    line.thawed.wait(60)


_ACTIONS: dict[str, Callable[[Line, Fault, Request], Response]] = {
    "kill": _kill,
    "kill-late": _kill_late,
    "status": _status,
    "half-success": _half_success,
    "drop-request": lambda line, fault, request: drop_request(request, line.forward),
    "drop-answer": lambda line, fault, request: drop_answer(request, line.forward),
    "duplicate": _duplicate,
    "late-duplicate": _late_duplicate,
    "delay": _delay,
    "truncate": _truncate,
    "freeze": _freeze,
    "hold": _hold,
}


def make_line(upstream: str) -> Line:
    """Return a line that listens."""
    line = Line(upstream)
    line.start()
    return line
