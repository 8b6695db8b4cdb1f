"""What commits of our own write is what Iceberg's Java code writes, and what others read."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import CredentialsSpec
from lakeload_jobs.formats.iceberg.catalogs.files import LakeFiles
from lakeload_jobs.formats.iceberg.catalogs.tables import open_tables
from lakeload_jobs.formats.iceberg.commits.metadata import Json
from lakeload_jobs.formats.iceberg.load.catalog_settings import SparkCatalog
from tests.integration.formats.iceberg.catalogs.world import secret_file
from tests.integration.formats.iceberg.glue_world import ADMINISTRATOR, exact_lake, glue_world
from tests.integration.formats.iceberg.twin_tables import (
    BY_DAY_REGION_BUCKET,
    METRICS,
    Lake,
    definition,
    differences,
    extreme_rows,
    partitioned_rows,
)
from tests.servers.ministack import AwsServer

pytestmark = pytest.mark.timeout(300)

VERSIONS = pytest.mark.parametrize("version", [2, 3])


@pytest.fixture
def lake(
    spark: SparkSession, exact_aws: AwsServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Lake]:
    """Glue and its bucket, as the administrator."""
    world = glue_world(exact_lake(exact_aws, monkeypatch))
    key, secret_key = ADMINISTRATOR
    credentials = CredentialsSpec(
        access_key_id=secret_file("KEY", key), secret_access_key=secret_file("SECRET", secret_key)
    )
    world = replace(world, destination=replace(world.destination, credentials=credentials))
    session = AwsSession(world.destination)
    with contextlib.suppress(session.glue.exceptions.AlreadyExistsException):
        session.glue.create_database(DatabaseInput={"Name": world.schema})
    catalog = SparkCatalog(world.destination, session, has_jars=True)
    catalog.open_in(spark, world.schema, "it is compared with")
    yield Lake(
        spark,
        world,
        open_tables(world.destination, session),
        LakeFiles(session, world.destination),
    )
    catalog.close(jvm_stays=True)


def maps() -> pa.Table:
    pairs = [[("a", 1.5)], [], None, [("b", math.nan)]]
    column = pa.array(pairs, pa.map_(pa.string(), pa.float64()))
    return extreme_rows().append_column("pairs", column)


def wide() -> pa.Table:
    """More columns than Iceberg keeps metrics of, the nested ones first."""
    plain: dict[str, Any] = {
        "point": pa.array([{"x": 1.5, "y": "a"}, {"x": None, "y": "b"}]),
        "tags": pa.array([["a"], ["b", "c"]]),
    }
    return pa.table(plain | {f"c{number}": pa.array([number, None]) for number in range(105)})


TABLES: dict[str, tuple[pa.Table, tuple[str, ...], dict[str, str]]] = {
    "values": (extreme_rows(), (), {}),
    "maps": (maps(), (), {}),
    "metrics": (extreme_rows(), (), METRICS),
    "no metrics": (extreme_rows(), (), {"write.metadata.metrics.default": "none"}),
    "full metrics": (extreme_rows(), (), {"write.metadata.metrics.default": "full"}),
    "wide": (wide(), (), {}),
    "partitions": (partitioned_rows(0, 400), BY_DAY_REGION_BUCKET, {}),
    "merged": (
        partitioned_rows(0, 50),
        BY_DAY_REGION_BUCKET,
        {"commit.manifest.min-count-to-merge": "2"},
    ),
    "extreme partitions": (
        extreme_rows(),
        ("money", "wide", "flag", "day(at)", "truncate(3, text)", "month(local)", "year(day)"),
        {},
    ),
}

ONLY_JAVA = {
    *("iceberg-version", "engine-name", "engine-version", "app-id", "app-name"),
    *("manifests-created", "manifests-kept", "manifests-replaced", "entries-processed"),
}
"""What Java says in a summary of itself and of its work, and commits of our own do not."""


def comparable(described: Json) -> Json:
    """Return what a table says, without the differences that are meant."""
    # Java's catalogs write down the codec that tables created before have not.
    described["properties"].pop("write.parquet.compression-codec", None)
    for snapshot in described["snapshots"]:
        for name in ONLY_JAVA & snapshot["summary"].keys():
            del snapshot["summary"][name]
        for manifest in snapshot["manifests"]:
            # The schema as Iceberg's JSON is there as well; nobody reads this one.
            manifest["header"].pop("iceberg.schema", None)
        snapshot["list"]["header"] = [
            one for one in snapshot["list"]["header"] if one != "iceberg.schema"
        ]
    return described


@VERSIONS
@pytest.mark.parametrize("name", TABLES)
def test_two_jobs_and_an_overwrite_are_what_java_makes_of_the_same_files(
    lake: Lake, name: str, version: int
) -> None:
    rows, partition_by, properties = TABLES[name]
    table = definition(rows.schema, partition_by, properties, version)
    own, java = lake.create(table), lake.create_by_java(table)
    for job, replaces in (("one", False), ("two", False), ("all", True), ("last", False)):
        files = lake.encode(own, rows)
        summary = {"lakeload.job-id": job}
        lake.commit(own, files, summary, replaces=replaces)
        lake.commit_by_java(java, files, summary, replaces=replaces)

    found = differences(comparable(lake.described(own)), comparable(lake.described(java)))
    assert not (told := list(found)), "\n".join(told)
    read = [
        sorted(map(repr, lake.spark.table(lake.sql_name(one)).collect())) for one in (own, java)
    ]
    assert read[0] == read[1]
    assert len(read[0]) == 2 * rows.num_rows
    if version == 2:
        by_python = lake.read(own).scan().to_arrow()
        assert by_python.num_rows == 2 * rows.num_rows
    else:
        (ids,) = lake.sql(
            "SELECT count(DISTINCT _row_id), min(_row_id), max(_row_id) FROM {t}", own
        )
        assert ids[0] == 2 * rows.num_rows
        if name != "merged":
            # A merged manifest takes ids for all of its rows, of which some have theirs already.
            assert tuple(ids[1:]) == (2 * rows.num_rows, 4 * rows.num_rows - 1)
