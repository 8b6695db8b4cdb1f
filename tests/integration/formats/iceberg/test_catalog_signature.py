"""AWS's signature on what Spark asks a REST catalog: whose it is, for which service and region."""

from __future__ import annotations

import re
from dataclasses import replace

from pyspark.sql import SparkSession

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import CatalogSpec, DestinationSpec, IcebergSpec, SigV4Spec
from lakeload_jobs.formats.iceberg.load.catalog_settings import SETTING, catalog_settings
from lakeload_jobs.formats.iceberg.load.tables import jvm
from tests.integration.formats.iceberg.glue_world import glue_destination
from tests.integration.formats.iceberg.spark_catalog import open_in_spark
from tests.servers.fault_proxy import FaultProxy
from tests.servers.ministack import Lake
from tests.servers.scripted_catalog import running
from tests.servers.short_tokens import ShortTokens

_SIGNED = re.compile(r"Credential=([^/]+)/\d{8}/([^/]+)/([^/]+)/aws4_request")


def test_catalog_signature_uses_renewed_keys_of_the_role(
    base_identity: Lake, fault_proxy: FaultProxy, spark: SparkSession
) -> None:
    # A life so short is over at the next use: a load would be longer than any of its sessions.
    tokens = ShortTokens(fault_proxy, seconds=60, told=30)
    with running() as server:
        destination = _signed(base_identity, server.uri, fault_proxy.endpoint)
        session = AwsSession(destination)
        open_in_spark(spark, destination)
        path, headers = server.seen[-1]
        issued = tokens.issued
        # What an open table signs with, for as long as it is open.
        held = jvm(spark).org.apache.iceberg.aws.AwsProperties(_settings(destination, session))
        provider = held.restCredentialsProvider()
        used = [provider.resolveCredentials().accessKeyId() for _ in range(2)]
    assert path == "/catalog/v1/config?warehouse=123456789012"
    signed = _SIGNED.search(headers["Authorization"])
    assert signed is not None
    assert signed.groups()[1:] == ("eu-central-1", "s3tables")
    assert len({base_identity.seeded.base_key.access_key_id, signed[1], *used}) == 4
    assert tokens.issued == issued + 2


def _signed(lake: Lake, uri: str, sts: str) -> DestinationSpec:
    catalog = CatalogSpec(
        type="REST",
        uri=uri,
        warehouse="123456789012",
        sigv4=SigV4Spec(signing_name="s3tables", region="eu-central-1"),
        access_delegation="NONE",
    )
    plain = glue_destination(lake)
    endpoints = replace(plain.endpoints, sts=sts)
    return replace(plain, endpoints=endpoints, iceberg=IcebergSpec(catalog=catalog))


def _settings(destination: DestinationSpec, session: AwsSession) -> dict[str, str]:
    """Return the properties of the open catalog, the ExternalId with them."""
    named = catalog_settings(destination)
    found = {name.removeprefix(f"{SETTING}."): value for name, value in named.items()}
    external_id = destination.credentials.external_id
    assert external_id is not None
    return found | {"client.assume-role.external-id": session.resolve(external_id).reveal()}
