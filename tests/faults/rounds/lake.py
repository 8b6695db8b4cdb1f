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
from pyiceberg.catalog import Catalog

from lakeload.demo.aws import ACCOUNT_ID, SeededLake
from tests.e2e.command import lakeload
from tests.faults.findings import Findings
from tests.published_policies import attach
from tests.servers.exact_aws import ExactAws
from tests.servers.fault_proxy import FaultProxy
from tests.servers.ministack import AwsServer, Lake
from tests.servers.oauth2_gate import Gate, Principal, iceberg_in, opened
from tests.servers.rest_catalog import Store, started

Form = Literal["parquet", "iceberg"]
SECRET = "rounds"
PREFIX = "lake"


KINDS = ("data", "deletes", "manifest lists", "manifests", "others")
"""What objects of a lake are. Those of Parquet tables are data and others. The REST catalog of the
tests keeps metadata files in its memory."""


@dataclass(frozen=True)
class Stored:
    """How many objects of each kind there are in a lake, and of how many bytes."""

    objects: Counter[str]
    sizes: Counter[str]
    uploads: int

    @property
    def data(self) -> int:
        """The data files."""
        return self.objects["data"]

    @property
    def other(self) -> int:
        """All other objects."""
        return self.objects.total() - self.data

    @property
    def other_bytes(self) -> int:
        """The bytes of all other objects."""
        return self.sizes.total() - self.sizes["data"]


def kind_of(key: str) -> str:
    """Return which of `KINDS` an object is."""
    name = key.rpartition("/")[2]
    if name.endswith((".puffin", "-deletes.parquet")):
        return "deletes"
    if name.endswith(".parquet"):
        return "data"
    if name.endswith(".avro"):
        return "manifest lists" if name.startswith("snap-") else "manifests"
    return "others"


@dataclass
class RoundsLake:
    """One lake behind a proxy that counts, and the catalog of Iceberg tables."""

    lake: Lake
    proxy: FaultProxy
    gate: Gate | None
    variables: dict[str, str] = field(default_factory=dict)
    """What a command needs in its environment, besides AWS."""
    keeper: RoundsLake | None = None
    """The same lake as those see it who maintain it: with a user and a role of their own, and past
    the proxy."""
    _counting: threading.Lock = field(default_factory=threading.Lock)

    def write(self, folder: Path, *options: str, **settings: Any) -> None:
        """Write documents and give the role what `lakeload policy` prints for them. `options` are
        those of that command, `settings` those of `Lake.write_pipeline`."""
        folder.mkdir(parents=True, exist_ok=True)
        self.lake.write_pipeline(
            folder,
            endpoint=self.proxy.endpoint,
            destination=iceberg_in(self.gate) if self.gate else {},
            destination_prefix=None,
            namespace="shop",
            **settings,
        )
        user, role = self.lake.seeded.user, self.lake.seeded.role
        attach(self.lake.server, self._policies(folder, *options), user, role)

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
        objects: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        for page in pages:
            for one in page.get("Contents", []):
                objects[kind_of(one["Key"])] += 1
                sizes[kind_of(one["Key"])] += one["Size"]
        return Stored(objects, sizes, len(self.lake.uploads()))

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

    def metadata(self, table: str) -> str | None:
        """Return how large the metadata of a table is, which the catalog keeps to itself; None of a
        table without."""
        if self.gate is None:
            return None
        found = self._catalog.load_table(("shop", table)).metadata
        size = len(found.model_dump_json())
        return f"metadata of `{table}`: {len(found.snapshots)} snapshots, {size:,} bytes"

    @property
    def _catalog(self) -> Catalog:
        assert self.gate is not None
        return opened(self.gate, self.lake.server.endpoint)


@contextmanager
def rounds_lake(form: Form, folder: Path) -> Iterator[RoundsLake]:
    """Start an AWS and, for Iceberg, a REST catalog that vends no keys; end them at the end."""
    folder.mkdir(parents=True)
    with ExitStack() as stack:
        aws = stack.enter_context(ExactAws(folder / "aws"))
        server = AwsServer(aws.endpoint)
        bucket = f"lake-{secrets.token_hex(4)}"
        server.admin.create_bucket(bucket)
        lake, keeper = (Lake(server, _new_user(server, bucket)) for _ in range(2))
        proxy = FaultProxy(aws.endpoint)
        proxy.start()
        stack.callback(proxy.stop)
        gate = keepers = None
        if form == "iceberg":
            warehouse = f"s3://{lake.seeded.bucket}/{PREFIX}"
            store = Store(aws.endpoint, warehouse, "test", "test", tells_keys=False)
            backend = stack.enter_context(started(store))
            gate, keepers = (stack.enter_context(Gate(backend)) for _ in range(2))
            for one in (gate, keepers):
                one.principals = {
                    name: Principal(name, SECRET, {f"{name}_role": frozenset()})
                    for name in ("loader", "keeper")
                }
                one.principals["reader-id"] = Principal("reader", "r", {"reader_role": frozenset()})
        past = FaultProxy(aws.endpoint)
        past.start()
        stack.callback(past.stop)
        yield RoundsLake(
            lake,
            proxy,
            gate,
            {"CREDENTIAL": f"loader:{SECRET}"},
            RoundsLake(keeper, past, keepers, {"CREDENTIAL": f"keeper:{SECRET}"}),
        )


def _new_user(server: AwsServer, bucket: str) -> SeededLake:
    """Make a user of a bucket, who may assume no role yet."""
    mark = secrets.token_hex(4)
    user, role = f"runner-{mark}", f"role-{mark}"
    key = server.admin.create_user(user)
    arn = f"arn:aws:iam::{ACCOUNT_ID}:role/{role}"
    return SeededLake(bucket, PREFIX, "us-east-1", user, key, role, arn, f"ext-{mark}")


def compared(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> Findings:
    """Return which rows are not there, and which are too often or should not be there."""
    there, wanted = Counter(found), Counter(expected)
    return Findings((wanted - there).total(), (there - wanted).total())
