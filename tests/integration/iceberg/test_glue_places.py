"""Glue: tables of others, and places that this destination does not write to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import boto3

from lakeload.demo.aws_policies import embedded_policy
from lakeload_jobs.contract.result import TableResult
from tests.integration.iceberg.conftest import Loads
from tests.integration.iceberg.glue_world import glue_world
from tests.servers.ministack import EXTERNAL_ID_VARIABLE, Lake


def test_what_lies_elsewhere_is_named_and_not_touched(loads: Loads, base_identity: Lake) -> None:
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
    loads.schema = "lakes_hive"
    assert "no Iceberg table" in told(loads.load(loads.table(loads.file([{"id": 1}]))))
    loads.schema = "lakes_away"
    away = told(loads.load(loads.table(loads.file([{"id": 1}]))))
    assert "s3://other/away" in away
    assert f"{lake.seeded.bucket}/{lake.seeded.prefix}/lakes_away" in away
    loads.schema = world.schema
    loads.destination = replace(loads.destination, prefix=f"{lake.seeded.prefix}/moved")
    moved = told(loads.load(loads.table(loads.file([{"id": 3}]))))
    assert "it was moved after the first load" in moved


def told(result: TableResult) -> str:
    assert result.error is not None
    return result.error.message
