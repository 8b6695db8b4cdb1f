"""What a case acts on: tables in Glue or in a REST catalog, behind fault proxies."""

from __future__ import annotations

import os
import random
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pyiceberg.catalog import Catalog, load_catalog

from tests.faults.iceberg.steps import Step, step_of
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import FaultProxy, Forward, Response
from tests.servers.ministack import AwsServer, Lake
from tests.servers.oauth2_gate import CATALOG, Gate
from tests.servers.rest_catalog import Store, started

Mode = Literal["APPEND", "OVERWRITE", "UPSERT"]
MODES: tuple[Mode, ...] = ("APPEND", "OVERWRITE", "UPSERT")
CatalogName = Literal["glue", "rest"]
CREDENTIAL = "LAKELOAD_TEST_REST_CREDENTIAL"
PIPELINE = "shop"

FIRST, JOB, NEXT = "first", "troubled", "next"
"""The job ids, in the order in which they load. Each reads a file of its own."""
_ROWS: Mapping[str, tuple[range, int, range]] = {
    FIRST: (range(40), 1, range(0)),
    JOB: (range(20, 60), 2, range(20, 25)),
    NEXT: (range(50, 80), 3, range(50, 52)),
}
"""Ids, version, and the ids among them that are deleted."""

Watcher = Callable[[Step, Request, Forward], Response | None]
"""Sees a request about a table, and may answer in place of the server."""

Row = tuple[str, int, int]
"""Job, id, version."""


def rows_of(job: str) -> list[tuple[int, int, bool]]:
    """Return the source rows of a job: id, version, deleted. `{name}-{number}` has its own ids."""
    if job in _ROWS:
        ids, version, gone = _ROWS[job]
    else:
        number = int(job.rpartition("-")[2]) + 1
        ids, version, gone = range(number * 1000, number * 1000 + 20), 1, range(0)
    return [(one, version, one in gone) for one in ids]


def loaded(rows: list[Row], mode: Mode, job: str) -> list[Row]:
    """Return what a table holds after a job, from what it held before."""
    source = rows_of(job)
    new = [(job, one, version) for one, version, gone in source if not gone or mode != "UPSERT"]
    if mode == "APPEND":
        return rows + new
    if mode == "OVERWRITE":
        return new
    touched = {one for one, _, _ in source}
    return [row for row in rows if row[1] not in touched] + new


@dataclass
class World:
    """One catalog. `seed` decides everything a case leaves open."""

    catalog: CatalogName
    lake: Lake
    proxies: tuple[FaultProxy, ...]
    """All that a sync says passes one of them: AWS, and the REST catalog."""
    destination: dict[str, Any]
    open_directly: Callable[[], Catalog]
    """The oracle's own way to the catalog."""
    folder: Path
    seed: str
    cache: Path | None = None
    modes: dict[str, Mode] = field(default_factory=dict)
    """The mode of each table that was named."""
    _watchers: list[Watcher] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Begin to draw, and to see what passes."""
        self.random = random.Random(self.seed)  # noqa: S311
        for proxy in self.proxies:
            proxy.on("*", self._each)

    @property
    def runs(self) -> Path:
        """One for all commands, as on a user's machine: a run learns there who is dead."""
        return self.folder / "runs"

    @property
    def schema(self) -> str:
        """The namespace of every table."""
        prefix = self.destination.get("glue_database_prefix")
        return f"{prefix}_{PIPELINE}" if prefix else PIPELINE

    def write(
        self, folder_name: str, tables: Mapping[str, Mode], job: str, **settings: Any
    ) -> Path:
        """Write documents that load the file of a job into each table; return their folder."""
        folder = self.folder / folder_name
        folder.mkdir(parents=True)
        listed = []
        for table, mode in tables.items():
            self.modes[table] = mode
            entry: dict[str, Any] = {
                "table": table,
                "path": str(self.source(job)),
                "mode": mode,
                "columns": {
                    "types": {"id": "bigint", "version": "bigint", "gone": "boolean"},
                },
                "deleted_when": "gone",
            }
            if mode == "UPSERT":
                entry |= {"primary_key": ["id"], "cursor": "version", "deletes": "DELETE"}
            listed.append(entry)
        spark = {
            # More tasks and tables at once than can be held.
            "master": "local[40]",
            "driver_memory": "2g",
            "conf": {
                "spark.sql.files.minPartitionNum": "2",
                # A table that is held must not keep the others from arriving at their places.
                "spark.driver.extraJavaOptions": "-Diceberg.worker.num-threads=64",
            },
        }
        self.lake.write_pipeline(
            folder,
            tables=listed,
            endpoint=self.proxies[0].endpoint,
            destination=self.destination,
            spark=spark,
            concurrency=len(listed),
            **settings,
        )
        return folder

    def source(self, job: str) -> Path:
        """The file that a job loads, made when it is first asked for."""
        file = self.folder / "sources" / f"{job}.csv"
        with self._lock:
            if not file.exists():
                file.parent.mkdir(parents=True, exist_ok=True)
                lines = [f"{i},{v},{str(gone).lower()}" for i, v, gone in rows_of(job)]
                file.write_text("\n".join(["id,version,gone", *lines, ""]))
        return file

    @contextmanager
    def watching(self, act: Callable[[Step, Request, Forward], Response | None]) -> Iterator[None]:
        """Show every request about a table to `act`, which may answer in place of the server."""

        with self._lock:
            self._watchers.append(act)
        try:
            yield
        finally:
            with self._lock:
                self._watchers.remove(act)

    def _each(self, request: Request, forward: Forward) -> Response:
        """Several syncs may be watched at once, each by one that knows its tables."""
        step = step_of(request)
        for act in list(self._watchers) if step else ():
            if step and (answer := act(step, request, forward)) is not None:
                return answer
        return forward(request)


@contextmanager
def glue_world(aws: AwsServer, lake: Lake, folder: Path, seed: str) -> Iterator[World]:
    """Tables in the emulator's Glue."""
    with _proxy(aws.endpoint) as proxy:
        _allow_everything(lake)
        prefix = lake.seeded.bucket.replace("-", "_")
        place = proxy.endpoint
        destination = {
            "table_format": "ICEBERG",
            "glue_database_prefix": prefix,
            "endpoints": {"s3": place, "sts": place, "glue": place},
        }

        def direct() -> Catalog:
            keys = {"access-key-id": "test", "secret-access-key": "test", "region": "us-east-1"}
            settings = {"type": "glue", "glue.endpoint": aws.endpoint}
            settings |= {f"glue.{name}": value for name, value in keys.items()}
            return load_catalog("oracle", **settings, **_store(aws))

        yield World("glue", lake, (proxy,), destination, direct, folder, seed)


@contextmanager
def rest_world(aws: AwsServer, lake: Lake, folder: Path, seed: str) -> Iterator[World]:
    """Tables in a REST catalog behind a gate; data goes to the same emulator."""
    _allow_everything(lake)
    seeded = lake.seeded
    store = Store(aws.endpoint, f"s3://{seeded.bucket}/{seeded.prefix}", "test", "test")
    server = folder / "server"
    server.mkdir(parents=True)
    with ExitStack() as stack:
        gate = stack.enter_context(Gate(stack.enter_context(started(store, server))))
        proxy = stack.enter_context(_proxy(aws.endpoint))
        to_catalog = stack.enter_context(_proxy(gate.uri.removesuffix("/api/catalog")))
        os.environ[CREDENTIAL] = "loader-id:loader-secret"
        stack.callback(os.environ.pop, CREDENTIAL, None)
        catalog = {
            "type": "REST",
            "uri": f"{to_catalog.endpoint}/api/catalog",
            "warehouse": CATALOG,
            "credential": {"env": CREDENTIAL},
            "scope": "PRINCIPAL_ROLE:ALL",
            "access_delegation": "NONE",
        }
        destination = {
            "table_format": "ICEBERG",
            "endpoints": {"s3": proxy.endpoint, "sts": proxy.endpoint},
            "iceberg": {"catalog": catalog},
        }

        def direct() -> Catalog:
            settings = {
                "type": "rest",
                "uri": gate.uri,
                "warehouse": CATALOG,
                "credential": "loader-id:loader-secret",
                "scope": "PRINCIPAL_ROLE:ALL",
            }
            return load_catalog("oracle", **settings, **_store(aws))

        yield World("rest", lake, (proxy, to_catalog), destination, direct, folder, seed)


WORLDS = {"glue": glue_world, "rest": rest_world}


def _store(aws: AwsServer) -> dict[str, str]:
    return {
        "s3.endpoint": aws.endpoint,
        "s3.access-key-id": "test",
        "s3.secret-access-key": "test",
        "s3.region": "us-east-1",
    }


@contextmanager
def _proxy(upstream: str) -> Iterator[FaultProxy]:
    proxy = FaultProxy(upstream)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()


def _allow_everything(lake: Lake) -> None:
    """Permissions are not what is tested here."""
    everything = {"Effect": "Allow", "Action": ["s3:*", "glue:*"], "Resource": "*"}
    policy = {"Version": "2012-10-17", "Statement": [everything]}
    lake.server.admin.put_role_policy(lake.seeded.role, policy)


def table_name(*parts: object) -> str:
    """Return a name that Glue takes, and no other table has."""
    words = "_".join(str(part).lower().replace(" ", "_").replace("-", "_") for part in parts)
    return f"{words}_{secrets.token_hex(2)}"
