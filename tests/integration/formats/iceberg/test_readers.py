"""What `lakeload policy --for` writes for pyiceberg and Spark, run against real catalogs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyspark.sql import SparkSession

from lakeload.policy.recipes import Engine, RecipeRequest, recipes
from lakeload.policy.templates import Snippet
from lakeload_jobs.contract.spec import (
    CatalogSpec,
    DestinationSpec,
    EndpointsSpec,
    FilesInput,
    IcebergSpec,
    Mode,
    TableSpec,
)
from lakeload_jobs.rows.tracking import add_tracking
from tests.integration.formats.iceberg.catalogs.world import secret
from tests.servers.ministack import Lake
from tests.servers.seaweedfs import KEY, SECRET, TABLE_BUCKET, SeaweedFs

FIRST = datetime(2026, 11, 21, 13, 5, tzinfo=UTC)
COLUMNS: dict[str, pa.DataType] = {"id": pa.int64(), "name": pa.string(), "gone": pa.bool_()}
ROWS = pa.schema(COLUMNS)
JOBS: dict[str, Sequence[tuple[int, str, bool]]] = {
    "job-a": [(1, "old", False), (2, "old", False), (3, "kept", False)],
    "job-b": [(1, "newer", False), (2, "old", True)],
}
ORDERS = TableSpec(
    "orders", "", "orders", FilesInput("CSV", ("/o.csv",), {}), "", primary_key=("id",)
)


def fill(catalog: Catalog, schema: str, location: str | None = None) -> None:
    """Make the table `orders` with one snapshot for each job, as loads make them."""
    catalog.create_namespace_if_not_exists(schema)
    table = None
    for number, (job, rows) in enumerate(JOBS.items()):
        columns = dict(zip(ROWS.names, map(list, zip(*rows, strict=True)), strict=True))
        batch = add_tracking(
            pa.RecordBatch.from_pydict(columns, schema=ROWS),
            first_index=1,
            synced=FIRST + timedelta(hours=number),
            job_id=job,
            key_columns=["id"],
            deleted="gone",
        )
        data = pa.Table.from_batches([batch])
        if table is None:
            table = catalog.create_table((schema, "orders"), data.schema, location=location)
        summary = {"lakeload.job-id": job, "lakeload.rows": str(len(rows))}
        table.append(data, snapshot_properties=summary)


@pytest.fixture(scope="module")
def in_seaweedfs(seaweedfs: SeaweedFs) -> str:
    """A table in the REST catalog of SeaweedFS; return its namespace."""
    catalog = load_catalog(
        "writer",
        **{
            "type": "rest",
            "uri": seaweedfs.catalog,
            "warehouse": seaweedfs.warehouse,
            "credential": f"{KEY}:{SECRET}",
            "oauth2-server-uri": f"{seaweedfs.catalog}/v1/oauth/tokens",
            "header.X-Iceberg-Access-Delegation": "",
            "s3.endpoint": seaweedfs.s3_endpoint,
            "s3.access-key-id": KEY,
            "s3.secret-access-key": SECRET,
            "s3.region": "us-east-1",
        },
    )
    fill(catalog, "read_by_recipes")
    return "read_by_recipes"


@pytest.fixture
def rest(seaweedfs: SeaweedFs, monkeypatch: pytest.MonkeyPatch) -> DestinationSpec:
    """The destination of that catalog, with a login and the files' own keys in the environment."""
    reference = secret(monkeypatch, "LAKE_LOGIN", f"{KEY}:{SECRET}")
    _identity(monkeypatch, KEY, SECRET)
    catalog = CatalogSpec(
        type="REST",
        uri=seaweedfs.catalog,
        warehouse=seaweedfs.warehouse,
        credential=reference,
        access_delegation="NONE",
    )
    return DestinationSpec(
        TABLE_BUCKET,
        "us-east-1",
        endpoints=EndpointsSpec(s3=seaweedfs.s3_endpoint),
        table_format="ICEBERG",
        iceberg=IcebergSpec(catalog),
    )


@pytest.fixture
def glue(base_identity: Lake, monkeypatch: pytest.MonkeyPatch) -> Iterator[DestinationSpec]:
    """A destination in an emulated AWS, whose administrator reads, and its table."""
    seeded, place = base_identity.seeded, base_identity.server.endpoint
    _identity(monkeypatch, "test", "test")
    settings = {"type": "glue", "glue.endpoint": place, "glue.region": seeded.region}
    files = {"s3.endpoint": place, "s3.region": seeded.region}
    catalog = load_catalog("writer", **settings, **files)
    location = f"s3://{seeded.bucket}/{seeded.prefix}/read_by_recipes/orders"
    fill(catalog, "read_by_recipes", location)
    yield DestinationSpec(
        seeded.bucket,
        seeded.region,
        seeded.prefix,
        endpoints=EndpointsSpec(s3=place, glue=place),
        table_format="ICEBERG",
    )
    catalog.drop_table(("read_by_recipes", "orders"))
    catalog.drop_namespace("read_by_recipes")


def _identity(environment: pytest.MonkeyPatch, key: str, value: str) -> None:
    environment.setenv("AWS_ACCESS_KEY_ID", key)
    environment.setenv("AWS_SECRET_ACCESS_KEY", value)
    environment.delenv("AWS_SESSION_TOKEN", raising=False)


def written(
    destination: DestinationSpec, engine: Engine, schema: str, mode: Mode = "APPEND"
) -> list[Snippet]:
    """Return what is written for the table; its example time is after its last snapshot."""
    table = replace(ORDERS, schema=schema, mode=mode)
    # The example time is a day before, in whole seconds: a moment from now.
    asked = RecipeRequest(datetime.now(UTC) + timedelta(days=1, seconds=2), tables=(table,))
    return list(recipes(destination, engine, asked))


def run_script(destination: DestinationSpec, schema: str) -> dict[str, Any]:
    """Run the script for pyiceberg and return what it leaves, and below `printed` what it says."""
    script = "\n\n".join(one.commented for one in written(destination, "pyiceberg", schema))
    printed: list[Any] = []
    names: dict[str, Any] = {"print": lambda *values: printed.append(values)}
    exec(compile(script.replace("<JOB_ID>", "job-a"), "script", "exec"), names)  # noqa: S102
    return {**names, "printed": printed}


def check_script(left: dict[str, Any]) -> None:
    """The script has shown all rows, a job's rows, the snapshots, and the past twice."""
    everything, of_job, second, first, then, oldest = left["printed"]
    assert everything[0].num_rows == 5
    assert set(of_job[0]["_supa_job_id"].to_pylist()) == {"job-a"}
    assert [shown[2:] for shown in (first, second)] == [("job-a", "3"), ("job-b", "2")]
    assert (then[0].num_rows, oldest[0].num_rows) == (5, 3)


def test_a_script_reads_a_rest_catalog(rest: DestinationSpec, in_seaweedfs: str) -> None:
    check_script(run_script(rest, in_seaweedfs))


def test_a_script_reads_glue(glue: DestinationSpec) -> None:
    check_script(run_script(glue, "read_by_recipes"))


@pytest.fixture
def asked_by_spark(
    spark: SparkSession, rest: DestinationSpec, in_seaweedfs: str
) -> Iterator[dict[str, list[dict[str, Any]]]]:
    """The rows of each query, by its title, in a session with the properties of the file."""
    shown = written(rest, "spark", in_seaweedfs)
    before = {key: value for key, value in spark.conf.getAll.items() if ".catalog.lake" in key}
    for key in before:
        spark.conf.unset(key)
    given = dict(line.split("=", 1) for line in shown[0].text.splitlines())
    settings = {key: _filled(value) for key, value in given.items() if ".catalog.lake" in key}
    # The JVM has the environment of its start, so its keys are handed over as well.
    settings |= {
        "spark.sql.catalog.lake.s3.access-key-id": KEY,
        "spark.sql.catalog.lake.s3.secret-access-key": SECRET,
    }
    manager = spark._jsparkSession.sessionState().catalogManager()
    manager.reset()
    for key, value in settings.items():
        spark.conf.set(key, value)
    relation = f"lake.{in_seaweedfs}.orders"
    (first, *_) = spark.sql(f"SELECT snapshot_id FROM {relation}.snapshots").collect()
    found = {}
    for one in shown[1:]:
        text = one.text.rstrip(";").replace("<JOB_ID>", "job-a")
        text = text.replace("1234567890123456789", str(first[0]))
        found[one.title.partition(": ")[2]] = [row.asDict() for row in spark.sql(text).collect()]
    yield found
    manager.reset()
    for key in settings:
        spark.conf.unset(key)
    for key, value in before.items():
        spark.conf.set(key, value)


def _filled(value: str) -> str:
    """Iceberg reads `env:NAME` from the environment of the JVM's start."""
    return os.environ[value.removeprefix("env:")] if value.startswith("env:") else value


def test_generated_queries_run_in_spark(asked_by_spark: dict[str, list[dict[str, Any]]]) -> None:
    jobs = {
        title: {row.get("_supa_job_id") for row in rows} for title, rows in asked_by_spark.items()
    }
    assert jobs["the rows of the latest sync"] == {"job-b"}
    assert jobs["the rows of one job"] == {"job-a"}
    newest = asked_by_spark["the newest version of each row"]
    assert sorted((row["id"], row["name"]) for row in newest) == [(1, "newer"), (3, "kept")]
    counted = asked_by_spark["how many rows each job brought"]
    assert [(row["_supa_job_id"], row["row_count"]) for row in counted] == [
        ("job-b", 2),
        ("job-a", 3),
    ]
    made = asked_by_spark["its snapshots, and the jobs that made them"]
    assert [(row["job_id"], row["row_count"]) for row in made] == [("job-b", "2"), ("job-a", "3")]
    assert len(asked_by_spark["as it was at a time"]) == 5
    assert len(asked_by_spark["as one snapshot left it"]) == 3


def test_the_file_for_spark_holds_no_secret(rest: DestinationSpec, in_seaweedfs: str) -> None:
    shown = "".join(one.commented for one in written(rest, "spark", in_seaweedfs))
    assert re.search("credential=env:LAKE_LOGIN$", shown, re.MULTILINE)
    assert SECRET not in shown
