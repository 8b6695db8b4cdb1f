"""Servers that all worker processes of a run share.

The first test that needs one has it started; the controller of the run holds it and ends it. Where
there are no workers the one process does both. Tests of a shared server take buckets, namespaces
and tables of their own.
"""

from __future__ import annotations

import secrets
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, suppress
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any, Protocol

import pytest

KEY = "servers"
"""What a worker is told, in `workerinput`: the address and the key of the controller."""


class Servers(Protocol):
    """Whoever has servers started."""

    def get(self, start: Start) -> Any:
        """Return what `start` yields, which is called once in a run.

        Raises `RuntimeError` when the server does not come up.
        """


Start = Callable[[Path, Servers], AbstractContextManager[Any]]
"""Starts a server whose files lie in a folder; other servers that it needs are there to ask for.

What it yields has to be picklable, and it has to be a function of a module.
"""


class OwnServers:
    """The servers of this process: started when they are asked for, ended with `close`."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._stack = ExitStack()
        self._running: dict[Start, Any] = {}

    def get(self, start: Start) -> Any:
        """Start the server, or return what it yielded."""
        with self._lock:
            if start not in self._running:
                folder = self._stack.enter_context(
                    tempfile.TemporaryDirectory(
                        prefix="lakeload-server-", ignore_cleanup_errors=True
                    )
                )
                self._running[start] = self._stack.enter_context(start(Path(folder), self))
            return self._running[start]

    def close(self) -> None:
        """End all of them, the last first."""
        with self._lock:
            self._stack.close()
            self._running.clear()


class _Door:
    """The controller's side: it answers each worker in a thread of its own."""

    def __init__(self, servers: OwnServers) -> None:
        self._servers = servers
        self.key = secrets.token_bytes(16)
        self._listener = Listener(family="AF_UNIX", authkey=self.key)
        threading.Thread(target=self._let_in, name="servers", daemon=True).start()

    @property
    def address(self) -> str:
        """Where workers knock."""
        return str(self._listener.address)

    def close(self) -> None:
        """Let nobody in any more."""
        self._listener.close()

    def _let_in(self) -> None:
        with suppress(OSError):
            while True:
                worker = self._listener.accept()
                threading.Thread(target=self._answer, args=(worker,), daemon=True).start()

    def _answer(self, worker: Connection) -> None:
        with worker, suppress(EOFError, OSError):
            while True:
                start = worker.recv()
                try:
                    worker.send((self._servers.get(start), None))
                except Exception as error:  # noqa: BLE001 - the worker's test has to hear of it
                    worker.send((None, f"{type(error).__name__}: {error}"))


class _Controllers:
    """The controller's servers, asked for by a worker."""

    def __init__(self, address: str, key: bytes) -> None:
        self._connection = Client(address, family="AF_UNIX", authkey=key)

    def get(self, start: Start) -> Any:
        """Ask the controller, and wait."""
        self._connection.send(start)
        running, problem = self._connection.recv()
        if problem:
            raise RuntimeError(f"a server of the run did not start: {problem}")
        return running


class SharedServers:
    """The plugin: opens the door to workers, and ends the servers with the run."""

    def __init__(self) -> None:
        self._servers = OwnServers()
        self._door = _Door(self._servers)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker where to ask."""
        node.workerinput[KEY] = (self._door.address, self._door.key.hex())

    def pytest_unconfigure(self) -> None:
        """End every server."""
        self._door.close()
        self._servers.close()


def pytest_configure(config: pytest.Config) -> None:
    """Become the controller where there are workers, and this is none."""
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(SharedServers(), "shared-servers")


@pytest.fixture(scope="session")
def servers(pytestconfig: pytest.Config) -> Iterator[Servers]:
    """The servers of the run."""
    if told := getattr(pytestconfig, "workerinput", {}).get(KEY):
        address, key = told
        yield _Controllers(address, bytes.fromhex(key))
        return
    own = OwnServers()
    try:
        yield own
    finally:
        own.close()
