"""What a catalog sets for the files of a table, beside what follows from the destination."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import (
    CatalogSpec,
    CredentialsSpec,
    DestinationSpec,
    EndpointsSpec,
    IcebergSpec,
    SigV4Spec,
)
from lakeload_jobs.formats.iceberg.rules.file_io import file_properties, io_settings

STORE = DestinationSpec(
    "lake", "us-east-1", endpoints=EndpointsSpec(s3="http://s3:9000"), table_format="ICEBERG"
)
ROLE = CredentialsSpec(role_arn="arn:aws:iam::1:role/r", external_id=SecretReference("env", "ID"))
KEYS = {"s3.access-key-id": "AKIA", "s3.secret-access-key": "x"}


def told(given: dict[str, str], destination: DestinationSpec = STORE) -> tuple[str, ...]:
    return io_settings(given, (), destination, lambda: "AKIA")


def test_settings_of_the_destination_are_its_own() -> None:
    assert told(dict(file_properties(STORE))) == ()
    assert told({"s3.endpoint": "http://other"}) == ("s3.endpoint",)
    assert told({"s3.sse.type": "kms"}) == ("s3.sse.type",)
    external = {"client.assume-role.external-id": "secret"}
    assert told(external) == ("client.assume-role.external-id",)
    assert told(external, replace(STORE, credentials=ROLE)) == ()


def test_keys_that_the_catalog_was_started_with_are_not_lent() -> None:
    assert told(KEYS) == ()
    assert told({**KEYS, "s3.session-token": "t"}) == (*KEYS, "s3.session-token")
    assert told({**KEYS, "s3.access-key-id": "ASIA"}) == tuple(KEYS)


def test_keys_of_single_locations_are_named() -> None:
    lent = [("s3://lake/shop", KEYS)]
    assert io_settings({}, lent, STORE, lambda: "AKIA") == tuple(KEYS)


@pytest.mark.parametrize(
    ("catalog", "has_role", "has_factory"),
    [
        (CatalogSpec(), True, True),
        (CatalogSpec("REST", uri="http://c", access_delegation="NONE"), True, True),
        (CatalogSpec("REST", uri="http://c"), False, False),
        (CatalogSpec("REST", uri="http://c", sigv4=SigV4Spec()), True, False),
    ],
)
def test_role_writes_files_where_nothing_is_vended(
    catalog: CatalogSpec, has_role: bool, has_factory: bool
) -> None:
    found = file_properties(replace(STORE, credentials=ROLE, iceberg=IcebergSpec(catalog)))
    assert ("client.assume-role.arn" in found, "client.factory" in found) == (has_role, has_factory)
