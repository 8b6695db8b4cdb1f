"""Tables that an earlier commit wrote, packed once and restored by each test of their second day.

`tests/cases/tables/COMMIT/FORMAT.tar.gz` has the objects of the tables of `first_day`. To make one,
copy this module into a checkout of the commit, and let a test there load `first_day` as `monday`
and call `pack_parquet` or `pack_iceberg`.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import requests
from pyiceberg.catalog import Catalog, load_catalog

from lakeload_jobs.contract.spec import ColumnsSpec, FilesInput, JobSpec, TableSpec
from tests.integration.formats.iceberg.conftest import Loads
from tests.integration.formats.worlds import World
from tests.integration.jobs.conftest import Job

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

NAMESPACE = "kept"
BUCKET = "fixture"
INDEX = "tables.json"
WRITTEN = 1_793_000_000_000_000_000
"""When the files of the first day were written, in ns since 1970."""

ORDERS = """id,code,Amount €,big,at,day,ok,note,empty
1,007,10.5,9999999999,2024-02-29 13:30:00,2024-02-29,true,x,
2,042,7.25,5,2024-02-29 23:59:59.5,2024-03-01,false,,
"""
EVENTS = """{"id": 1, "user": {"name": "a", "n": 1}, "at": "2024-02-29 13:30:00", "score": 1.5}
{"id": 2, "user": null, "at": "2024-02-29T23:59:59.500", "score": 2}
"""
CUSTOMERS = """id,version,name,gone,since
1,1,a,false,2024-02-29 13:30:00
2,5,b,false,2024-02-29 13:30:00
3,5,c,false,2024-02-29 13:30:00
"""
NUMBERS = pa.table(
    {
        "id": pa.array([1, 2], pa.int32()),
        "n": pa.array([7, None], pa.int32()),
        "at": pa.array([datetime(2024, 2, 29, 13, 30), None], pa.timestamp("us", "UTC")),
        "local": pa.array([datetime(2024, 2, 29, 13, 30), None], pa.timestamp("us")),
        "price": pa.array([1.5, 2.0], pa.float64()),
    }
)


def input_of(world: World, table: str) -> Path:
    """Return the folder of a table's files, which lies behind a link."""
    real, link = Path(world.folder(), "files", table), Path(world.folder(), table)
    real.mkdir(parents=True, exist_ok=True)
    if not link.exists():
        link.symlink_to(real)
    return link


def write(world: World, table: str, name: str, content: str | pa.Table, at: int = WRITTEN) -> Path:
    """Write a file of a table's input, with a time that does not change."""
    path = input_of(world, table) / name
    if isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    else:
        pq.write_table(content, path)
    os.utime(path, ns=(at, at))
    return path


def orders(world: World) -> TableSpec:
    """CSV with a header, inferred types, loaded file by file."""
    return _table(world, "orders", FilesInput("CSV", (), {"header": "true"}, incremental=True))


def plain(world: World) -> TableSpec:
    """The same, loaded whole."""
    return _table(world, "plain", FilesInput("CSV", (), {"header": "true"}))


def events(world: World) -> TableSpec:
    """JSON lines with objects, which become JSON text."""
    given = FilesInput("NDJSON", (), {}, incremental=True)
    return _table(world, "events", given, columns=ColumnsSpec(types={"at": "timestamp"}))


def numbers(world: World) -> TableSpec:
    """Parquet."""
    return _table(world, "numbers", FilesInput("PARQUET", (), {}, incremental=True))


def customers(world: World) -> TableSpec:
    """CSV by a key."""
    given = FilesInput("CSV", (), {"header": "true"}, incremental=True)
    return _table(
        world,
        "customers",
        given,
        mode="UPSERT",
        primary_key=("id",),
        cursor="version",
        deleted_when="gone",
    )


def _table(world: World, name: str, given: FilesInput, **changes: Any) -> TableSpec:
    folder = input_of(world, name)
    table = replace(world.table(str(folder / "*"), name=name), **changes)
    own = replace(given, paths=(str(folder / "*"),), folder=world.folder())
    return replace(table, input=own, fingerprint=f"fingerprint-of-{name}")


def first_day(world: World, *, upserts: bool) -> dict[str, TableSpec]:
    """Write the files of the first day, and return the tables by name."""
    write(world, "orders", "1.csv", ORDERS)
    write(world, "plain", "1.csv", ORDERS)
    write(world, "events", "1.ndjson", EVENTS)
    write(world, "numbers", "1.parquet", NUMBERS)
    tables = [orders(world), plain(world), events(world), numbers(world)]
    if upserts:
        write(world, "customers", "1.csv", CUSTOMERS)
        tables.append(customers(world))
    return {table.source: table for table in tables}


def monday(spec: JobSpec) -> JobSpec:
    """Return the job of the first day."""
    return replace(spec, job_id="monday", nested="JSON")


def pack_parquet(job: Job, path: Path) -> None:
    """Keep the objects of a lake."""
    _pack(path, {key: job.lake.read(key) for key in job.lake.keys()})  # noqa: SIM118


def restore_parquet(job: Job, path: Path) -> None:
    """Put back what `pack_parquet` has kept."""
    for key, body in unpacked(path):
        job.lake.server.s3.put_object(Bucket=job.lake.seeded.bucket, Key=key, Body=body)


def pack_iceberg(loads: Loads, path: Path) -> None:
    """Keep the objects of the namespace, and the metadata of its tables."""
    s3, catalog = _store(loads), _catalog(loads)
    objects = {}
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET):
        for entry in page.get("Contents", []):
            body = s3.get_object(Bucket=BUCKET, Key=entry["Key"])["Body"].read()
            objects[entry["Key"]] = body
    places = {}
    for space, name in catalog.list_tables(NAMESPACE):
        table = catalog.load_table((space, name))
        places[name] = table.metadata_location
        key = table.metadata_location.removeprefix(f"s3://{BUCKET}/")
        objects[key] = table.metadata.model_dump_json(exclude_none=True).encode()
    _pack(path, {**objects, INDEX: json.dumps(places, sort_keys=True).encode()})


def restore_iceberg(loads: Loads, path: Path) -> None:
    """Put back what `pack_iceberg` has kept. The catalog, which keeps metadata in memory, is given
    it as the changes that make it."""
    s3, catalog = _store(loads), _catalog(loads)
    objects = dict(unpacked(path))
    places = json.loads(objects.pop(INDEX))
    for key, body in objects.items():
        s3.put_object(Bucket=BUCKET, Key=key, Body=body)
    catalog.create_namespace_if_not_exists(NAMESPACE)
    for name, place in places.items():
        if catalog.table_exists((NAMESPACE, name)):
            catalog.drop_table((NAMESPACE, name))
        metadata = json.loads(objects[place.removeprefix(f"s3://{BUCKET}/")])
        request = {
            "requirements": [{"type": "assert-create"}],
            "updates": list(_changes(metadata)),
        }
        address = f"{loads.uri}/v1/namespaces/{NAMESPACE}/tables/{name}"
        requests.post(address, json=request, timeout=60).raise_for_status()


def _changes(metadata: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the changes of a REST catalog that make a table of its metadata."""
    yield {"action": "assign-uuid", "uuid": metadata["table-uuid"]}
    yield {"action": "upgrade-format-version", "format-version": metadata.get("format-version", 2)}
    last = metadata["last-column-id"]
    for schema in metadata["schemas"]:
        yield {"action": "add-schema", "schema": schema, "last-column-id": last}
    yield {"action": "set-current-schema", "schema-id": metadata["current-schema-id"]}
    for spec in metadata["partition-specs"]:
        yield {"action": "add-spec", "spec": spec}
    yield {"action": "set-default-spec", "spec-id": metadata["default-spec-id"]}
    for order in metadata["sort-orders"]:
        yield {"action": "add-sort-order", "sort-order": order}
    yield {"action": "set-default-sort-order", "sort-order-id": metadata["default-sort-order-id"]}
    yield {"action": "set-location", "location": metadata["location"]}
    yield {"action": "set-properties", "updates": metadata["properties"]}
    for snapshot in metadata["snapshots"]:
        yield {"action": "add-snapshot", "snapshot": snapshot}
        yield {
            "action": "set-snapshot-ref",
            "ref-name": "main",
            "type": "branch",
            "snapshot-id": snapshot["snapshot-id"],
        }


def _catalog(loads: Loads) -> Catalog:
    return load_catalog("reader", type="rest", uri=loads.uri, **loads.store)


def _store(loads: Loads) -> S3Client:
    return boto3.client(
        "s3",
        endpoint_url=loads.store["s3.endpoint"],
        region_name=loads.store["s3.region"],
        aws_access_key_id=loads.store["s3.access-key-id"],
        aws_secret_access_key=loads.store["s3.secret-access-key"],
    )


def _pack(path: Path, objects: Mapping[str, bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        gzip.GzipFile(path, "wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for key, body in sorted(objects.items()):
            member = tarfile.TarInfo(key)
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))


def unpacked(path: Path) -> Iterable[tuple[str, bytes]]:
    """Yield keys and bodies of what was packed."""
    with tarfile.open(path) as tar:
        for member in tar:
            body = tar.extractfile(member)
            assert body is not None
            yield member.name, body.read()
