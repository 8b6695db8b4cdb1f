"""One emulator, lines to it, and a fork server whose processes speak through them."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa

from lakeload.demo.aws import ACCOUNT_ID, EmbeddedAws, trust_policy
from tests.athena import query
from tests.faults.protocol.lake import Bucket
from tests.faults.protocol.lines import Line, make_line

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "sparkjobs"
ALL = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}],
}
RUN_SECONDS = 60
"""Longer than any run takes: one that hangs is a violation."""


@dataclass
class Run:
    """One process: `pid` when it lives, `code` when it is gone."""

    name: str
    answer: Path
    pid: int | None = None
    code: int | None = None
    born: threading.Event = field(default_factory=threading.Event)
    gone: threading.Event = field(default_factory=threading.Event)

    def told(self) -> list[dict[str, Any]]:
        """What each action that ended was told."""
        try:
            told: list[dict[str, Any]] = json.loads(self.answer.read_text())
        except FileNotFoundError:
            return []
        return told


class ForkServer:
    """The fork server's process and the runs it has under way."""

    def __init__(self, folder: Path, environment: dict[str, str], *arguments: str) -> None:
        self._folder = folder
        self._runs: dict[str, Run] = {}
        self._lock = threading.Lock()
        self._number = 0
        self._log = (folder / "writers.log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.faults.protocol.fork_server", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
            cwd=ROOT,
        )
        self._ready: queue.Queue[bool] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        if not self._ready.get(timeout=60):
            raise RuntimeError((folder / "writers.log").read_text()[-4000:])

    def start(self, run: dict[str, Any]) -> Run:
        """Fork a process for this run; returns when it has a process id."""
        with self._lock:
            self._number += 1
            name = f"run-{self._number}"
            entry = self._runs[name] = Run(name, self._folder / f"{name}.json")
            message = {**run, "id": name, "answer": str(entry.answer)}
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        if not entry.born.wait(RUN_SECONDS):
            raise RuntimeError("the fork server has stopped")
        return entry

    def close(self) -> None:
        """End the server; its processes end by themselves."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._log.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if "ready" in message:
                self._ready.put(True)
                continue
            with self._lock:
                run = self._runs[message["id"]]
            if "pid" in message:
                run.pid = message["pid"]
                run.born.set()
            else:
                run.code = message["code"]
                with self._lock:
                    del self._runs[run.name]
                run.gone.set()
        self._ready.put(False)


@dataclass
class World:
    """Where episodes happen; each borrows lines from the free ones."""

    endpoint: str
    server: ForkServer
    _reader: dict[str, Any]
    _free: list[Line] = field(default_factory=list)
    _some_free: threading.Condition = field(default_factory=threading.Condition)

    def athena(self, database: str, table: str) -> pa.Table:
        """`SELECT *`, as Athena would."""
        return query(self._reader["glue"], self._reader["s3"], database, table)

    def bucket(self) -> Bucket:
        """A new, empty bucket."""
        bucket = Bucket(self.endpoint, f"lake-{secrets.token_hex(6)}")
        bucket.create()
        return bucket

    @contextlib.contextmanager
    def borrow(self, count: int) -> Iterator[list[Line]]:
        """Have `count` lines for oneself."""
        with self._some_free:
            self._some_free.wait_for(lambda: len(self._free) >= count)
            lines = [self._free.pop() for _ in range(count)]
        try:
            yield lines
        finally:
            with self._some_free:
                self._free.extend(lines)
                self._some_free.notify_all()


def isolate() -> None:
    """Keep the developer's AWS settings out, as the tests do."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]


def _reader(endpoint: str) -> dict[str, Any]:
    """Clients of the emulator's administrator."""
    session = boto3.Session("test", "test", region_name="us-east-1")
    make: Any = session.client
    return {name: make(name, endpoint_url=endpoint) for name in ("glue", "s3")}


@contextlib.contextmanager
def make_world(*, lines: int, sources: Path = SOURCES) -> Iterator[World]:
    """Start everything; `sources` is the folder that holds the `lakeload_jobs` to be tried."""
    with (
        tempfile.TemporaryDirectory(prefix="faults-") as name,
        EmbeddedAws(Path(name) / "aws") as aws,
    ):
        admin = aws.admin()
        mark = secrets.token_hex(4)
        external_id = f"ext-{secrets.token_hex(12)}"
        key = admin.create_user(f"writer-{mark}", ALL)
        user_arn = f"arn:aws:iam::{ACCOUNT_ID}:user/writer-{mark}"
        role_arn = admin.create_role(
            f"role-{mark}", trust=trust_policy(user_arn, external_id), policy=ALL
        )
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": name,
            "PYTHONPATH": os.pathsep.join([str(sources), str(ROOT)]),
            "AWS_EC2_METADATA_DISABLED": "true",
            "FAULTS_ACCESS_KEY": key.access_key_id,
            "FAULTS_SECRET_KEY": key.secret_access_key,
            "FAULTS_EXTERNAL_ID": external_id,
        }
        made = [make_line(aws.endpoint) for _ in range(lines)]
        server = ForkServer(Path(name), environment, role_arn, aws.endpoint)
        try:
            yield World(aws.endpoint, server, _reader(aws.endpoint), list(made))
        finally:
            server.close()
            for line in made:
                line.stop()
