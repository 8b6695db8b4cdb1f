"""Forks writer processes that have everything imported and a client ready: some 10 ms each.

`python -m tests.faults.protocol.fork_server` reads one JSON object a line (a run) and writes one a
line: {"id", "pid"} when it lives, {"id", "code"} when it is gone. It has no threads and no open
connections, so that a fork of it is a healthy process.
"""

from __future__ import annotations

import gc
import json
import os
import random
import selectors
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from botocore.retries.standard import ExponentialBackoff

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import CredentialsSpec, DestinationSpec, EndpointsSpec, ParquetSpec
from lakeload_jobs.formats.parquet.glue import GlueCatalog
from lakeload_jobs.storage.backoff import Waits
from lakeload_jobs.storage.objects import Objects
from tests.faults.protocol.attempt import Place, act, warm_up

PREFIX = "data-lake/test"
WAITS = Waits(
    answer=1.5, live_author=0.15, late_completion=0.05, shortest_pause=0.01, longest_pause=0.1
)
"""The protocol's patience, a few hundred times shorter."""

WARM_UP: dict[str, Any] = {
    "bucket": "warm-up",
    "table": "orders",
    "strategy": "HOUR",
    "handling": "APPEND",
    "glue": True,
    "fresh": False,
}


class _Server:
    """The clients made beforehand, and the processes that live."""

    def __init__(self, role_arn: str) -> None:
        self._role_arn = role_arn
        self._lives: dict[int, str] = {}
        self._endpoint = ""
        self._session = AwsSession(_destination("http://127.0.0.1:1"))
        self._clients = (self._session.s3, self._session.s3_once, self._session.glue)
        for client in self._clients:
            client.meta.events.register("before-sign", self._redirect)

    def run(self) -> None:
        """Serve until standard input closes."""
        reader, writer = os.pipe()
        for end in (reader, writer):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(writer)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        selector = selectors.DefaultSelector()
        selector.register(0, selectors.EVENT_READ)
        selector.register(reader, selectors.EVENT_READ)
        pending = b""
        while True:
            for key, _ in selector.select():
                if key.fd == reader:
                    os.read(reader, 4096)
                    self._bury()
                    continue
                if not (data := os.read(0, 1 << 16)):
                    return
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    self._fork(json.loads(line))

    def _fork(self, run: dict[str, Any]) -> None:
        pid = os.fork()
        if pid == 0:
            self._live(run)
        self._lives[pid] = run["id"]
        _say({"id": run["id"], "pid": pid})

    def _bury(self) -> None:
        while self._lives:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            _say({"id": self._lives.pop(pid), "code": os.waitstatus_to_exitcode(status)})

    def _live(self, run: dict[str, Any]) -> None:
        """Be the writer, write down after each action what is told, and never return."""
        code = 70
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(2, 1)
            place = self._place(run)
            told: list[dict[str, Any]] = []
            for action in run["actions"]:
                told.append(act(place, action))
                # A rename is all or nothing, as an answer on a screen is read or not.
                part = Path(run["answer"] + ".part")
                part.write_text(json.dumps(told))
                part.rename(run["answer"])
            code = 0
        finally:
            os._exit(code)

    def warm_up(self, endpoint: str) -> None:
        """Do once what every process would do for the first time, and close every connection."""
        place = self._place({"endpoint": endpoint, **WARM_UP})
        self._session.s3.create_bucket(Bucket=WARM_UP["bucket"])
        warm_up(place)
        for client in self._clients:
            client.meta.service_model.shape_for_error_code("none")  # type: ignore[arg-type]
            client.close()

    def _redirect(self, request: Any, **_: Any) -> None:
        """Send a request of the clients that all processes share through this one's line."""
        parts = urlsplit(request.url)
        request.url = urlunsplit((*urlsplit(self._endpoint)[:2], *parts[2:]))

    def _place(self, run: dict[str, Any]) -> Place:
        destination = replace(
            _destination(run["endpoint"]),
            bucket=run["bucket"],
            parquet=ParquetSpec(partition_strategy=run["strategy"], upload_parallelism=2),
        )
        session = self._session
        self._endpoint = run["endpoint"]
        if run["fresh"]:
            credentials = replace(
                destination.credentials,
                role_arn=self._role_arn,
                external_id=SecretReference("env", "FAULTS_EXTERNAL_ID"),
            )
            destination = replace(destination, credentials=credentials)
            session = AwsSession(destination)
        return Place(
            Objects(session, destination, waits=WAITS),
            destination,
            run["table"],
            run["handling"],
            GlueCatalog(session, destination, waits=WAITS) if run["glue"] else None,
        )


def _destination(endpoint: str) -> DestinationSpec:
    secret = SecretReference("env", "FAULTS_SECRET_KEY")
    return DestinationSpec(
        bucket="none",
        region="us-east-1",
        prefix=PREFIX,
        credentials=CredentialsSpec(
            access_key_id=SecretReference("env", "FAULTS_ACCESS_KEY"), secret_access_key=secret
        ),
        endpoints=EndpointsSpec(s3=endpoint, sts=endpoint, glue=endpoint),
    )


def _say(message: dict[str, Any]) -> None:
    os.write(1, json.dumps(message).encode() + b"\n")


def main() -> None:
    """Make the clients, say so, and serve."""
    # botocore's own pauses, cut like those of the protocol.
    ExponentialBackoff.delay_amount = lambda *_: random.random() * 0.02  # type: ignore[method-assign] # noqa: S311
    server = _Server(sys.argv[1])
    server.warm_up(sys.argv[2])
    # Children share these pages until they write to them, which a collection would do.
    gc.collect()
    gc.freeze()
    gc.disable()
    _say({"ready": True})
    server.run()


if __name__ == "__main__":
    main()
