"""Loads into one REST catalog, in the session that all tests of a process share."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from lakeload.documents.spec import fingerprint
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.result import RunResult, TableResult
from lakeload_jobs.contract.spec import (
    CatalogSpec,
    CredentialsSpec,
    DestinationSpec,
    EndpointsSpec,
    FilesInput,
    IcebergSpec,
    JobSpec,
    TableSpec,
)
from lakeload_jobs.formats.iceberg.load.catalog_tables import CatalogTables
from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.load import run
from tests.integration.formats.iceberg.catalog_world import CatalogWorld
from tests.integration.formats.iceberg.catalog_worlds import worlds
from tests.integration.formats.iceberg.catalogs.world import secret_file
from tests.integration.formats.iceberg.spark_catalog import open_in_spark
from tests.servers.rest_catalog import BUCKET
from tests.servers.seaweedfs import KEY, SECRET, SeaweedFs

SYNCED = datetime(2026, 11, 21, 10, 15, 30, 123456, tzinfo=UTC)
Row = dict[str, Any]


@dataclass
class Loads:
    """One table of a namespace of the test's own: loads into it, and an independent reader."""

    spark: SparkSession
    destination: DestinationSpec
    folder: Path
    schema: str
    uri: str
    store: dict[str, str]
    files: int = 0
    last: JobSpec | None = field(default=None)

    @property
    def tables(self) -> CatalogTables:
        """The tables of the catalog."""
        return CatalogTables.of(self.destination, AwsSession(self.destination))

    def file(self, rows: Sequence[Row], schema: pa.Schema | None = None) -> str:
        """Write a source file of Parquet and return its path."""
        self.files += 1
        path = self.folder / f"{self.files:03d}.parquet"
        pq.write_table(pa.Table.from_pylist(list(rows), schema), path)
        return str(path)

    def table(self, *paths: str, name: str = "orders", **changes: Any) -> TableSpec:
        """Return the spec of a table of Parquet files."""
        given = changes.pop("input", FilesInput("PARQUET", paths, {}))
        table = TableSpec(
            source=name, schema=self.schema, table=name, input=given, fingerprint="", **changes
        )
        return replace(table, fingerprint=fingerprint(repr(table)))

    def spec(self, *tables: TableSpec, **changes: Any) -> JobSpec:
        """Return the spec of a new job."""
        place = self.folder / uuid.uuid4().hex
        place.mkdir()
        values: dict[str, Any] = {
            "contract": 1,
            "pipeline": "shop",
            "job_id": f"job-{uuid.uuid4().hex[:8]}",
            "attempt_id": str(uuid.uuid4()),
            "synced": SYNCED,
            "destination": self.destination,
            "tables": tables,
            "events_path": str(place / "events.jsonl"),
            "result_path": str(place / "result.json"),
            "schema_changes": "EVOLVE",
            "nested": "JSON",
        }
        self.last = JobSpec(**(values | changes))
        return self.last

    def run(self, spec: JobSpec) -> RunResult:
        """Run a job."""
        with EventLog(spec.events_path) as events:
            return run(self.spark, spec, events)

    def load(self, table: TableSpec, **changes: Any) -> TableResult:
        """Run a new job with one table and return its result, whatever it is."""
        result = self.run(self.spec(table, **changes))
        assert result.error is None, result.error
        return result.tables[0]

    def loaded(self, table: TableSpec, **changes: Any) -> TableResult:
        """Run a new job with one table, which has to succeed."""
        result = self.load(table, **changes)
        assert result.error is None, result.error
        assert result.status == "LOADED"
        return result

    def read(self, name: str = "orders") -> Table:
        """Return the table as pyiceberg sees it now."""
        return load_catalog("reader", type="rest", uri=self.uri, **self.store).load_table(
            (self.schema, name)
        )

    def rows(self, name: str = "orders", *, order: str = "id", **scan: Any) -> list[Row]:
        """Return the rows without tracking columns, in the order of a column."""
        found: list[Row] = self.read(name).scan(**scan).to_arrow().to_pylist()
        data = [{k: v for k, v in row.items() if not k.startswith("_supa_")} for row in found]
        return sorted(data, key=lambda row: (row[order] is None, row[order]))

    def tracking(self, name: str = "orders") -> list[Row]:
        """Return the tracking columns, in the order of `_supa_index`."""
        found: list[Row] = self.read(name).scan().to_arrow().to_pylist()
        own = [{k: v for k, v in row.items() if k.startswith("_supa_")} for row in found]
        return sorted(own, key=lambda row: row["_supa_index"])


@pytest.fixture
def loads(
    spark: SparkSession,
    rest_backend: str,
    seaweedfs: SeaweedFs,
    tmp_path: Path,
) -> Loads:
    """Loads of one test into a namespace of its own."""
    store = {
        "s3.endpoint": seaweedfs.s3_endpoint,
        "s3.access-key-id": KEY,
        "s3.secret-access-key": SECRET,
        "s3.region": "us-east-1",
    }
    destination = DestinationSpec(
        bucket=BUCKET,
        region="us-east-1",
        prefix="team",
        credentials=CredentialsSpec(
            access_key_id=secret_file("STORE_KEY", KEY),
            secret_access_key=secret_file("STORE_SECRET", SECRET),
        ),
        endpoints=EndpointsSpec(s3=seaweedfs.s3_endpoint),
        table_format="ICEBERG",
        iceberg=IcebergSpec(
            catalog=CatalogSpec(type="REST", uri=rest_backend, access_delegation="NONE")
        ),
    )
    open_in_spark(spark, destination)
    return Loads(spark, destination, tmp_path, f"t{uuid.uuid4().hex[:8]}", rest_backend, store)


@pytest.fixture
def make_world(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], CatalogWorld]]:
    """Make worlds by name, and end them with the test."""
    with worlds(request, monkeypatch) as make:
        yield make
