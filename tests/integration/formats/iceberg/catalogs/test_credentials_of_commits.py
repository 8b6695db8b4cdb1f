"""Credentials that end between the two commits of a load, and those that only a catalog has."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from lakeload.demo.aws import destination_policy
from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.contract.spec import CredentialsSpec, EncryptionSpec
from lakeload_jobs.formats.iceberg.catalogs.vended_files import VendedFiles, files_for
from tests.integration.formats.iceberg.catalog_world import CatalogWorld
from tests.integration.formats.iceberg.glue_world import exact_lake, glue_world
from tests.integration.formats.iceberg.proof.client import Seen
from tests.integration.formats.iceberg.proof.own_client import OwnClient
from tests.servers.fault_proxy import MakeProxy
from tests.servers.ministack import AwsServer
from tests.servers.short_tokens import ShortTokens

KEY = "arn:aws:kms:us-east-1:123456789012:key/6b1f0000-4d5e-4b6c-8d7e-000000000042"


def client_of(world: CatalogWorld) -> OwnClient:
    """Return a writer of a namespace of its own."""
    client = OwnClient.of(world.destination, f"{world.schema}_{secrets.token_hex(4)}")
    client.store.create_namespace(client.namespace, None)
    return client


def test_metadata_is_written_with_nothing_but_vended_credentials(
    make_world: Callable[[str], CatalogWorld], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world("open-catalog")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    world = replace(world, destination=replace(world.destination, credentials=CredentialsSpec()))
    client = client_of(world)
    client.create("orders")
    with pytest.raises(AwsError, match="no AWS credentials"):
        client.stage("orders", "first")
    session = AwsSession(world.destination)
    client.lake = files_for(client.load("orders"), world.destination, session, client.store)
    assert isinstance(client.lake, VendedFiles)
    for job in ("first", "second"):
        client.stage("orders", job)
        assert client.publish("orders", job) == (Seen.LANDED, "")
    assert client.files("orders") == ["first", "second"]
    read = world.read(client.namespace, "orders").current_snapshot()
    assert read is not None
    assert read.summary is not None
    assert read.summary["total-records"] == "2"


def test_a_token_that_expires_between_two_commits_is_renewed(
    make_world: Callable[[str], CatalogWorld],
) -> None:
    world = make_world("rest")
    gate, tokens = world.gates
    client = client_of(world)
    client.create("orders", "base")
    client.stage("orders", "job")
    publish = client.open("orders", "job")
    gate.expire_tokens()
    tokens.requests.clear()
    gate.requests.clear()
    publish.commitTransaction()
    assert client.files("orders") == ["base", "job"]
    assert len(tokens.requests) == 1
    sent = [one for one in gate.requests if one.method == "POST"]
    assert len(sent) == 2
    # Nobody else is told what was wrong with the first.
    assert {one.path for one in sent} == {sent[0].path}


@pytest.mark.parametrize("between", ["the commits", "the metadata file and the request"])
def test_a_role_s_session_that_ends_between_two_commits_is_renewed(
    between: str, exact_aws: AwsServer, monkeypatch: pytest.MonkeyPatch, make_proxy: MakeProxy
) -> None:
    lake = exact_lake(exact_aws, monkeypatch)
    world = glue_world(lake)
    proxy = make_proxy(exact_aws.endpoint)
    endpoints = replace(
        world.destination.endpoints, s3=proxy.endpoint, glue=proxy.endpoint, sts=proxy.endpoint
    )
    # STS tells of a life so short that the client renews before each use.
    slow = {"PutObject": 1.2} if between != "the commits" else {}
    tokens = ShortTokens(proxy, seconds=1, told=30, slow=slow)
    encrypted = replace(
        world.destination, endpoints=endpoints, encryption=EncryptionSpec("SSE_KMS", KEY)
    )
    lake.server.admin.put_role_policy(lake.seeded.role, destination_policy(encrypted))
    client = client_of(replace(world, destination=encrypted))
    client.create("orders", "base")
    client.stage("orders", "job")
    issued = tokens.issued
    if between == "the commits":
        time.sleep(1.2)
    assert client.publish("orders", "job") == (Seen.LANDED, "")
    assert client.files("orders") == ["base", "job"]
    assert tokens.issued > issued
    assert tokens.refused == 0
    written = [one for one in proxy.requests if one.operation == "PutObject"]
    header = "x-amz-server-side-encryption"
    assert {one.header(header) for one in written} == {"aws:kms"}
    assert {one.header(f"{header}-aws-kms-key-id") for one in written} == {KEY}
