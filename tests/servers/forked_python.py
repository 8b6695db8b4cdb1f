"""Forks Python processes that have the libraries imported: 20 ms of CPU instead of half a second.

`python -P forked_python.py SOCKET` serves `forked_python_client.py` until standard input closes.
What runs in such a process is what `python` would run: it has the client's arguments, environment,
working folder and descriptors, and memory of its own; the client passes signals on, ends as it
ends, and it does not outlive the client. What no test of the process itself may use it for: its
argv and first environment in /proc, its session, and what `python` reads before the first import
are those of the server.
"""

from __future__ import annotations

import array
import atexit
import gc
import importlib
import io
import marshal
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
import threading
import time
import traceback
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

LIBRARIES = (
    *("boto3", "jinja2", "platformdirs", "psutil", "pyarrow.compute", "pyarrow.parquet"),
    *("pydantic", "pyiceberg.catalog.glue", "pyiceberg.catalog.rest", "pyiceberg.table"),
    *("pyspark.sql", "pyspark.worker", "requests", "rich.markdown", "rich.progress", "rich.table"),
    *("rich.traceback", "typer", "typer.rich_utils", "yaml"),
)
OURS = ("lakeload_jobs", "lakeload")
_LATER = (
    *("lakeload.__main__", "lakeload.app", "lakeload.commands", "lakeload.demo", "lakeload.ui"),
    "lakeload_jobs.entry",
)
"""What looks at the process when it is imported (the streams of `lakeload.ui` are made for its
terminal and its variables), with all that imports it, and what is run."""
_LENGTH = 8
EXECUTABLE = "LAKELOAD_TEST_EXECUTABLE"
"""The variable with the Python that a process takes for its own: its commands can be forked too."""


def main(path: str) -> None:
    """Import, and serve until standard input closes."""
    _import()
    listener = socket.socket(socket.AF_UNIX)
    # Only what listens has the name that clients know.
    listener.bind(f"{path}.part")
    listener.listen(64)
    Path(f"{path}.part").rename(path)
    # Children share these pages until they write to them, which a collection would do.
    gc.collect()
    gc.freeze()
    # Arrow and its allocator have threads already, and know how to fork.
    assert threading.active_count() == 1, "a fork of threads is no healthy process"
    _Server(listener).run()


class _Server:
    """The processes that live, each with the connection of its client."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._selector = selectors.DefaultSelector()

    def run(self) -> None:
        """Serve until standard input closes."""
        self._selector.register(0, selectors.EVENT_READ)
        self._selector.register(self._listener, selectors.EVENT_READ, self._fork)
        while True:
            for key, _ in self._selector.select():
                if key.fd == 0:
                    return
                key.data()

    def _fork(self) -> None:
        client, _ = self._listener.accept()
        content, descriptors = _received(client)
        if (process := os.fork()) == 0:
            for key in list(self._selector.get_map().values()):
                if key.fd:
                    os.close(key.fd)
            self._selector.close()
            client.close()
            _live(content, descriptors)
        for one in descriptors:
            os.close(one)
        ended = os.pidfd_open(process)
        self._selector.register(client, selectors.EVENT_READ, partial(self._hear, client, process))
        self._selector.register(
            ended, selectors.EVENT_READ, partial(self._bury, client, process, ended)
        )

    def _hear(self, client: socket.socket, process: int) -> None:
        """Pass signals on; a client that was killed takes its process with it."""
        numbers = client.recv(64)
        for number in numbers or (signal.SIGKILL,):
            os.kill(process, number)
        if not numbers:
            self._selector.unregister(client)

    def _bury(self, client: socket.socket, process: int, ended: int) -> None:
        _, status = os.waitpid(process, 0)
        with suppress(OSError):  # the client has gone
            client.send(marshal.dumps(os.waitstatus_to_exitcode(status)))
        with suppress(KeyError):
            self._selector.unregister(client)
        self._selector.unregister(ended)
        client.close()
        os.close(ended)


def _received(client: socket.socket) -> tuple[bytes, list[int]]:
    """Return what a client wants to have run, and its standard streams."""
    descriptors = array.array("i")
    start, ancillary, _, _ = client.recvmsg(_LENGTH, socket.CMSG_SPACE(3 * descriptors.itemsize))
    for _, _, data in ancillary:
        descriptors.frombytes(data)
    length, content = int.from_bytes(start, "little"), b""
    while len(content) < length:
        content += client.recv(length - len(content))
    return content, list(descriptors)


def _live(content: bytes, descriptors: list[int]) -> NoReturn:
    """Be the process that `python` with these arguments would be."""
    code = 70
    try:
        arguments, folder, environment = marshal.loads(content)  # noqa: S302 - our own client's
        # The server's signals are not for it.
        os.setpgid(0, 0)
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        time.tzset()
        sys.executable = os.environ.get(EXECUTABLE, sys.executable)
        _open_streams()
        code = _exit_code(arguments)
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _open_streams() -> None:
    """Make the streams of these descriptors: the server's know of theirs whether they can seek."""
    at_once = bool(os.environ.get("PYTHONUNBUFFERED"))
    errors = {"stdin": sys.stdin.errors, "stdout": sys.stdout.errors, "stderr": sys.stderr.errors}
    for number, (name, handling) in enumerate(errors.items()):
        raw = open(number, "wb" if number else "rb", closefd=False)  # noqa: SIM115
        stream = io.TextIOWrapper(
            raw,
            encoding="utf-8",
            errors=handling,
            line_buffering=raw.isatty() or name == "stderr",
            write_through=at_once,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _exit_code(arguments: list[str]) -> int:
    """Run them, and return what the interpreter would end with."""
    try:
        _run(arguments)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        sys.stderr.write(f"{end.code}\n")
        return 1
    except BaseException:  # noqa: BLE001 - what the interpreter does
        traceback.print_exc()
        return 1
    return 0


def _run(arguments: list[str]) -> None:
    first = os.environ.get("PYTHONPATH", "").split(":") if "PYTHONPATH" in os.environ else []
    safe = arguments[0] == "-P"
    what, *rest = arguments[safe:]
    if what == "-m":
        sys.path[:0] = [*([] if safe else [str(Path.cwd())]), *first]
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        return
    assert not what.startswith("-"), f"an option that nobody needed so far: {what}"
    sys.path[:0] = [*([] if safe else [str(Path(what).resolve().parent)]), *first]
    sys.argv = [what, *rest]
    runpy.run_path(what, run_name="__main__")


def _import() -> None:
    for name in LIBRARIES:
        importlib.import_module(name)
    for name in OURS:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not module.name.startswith(_LATER):
                importlib.import_module(module.name)
    assert "lakeload.ui.console" not in sys.modules
    # A client of a service takes ten times as long while its description is not parsed.
    from lakeload_jobs.aws.credentials import base_session
    from lakeload_jobs.contract.secrets import resolve_locally
    from lakeload_jobs.contract.spec import CredentialsSpec

    session = base_session(CredentialsSpec(), "us-east-1", resolve_locally)
    for service in ("s3", "sts", "glue"):
        client: Any = session.client
        client(service)


if __name__ == "__main__":
    main(sys.argv[1])
