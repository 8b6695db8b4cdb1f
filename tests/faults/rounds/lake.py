"""Where the rounds load to: an AWS that enforces the policy that lakeload prints, and a catalog."""

from __future__ import annotations

import secrets
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog, load_catalog

from lakeload.demo.aws import ACCOUNT_ID, SeededLake
from tests.e2e.command import lakeload
from tests.faults.findings import Findings
from tests.published_policies import attach, put_policies
from tests.servers.exact_aws import ExactAws
from tests.servers.fault_proxy import FaultProxy
from tests.servers.ministack import AwsServer, Lake
from tests.servers.oauth2_gate import CATALOG, Gate, Principal
from tests.servers.rest_catalog import Store, started

Form = Literal["parquet", "iceberg"]
SECRET = "rounds"
PREFIX = "lake"


@dataclass(frozen=True)
class Stored:
    """How many objects there are in a lake, and of how many bytes: data files and all others."""

    data: int
    data_bytes: int
    other: int
    other_bytes: int
    uploads: int


@dataclass
class RoundsLake:
    """One lake behind a proxy that counts, and the catalog of Iceberg tables."""

    lake: Lake
    proxy: FaultProxy
    gate: Gate | None
    variables: dict[str, str] = field(default_factory=dict)
    """What a command needs in its environment, besides AWS."""
    _counting: threading.Lock = field(default_factory=threading.Lock)

    def write(self, folder: Path, **settings: Any) -> None:
        """Write documents and give the role what `lakeload policy` prints for them. `settings` are
        those of `Lake.write_pipeline`."""
        folder.mkdir(parents=True, exist_ok=True)
        destination: dict[str, Any] = {}
        if self.gate is not None:
            catalog = {
                "type": "REST",
                "uri": self.gate.uri,
                "warehouse": CATALOG,
                "credential": {"env": "CREDENTIAL"},
                "scope": "PRINCIPAL_ROLE:ALL",
                # The files are written with the role, which has the policy.
                "access_delegation": "NONE",
            }
            destination = {"table_format": "ICEBERG", "iceberg": {"catalog": catalog}}
        self.lake.write_pipeline(
            folder,
            endpoint=self.proxy.endpoint,
            destination=destination,
            destination_prefix=None,
            namespace="shop",
            **settings,
        )
        user, role = self.lake.seeded.user, self.lake.seeded.role
        attach(self.lake.server, self._policies(folder), user, role)

    def allow_maintenance(self, folder: Path) -> None:
        """Let the role do what `lakeload policy --with maintain` prints."""
        user, role = self.lake.seeded.user, self.lake.seeded.role
        policies = self._policies(folder, "--with", "maintain")
        put_policies(self.lake.server, policies, user, role)

    def _policies(self, folder: Path, *options: str) -> dict[str, Any]:
        principal = f"arn:aws:iam::{ACCOUNT_ID}:user/{self.lake.seeded.user}"
        given = ("--principal", principal, "--reveal-external-id", *options)
        printed = lakeload(self.lake, folder, "policy", "pipeline.yml", *given, **self.variables)
        return printed.json

    def requests(self) -> Counter[str]:
        """Return the requests since the last call, by operation."""
        with self._counting:
            passed, self.proxy.requests = self.proxy.requests, []
            found = Counter(f"{one.service}.{one.operation}" for one in passed)
            if self.gate is not None:
                asked, self.gate.requests = self.gate.requests, []
                found.update(f"catalog.{one.method}" for one in asked)
        return found

    def stored(self) -> Stored:
        """Return what is in the bucket."""
        pages = self.lake.server.s3.get_paginator("list_objects_v2").paginate(
            Bucket=self.lake.seeded.bucket
        )
        objects = [(one["Key"], one["Size"]) for page in pages for one in page.get("Contents", [])]
        data = [size for key, size in objects if key.endswith(".parquet")]
        other = [size for key, size in objects if not key.endswith(".parquet")]
        uploads = len(self.lake.uploads())
        return Stored(len(data), sum(data), len(other), sum(other), uploads)

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """Return the rows of a table, as pyiceberg reads them, or pyarrow each Parquet file."""
        if self.gate is not None:
            found = self._catalog.load_table(("shop", table)).scan().to_arrow()
            return list(zip(*(found[name].to_pylist() for name in columns), strict=True))
        rows: list[tuple[Any, ...]] = []
        for key in self.lake.data_keys():
            if f"/{table}/" in key:
                file = pq.read_table(pa.BufferReader(self.lake.read(key)), columns=list(columns))
                rows += zip(*(file[name].to_pylist() for name in columns), strict=True)
        return rows

    def file_sizes(self, table: str) -> list[int]:
        """Return the sizes of the data files of a table: of Iceberg those of its main branch."""
        if self.gate is not None:
            if not self._catalog.table_exists(("shop", table)):
                return []
            planned = self._catalog.load_table(("shop", table)).scan().plan_files()
            return [task.file.file_size_in_bytes for task in planned]
        keys = (key for key in self.lake.data_keys() if f"/{table}/" in key)
        return [len(self.lake.read(key)) for key in keys if key.endswith(".parquet")]

    @property
    def _catalog(self) -> Catalog:
        assert self.gate is not None
        return load_catalog(
            "reader",
            **{
                "type": "rest",
                "uri": self.gate.uri,
                "warehouse": CATALOG,
                "credential": "reader-id:r",
                "scope": "PRINCIPAL_ROLE:ALL",
                "s3.endpoint": self.lake.server.endpoint,
                "s3.region": "us-east-1",
                "s3.access-key-id": "test",
                "s3.secret-access-key": "test",
            },
        )


@contextmanager
def rounds_lake(form: Form, folder: Path) -> Iterator[RoundsLake]:
    """Start an AWS and, for Iceberg, a REST catalog that vends no keys; end them at the end."""
    folder.mkdir(parents=True)
    with ExitStack() as stack:
        aws = stack.enter_context(ExactAws(folder / "aws"))
        server = AwsServer(aws.endpoint)
        lake = _seeded(server)
        proxy = FaultProxy(aws.endpoint)
        proxy.start()
        stack.callback(proxy.stop)
        gate = None
        if form == "iceberg":
            warehouse = f"s3://{lake.seeded.bucket}/{PREFIX}"
            store = Store(aws.endpoint, warehouse, "test", "test", tells_keys=False)
            (folder / "catalog").mkdir()
            backend = stack.enter_context(started(store, folder / "catalog"))
            gate = stack.enter_context(Gate(backend))
            roles = {"loader_role": frozenset[str]()}
            gate.principals["loader-id"] = Principal("loader", SECRET, roles)
            gate.principals["reader-id"] = Principal("reader", "r", {"reader_role": frozenset()})
        variables = {"CREDENTIAL": f"loader-id:{SECRET}"}
        yield RoundsLake(lake, proxy, gate, variables)


def _seeded(server: AwsServer) -> Lake:
    """Make a bucket, and a user who may assume no role yet."""
    mark = secrets.token_hex(4)
    bucket, user, role = f"lake-{mark}", f"runner-{mark}", f"loader-{mark}"
    server.admin.create_bucket(bucket)
    key = server.admin.create_user(user)
    arn = f"arn:aws:iam::{ACCOUNT_ID}:role/{role}"
    return Lake(
        server, SeededLake(bucket, PREFIX, "us-east-1", user, key, role, arn, f"ext-{mark}")
    )


def compared(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> Findings:
    """Return which rows are not there, and which are too often or should not be there."""
    there, wanted = Counter(found), Counter(expected)
    return Findings((wanted - there).total(), (there - wanted).total())
