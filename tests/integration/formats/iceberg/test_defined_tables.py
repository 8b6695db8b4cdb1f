"""Tables of our own definition on each catalog, and changes to them: what a server makes of a
commit is what the commit was for."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import types as T

from lakeload.launch.run_folder import RunFolder
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import PartitionField
from lakeload_jobs.formats.iceberg.catalogs.tables import open_tables
from lakeload_jobs.formats.iceberg.commits.definitions import (
    order_of,
    same_definition,
    same_schema,
)
from lakeload_jobs.formats.iceberg.commits.errors import CommitRejected, CommitUnknown
from lakeload_jobs.formats.iceberg.commits.metadata import schema_of, spec_of, updated
from lakeload_jobs.formats.iceberg.load.definition import (
    create,
    definition,
    ensure_namespace,
    new_location,
)
from lakeload_jobs.formats.iceberg.load.evolution import requirements
from tests.integration.formats.iceberg.catalog_world import CatalogWorld
from tests.unit.formats.iceberg.commits.evolutions import Step, evolve, list_of
from tests.unit.launch.specs import job_spec

pytestmark = pytest.mark.timeout(300)

COLUMNS = T.StructType(
    [
        T.StructField("id", T.LongType()),
        T.StructField("at", T.TimestampType(), metadata={"comment": "when"}),
        T.StructField("region", T.StringType()),
        T.StructField("count", T.IntegerType()),
        T.StructField("places", T.ArrayType(T.StructType([T.StructField("x", T.FloatType())]))),
    ]
)
DAY, REGION = PartitionField("day", "at"), PartitionField("identity", "region")
BUCKET = PartitionField("bucket", "id", 16)
CHANGES: tuple[tuple[Step, ...], ...] = (
    (("add", ("note",), list_of("string"), "said"), ("add", ("places", "element", "y"), "int")),
    (("widen", ("count",), "long"), ("widen", ("places", "element", "x"), "double")),
    (("partition", 1, (BUCKET,)),),
    (("partition", 0, (REGION, DAY)), ("describe", ("id",), "one")),
    (("require", ("region",)), ("identify", ("region",)), ("sort_by", ("region",))),
    (
        ("identify", ("id",)),
        ("delete", "region"),
        ("add", ("region",), "int"),
        ("partition", 0, (REGION, DAY)),
        ("sort_by", ("id", "region")),
    ),
    (("partition", 0, (BUCKET,)), ("sort_by", ("id",))),
    (("partition", 0, ()), ("delete", "note")),
)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", ["glue", "rest", "seaweedfs", "nessie"])
def test_a_table_is_what_its_definition_and_its_changes_say(
    name: str, version: int, make_world: Callable[[str], CatalogWorld], tmp_path: Path
) -> None:
    world = make_world(name)
    to = world.destination
    to = replace(to, iceberg=replace(to.iceberg, format_version=2 if version == 2 else 3))
    job = replace(job_spec(RunFolder(tmp_path)), destination=to)
    schema = f"{world.schema}_{secrets.token_hex(4)}"
    table = replace(job.tables[0], schema=schema, mode="UPSERT")
    store = open_tables(to, AwsSession(to))
    where = ensure_namespace(store, to, schema)
    assert ensure_namespace(store, to, schema) == where
    wanted = definition(job, table, COLUMNS, ["id"], [DAY], "all orders")
    place = new_location(to, schema, table.table, where)
    found = create(store, table, wanted, place)
    assert found is not None
    assert same_schema(schema_of(found.metadata), wanted.schema)
    assert spec_of(found.metadata) == wanted.spec
    assert order_of(found.metadata) == wanted.order
    assert wanted.new_table().properties.items() <= found.metadata["properties"].items()
    assert found.metadata["format-version"] == version
    assert place in (None, found.metadata["location"])
    if name != "seaweedfs":
        assert create(store, table, wanted, place) is None

    for steps in CHANGES:
        before = store.load(schema, table.table)
        assert before is not None
        updates = evolve(before.metadata, steps)
        needs = requirements(before.metadata, updates)
        expected = updated(before.metadata, updates, replaces=None, now_ms=0)
        after = store.commit(before, needs, updates)
        assert same_definition(after.metadata, expected), steps
        read = store.load(schema, table.table)
        assert read is not None
        for one in ("last-column-id", "last-partition-id"):
            assert read.metadata[one] == expected[one], steps
        with pytest.raises((CommitRejected, CommitUnknown)):
            store.commit(before, needs, updates)
        read = store.load(schema, table.table)
        assert read is not None
        assert same_definition(read.metadata, expected), steps
        fields = world.read(schema, table.table).schema().fields
        assert [one.field_id for one in fields] == [
            one["id"] for one in schema_of(expected)["fields"]
        ]
