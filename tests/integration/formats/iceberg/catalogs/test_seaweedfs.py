"""SeaweedFS: an independent REST catalog, with OAuth2 answers and locations of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from lakeload_jobs.contract.spec import CatalogSpec, SigV4Spec
from tests.integration.formats.iceberg.catalogs.world import (
    World,
    first_failure,
    problems,
    secret,
    told,
)
from tests.servers.seaweedfs import (
    KEY,
    READER_KEY,
    READER_SECRET,
    SECRET,
    TABLE_BUCKET,
    SeaweedFs,
)


@pytest.fixture
def world(seaweedfs: SeaweedFs, monkeypatch: pytest.MonkeyPatch) -> World:
    """Its catalog with an OAuth2 client and the destination's own credentials for data."""
    spec = CatalogSpec(
        type="REST",
        uri=seaweedfs.catalog,
        warehouse=seaweedfs.warehouse,
        credential=secret(monkeypatch, "CREDENTIAL", f"{KEY}:{SECRET}"),
        scope="PRINCIPAL_ROLE:ALL",
        access_delegation="NONE",
    )
    return World(seaweedfs, monkeypatch, TABLE_BUCKET, spec)


def test_every_probe_passes_and_nothing_is_left(world: World) -> None:
    verdict = world.ask()
    assert problems(verdict) == {}, told(first_failure(verdict)[1])
    assert verdict.left_behind == ()
    assert not [key for key in world.store.keys(TABLE_BUCKET) if "probe" in key]


def test_rest_catalog_with_a_signature_or_a_client_passes(world: World) -> None:
    world.change(credential=None, scope=None, sigv4=SigV4Spec(signing_name="s3tables"))
    verdict = world.ask()
    assert problems(verdict) == {}, told(first_failure(verdict)[1])


def test_tables_in_another_bucket_pass_the_check_and_load(world: World) -> None:
    world.move("lake")
    verdict = world.ask()
    assert problems(verdict) == {}, told(first_failure(verdict)[1])
    [written] = [result for result in verdict.results if result.probe.name == "catalog-data"]
    assert f"in the bucket `{TABLE_BUCKET}`" in written.detail
    assert verdict.left_behind == ()


@dataclass(frozen=True)
class Case:
    """One misconfiguration: how to make it, and what must be said about it."""

    name: str
    bend: Callable[[World], object]
    probe: str
    code: str
    status: int | None
    says: str


def _unknown_keys(world: World) -> None:
    world.secret("STORE_SECRET", "an-older-secret")
    world.change(credential=None, sigv4=SigV4Spec(signing_name="s3tables"))


def _reader(world: World) -> None:
    world.change(credential=world.secret("CREDENTIAL", f"{READER_KEY}:{READER_SECRET}"))


CASES = [
    Case(
        "secret that was rotated",
        lambda world: world.secret("CREDENTIAL", f"{KEY}:an-older-secret"),
        *("catalog-token", "invalid_client", 401, "the client secret was rotated"),
    ),
    Case(
        "warehouse that does not exist",
        lambda world: world.change(warehouse="s3://nosuch"),
        *("catalog-namespaces", "NoSuchNamespaceException", 404, "`warehouse` is misspelt"),
    ),
    Case(
        "identity that may not see the warehouse",
        _reader,
        *("catalog-namespaces", "NoSuchNamespaceException", 404, "may not see the warehouse"),
    ),
    Case(
        "no identity",
        lambda world: world.change(credential=None, scope=None),
        *("catalog-namespaces", "ForbiddenException", 403, "does not allow this identity"),
    ),
    Case(
        "token of another catalog",
        lambda world: world.change(credential=None, scope=None, token=world.secret("T", "other")),
        *("catalog-namespaces", "NotAuthorizedException", 401, "is another catalog's"),
    ),
    Case(
        "path that is too long",
        lambda world: world.change(uri=f"{world.catalog.uri}/api/catalog", credential=None),
        *("catalog-warehouse", "NotFound", 404, "the path in `uri` is incomplete"),
    ),
    Case(
        "signature of keys that the catalog does not know",
        _unknown_keys,
        *("catalog-namespaces", "ForbiddenException", 403, "see `sigv4`"),
    ),
    Case(
        "catalog that lends no credentials",
        lambda world: world.change(access_delegation="VENDED_CREDENTIALS"),
        *("catalog-data", "NoVendedCredentials", None, "`access_delegation: NONE`"),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_misconfiguration_fails_the_check_that_names_it(case: Case, world: World) -> None:
    case.bend(world)
    probe, failure = first_failure(world.ask())
    assert (probe.name, failure.code, failure.status) == (case.probe, case.code, case.status), told(
        failure
    )
    assert case.says in told(failure)
