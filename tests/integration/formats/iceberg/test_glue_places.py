"""Glue: tables of others, and places that this destination does not write to."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import boto3

from lakeload.demo.aws import embedded_policy
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.contract.spec import CatalogSpec, EncryptionSpec, EndpointsSpec, IcebergSpec
from lakeload_jobs.formats.iceberg.catalogs.opening import open_catalog
from tests.hints import follow, follows
from tests.integration.formats.iceberg.conftest import Loads
from tests.integration.formats.iceberg.glue_world import glue_world
from tests.servers.fault_proxy import FaultProxy
from tests.servers.ministack import EXTERNAL_ID_VARIABLE, Lake

OTHER_ACCOUNT = "210987654321"
KEY = "arn:aws:kms:us-east-1:123456789012:key/6b1f0000-4d5e-4b6c-8d7e-000000000042"
WRITES = ("PutObject", "CreateMultipartUpload")


def test_iceberg_table_in_another_location_is_reported_and_not_changed(
    loads: Loads, base_identity: Lake
) -> None:
    lake, world = base_identity, glue_world(base_identity)
    loads.destination, loads.schema = world.destination, world.schema
    lake.server.admin.put_role_policy(lake.seeded.role, embedded_policy(world.destination))
    glue: Any = boto3.client(
        "glue",
        endpoint_url=lake.server.endpoint,
        region_name=lake.seeded.region,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    glue.create_database(DatabaseInput={"Name": "lakes_away", "LocationUri": "s3://other/away"})
    glue.create_database(DatabaseInput={"Name": "lakes_hive"})
    glue.create_table(DatabaseName="lakes_hive", TableInput={"Name": "orders"})

    good = loads.loaded(loads.table(loads.file([{"id": 1}]), primary_key=("id",)))
    again = loads.loaded(loads.table(loads.file([{"id": 2}]), primary_key=("id",)))
    settings = dict(loads.spark.conf.getAll)

    assert world.read(world.schema, "orders").scan().to_arrow().num_rows == 2
    assert (good.rows, again.rows) == (1, 1)
    assert lake.environment[EXTERNAL_ID_VARIABLE] not in str(settings)
    rows = loads.file([{"id": 1}])
    loads.schema = "lakes_hive"
    other = loads.load(loads.table(rows))
    assert "not an Iceberg table" in told(other)
    named = _followed(
        "a table that is not of Iceberg", other, "load into another `name`", name="own"
    )
    assert loads.loaded(loads.table(rows, name=named["tables"][0]["name"])).rows == 1
    loads.schema = "lakes_away"
    place = "a namespace that is elsewhere"
    elsewhere = loads.load(loads.table(rows))
    away = told(elsewhere)
    begins = "or load into another `namespace`"
    named = _followed(place, elsewhere, begins, namespace="lakes_own")
    loads.schema = named["tables"][0]["namespace"]
    assert loads.loaded(loads.table(rows)).rows == 1
    assert "s3://other/away" in away
    assert f"{lake.seeded.bucket}/{lake.seeded.prefix}/lakes_away" in away
    loads.schema = world.schema
    loads.destination = replace(loads.destination, prefix=f"{lake.seeded.prefix}/moved")
    moved = loads.load(loads.table(loads.file([{"id": 3}])))
    assert "the destination has changed since the first load" in told(moved)
    prefix = lake.seeded.prefix
    former = _followed(place, moved, "restore `bucket`, `prefix`", prefix=prefix, bucket="lake")
    loads.destination = replace(loads.destination, prefix=former["destination"]["prefix"])
    assert loads.loaded(loads.table(loads.file([{"id": 3}]), primary_key=("id",))).rows == 1


def _followed(case: str, result: TableResult, clause: str, **values: str) -> dict[str, Any]:
    """Return a pipeline that is changed as a clause of a hint says."""
    hint = (result.error and result.error.hint) or ""
    follows(__file__, case, hint)
    assert clause in hint
    document = {"source": {"type": "FILES"}, "tables": [{"table": "orders"}], "destination": {}}
    return follow(document, clause, "tables[0].table", **values)


def test_glue_calls_name_the_account_and_objects_the_kms_key(
    loads: Loads, base_identity: Lake, fault_proxy: FaultProxy
) -> None:
    lake, place = base_identity, fault_proxy.endpoint
    world, loads.schema = glue_world(lake), "lakes_recorded"
    # The emulator's own account answers for any, and is what the role's policy names.
    lake.server.admin.put_role_policy(lake.seeded.role, embedded_policy(world.destination))
    loads.destination = replace(
        world.destination,
        endpoints=EndpointsSpec(s3=place, sts=place, glue=place),
        encryption=EncryptionSpec("SSE_KMS", KEY),
        iceberg=IcebergSpec(catalog=CatalogSpec(glue_id=OTHER_ACCOUNT)),
    )
    writers = [
        loads.loaded(loads.table(loads.file([{"id": 1}]), primary_key=("id",), mode=mode)).writer
        for mode in ("APPEND", "UPSERT")
    ]
    assert writers == ["direct", "spark"]
    outside = open_catalog(loads.destination, AwsSession(loads.destination))
    outside.set_property(loads.schema, "orders", "owner", "team")

    asked = [request for request in fault_proxy.requests if request.service == "glue"]
    calls = {request.operation for request in asked}
    assert calls >= {"GetDatabase", "CreateDatabase", "GetTable", "CreateTable", "UpdateTable"}
    agents = {request.header("User-Agent").partition("/")[0] for request in asked}
    assert agents == {"aws-sdk-java", "Boto3"}
    assert {json.loads(request.body)["CatalogId"] for request in asked} == {OTHER_ACCOUNT}

    written = [r for r in fault_proxy.requests if r.operation in WRITES]
    assert {r.key.rpartition(".")[2] for r in written} >= {"parquet", "avro", "json"}
    encrypted = "x-amz-server-side-encryption"
    assert {r.header(encrypted) for r in written} == {"aws:kms"}
    assert {r.header(f"{encrypted}-aws-kms-key-id") for r in written} == {KEY}


def told(result: TableResult) -> str:
    assert result.error is not None
    return result.error.message
