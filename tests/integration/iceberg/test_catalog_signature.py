"""AWS's signature on what Spark asks a REST catalog: whose it is, for which service and region."""

from __future__ import annotations

import re
from dataclasses import replace

from pyspark.sql import SparkSession

from lakeload_jobs.contract.spec import CatalogSpec, IcebergSpec, SigV4Spec
from lakeload_jobs.iceberg.catalog_settings import connect
from lakeload_jobs.lake.aws import AwsSession
from tests.integration.iceberg.glue_world import glue_destination
from tests.servers.ministack import Lake
from tests.servers.scripted_catalog import running

_SIGNED = re.compile(r"Credential=([^/]+)/\d{8}/([^/]+)/([^/]+)/aws4_request")


def test_the_signature_is_the_roles_and_names_the_configured_service_and_region(
    base_identity: Lake, spark: SparkSession
) -> None:
    with running() as server:
        catalog = CatalogSpec(
            type="REST",
            uri=server.uri,
            warehouse="123456789012",
            sigv4=SigV4Spec(signing_name="s3tables", region="eu-central-1"),
            access_delegation="NONE",
        )
        plain = glue_destination(base_identity)
        destination = replace(plain, iceberg=IcebergSpec(catalog=catalog))
        session = AwsSession(destination)
        connect(spark, destination, session)
        path, headers = server.seen[-1]
    assert path == "/catalog/v1/config?warehouse=123456789012"
    signed = _SIGNED.search(headers["Authorization"])
    assert signed is not None
    assert signed.groups() == (session.keys().access_key_id, "eu-central-1", "s3tables")
    assert signed[1] != base_identity.seeded.base_key.access_key_id
