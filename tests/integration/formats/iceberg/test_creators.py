"""Many first loads of one table at once, in the catalog that tells some of a crowd nonsense."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from lakeload.documents.spec import fingerprint
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import DestinationSpec, FilesInput, JobSpec, TableSpec
from lakeload_jobs.formats.base import Reporter
from lakeload_jobs.formats.iceberg.format import IcebergFormat
from lakeload_jobs.formats.load_table import TableLoad, load_table
from lakeload_jobs.sources.registry import Sources
from tests.integration.formats.iceberg.catalog_world import CatalogWorld
from tests.integration.formats.iceberg.table_oracle import row, write_rows

CREATORS = 5


def test_concurrent_first_loads_are_all_committed(
    make_world: Callable[[str], CatalogWorld], spark: SparkSession, tmp_path: Path
) -> None:
    world = make_world("nessie")
    session = AwsSession(world.destination)

    def load(number: int) -> str:
        spec = _spec(world.destination, world.schema, tmp_path, number)
        tables = IcebergFormat().connect(spark, spec, session)
        (table,) = spec.tables
        source = Sources(spec, session).of(table)
        return load_table(TableLoad(tables, spec, table, source, Reporter())).status

    with ThreadPoolExecutor(CREATORS) as pool:
        statuses = list(pool.map(load, range(1, CREATORS + 1)))

    found = world.read(world.schema, "crowd")
    ids = sorted(one["id"] for one in found.scan().to_arrow().to_pylist())
    assert statuses == ["LOADED"] * CREATORS
    assert ids == list(range(1, CREATORS + 1))
    assert found.properties["lakeload.seq"] == str(CREATORS)
    assert set(found.metadata.refs) == {"main"}


def _spec(destination: DestinationSpec, schema: str, folder: Path, number: int) -> JobSpec:
    path = write_rows(folder / f"{number}.parquet", [row(number)])
    table = TableSpec(
        source="crowd",
        schema=schema,
        table="crowd",
        input=FilesInput("PARQUET", (str(path),), {}),
        fingerprint=fingerprint(str(number)),
    )
    return JobSpec(
        contract=1,
        pipeline="shop",
        job_id=f"job-{number}",
        attempt_id=str(uuid.uuid4()),
        synced=datetime(2026, 11, 21, 10, number, tzinfo=UTC),
        destination=destination,
        tables=(table,),
        events_path="",
        result_path=str(folder / "result.json"),
        schema_changes="EVOLVE",
        nested="JSON",
    )
