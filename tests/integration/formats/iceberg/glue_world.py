"""Glue as a catalog, on the emulator that checks what AWS checks."""

from __future__ import annotations

import secrets

import pytest

from lakeload.demo.aws import destination_policy, seed_lake
from lakeload_jobs.contract.spec import CredentialsSpec, DestinationSpec, EndpointsSpec
from tests.integration.formats.iceberg.catalog_world import CatalogWorld, client, store_settings
from tests.integration.formats.iceberg.catalogs.world import PREFIX, secret_file
from tests.servers.ministack import EXTERNAL_ID_VARIABLE, AwsServer, Lake

ADMINISTRATOR = ("test", "test")
"""The emulator knows its administrator by this key pair."""


def exact_lake(server: AwsServer, environment: pytest.MonkeyPatch) -> Lake:
    """Return a lake on the AWS that checks what AWS checks; its base identity is this process's."""
    bucket = f"lake-{secrets.token_hex(6)}"
    lake = Lake(server, seed_lake(server.admin, bucket=bucket, prefix=PREFIX))
    for name, value in lake.environment.items():
        environment.setenv(name, value)
    return lake


def glue_destination(lake: Lake) -> DestinationSpec:
    """Return Glue on the emulator, reached with a role and its ExternalId."""
    seeded, place = lake.seeded, lake.server.endpoint
    given = lake.environment
    return DestinationSpec(
        bucket=seeded.bucket,
        region=seeded.region,
        prefix=seeded.prefix,
        credentials=CredentialsSpec(
            role_arn=seeded.role_arn,
            external_id=secret_file("EXTERNAL_ID", given[EXTERNAL_ID_VARIABLE]),
            access_key_id=secret_file("KEY", given["AWS_ACCESS_KEY_ID"]),
            secret_access_key=secret_file("SECRET", given["AWS_SECRET_ACCESS_KEY"]),
        ),
        endpoints=EndpointsSpec(s3=place, sts=place, glue=place),
        glue_database_prefix="lakes",
        table_format="ICEBERG",
    )


def glue_world(lake: Lake) -> CatalogWorld:
    """Glue, with AssumeRole, ExternalId and the generated policy."""
    destination = glue_destination(lake)
    lake.server.admin.put_role_policy(lake.seeded.role, destination_policy(destination))
    place = lake.server.endpoint
    key, secret_key = ADMINISTRATOR
    reader = client(
        store_settings(place, key, secret_key),
        type="glue",
        glue__endpoint=place,
        glue__region=lake.seeded.region,
        glue__access_key_id=key,
        glue__secret_access_key=secret_key,
    )
    return CatalogWorld("glue", destination, reader)
