"""A role with the policies of `lakeload policy --with reset` resets, and without them does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from lakeload.policy.iam import PolicyOptions, role_policies
from lakeload.policy.policy_set import merged
from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.aws.glue_calls import GlueCalls
from lakeload_jobs.contract.spec import DestinationSpec, ParquetSpec
from lakeload_jobs.formats.parquet.log.reset import remove_log
from lakeload_jobs.storage.objects import Objects
from tests.integration.commands.test_reset import ORDERS, reset, resetter
from tests.integration.formats.parquet.log.writer import Writer
from tests.servers.glue import glue_of
from tests.servers.ministack import Lake


def allow(lake: Lake, destination: DestinationSpec, *, resets: bool) -> None:
    """Give the role the documents, as one."""
    found = merged("all", *role_policies(destination, PolicyOptions(reset=resets)))
    assert found is not None
    policy = json.loads(json.dumps(found.as_json()))
    lake.server.admin.put_role_policy(lake.seeded.role, policy)


def test_reset_policy_allows_removing_data_and_log(
    load: Callable[..., Writer], objects: Objects, destination: DestinationSpec, lake: Lake
) -> None:
    load("job-1")
    allow(lake, destination, resets=True)

    assert reset(objects).objects == 2
    resetter(objects).seal("by a test")
    remove_log(objects, ORDERS, "shop", 4)
    left = lake.keys()
    assert [key for key in left if "/orders/" in key] == []


def test_reset_policy_is_required_to_drop_a_glue_table(
    destination: DestinationSpec, lake: Lake
) -> None:
    destination = replace(
        destination,
        glue_database_prefix="supaflow",
        parquet=ParquetSpec(update_glue_catalog=True),
        endpoints=replace(destination.endpoints, glue=lake.server.endpoint),
    )
    admin = glue_of(lake)
    database = f"supaflow_{lake.seeded.bucket.replace('-', '_')}"
    admin.create_database(DatabaseInput={"Name": database})
    admin.create_table(DatabaseName=database, TableInput={"Name": "orders"})
    calls = GlueCalls(AwsSession(destination), destination.region, lake.seeded.role_arn)

    allow(lake, destination, resets=False)
    with pytest.raises(AwsError) as refused:
        calls.delete_table(database, "orders")
    assert refused.value.denied
    allow(lake, destination, resets=True)
    calls.delete_table(database, "orders")
    assert admin.get_tables(DatabaseName=database)["TableList"] == []
    admin.delete_database(Name=database)
