"""Open Catalog and plain REST catalogs, on Iceberg's own server behind Polaris's answers."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

from lakeload.checks import CheckStatus
from lakeload_jobs.contract.spec import CatalogSpec
from tests.e2e.command import argv, forked
from tests.integration.formats.iceberg.catalogs.polaris_cases import CASES, READER, Case
from tests.integration.formats.iceberg.catalogs.world import (
    World,
    first_failure,
    problems,
    secret,
    told,
)
from tests.servers.oauth2_gate import CATALOG, Gate, Principal
from tests.servers.rest_catalog import BUCKET
from tests.servers.seaweedfs import SeaweedFs

MAKING = ("catalog-create-namespace", "catalog-create-table")
USING = ("catalog-load-table", "catalog-commit", "catalog-compare", "catalog-data")
DROPPING = ("catalog-drop-table", "catalog-drop-namespace")


@pytest.fixture
def world(seaweedfs: SeaweedFs, polaris: Gate, monkeypatch: pytest.MonkeyPatch) -> World:
    """Open Catalog, with everything right."""
    polaris.principals["reader-id"] = Principal(
        "reader", "reader-secret", {"reader_role": frozenset(READER)}
    )
    spec = CatalogSpec(
        type="SNOWFLAKE_OPEN_CATALOG",
        uri=polaris.uri,
        warehouse=CATALOG,
        client_id=secret(monkeypatch, "CLIENT_ID", "loader-id"),
        client_secret=secret(monkeypatch, "CLIENT_SECRET", "loader-secret"),
        scope="PRINCIPAL_ROLE:ALL",
        catalog_region="us-east-1",
    )
    return World(seaweedfs, monkeypatch, BUCKET, spec)


def assert_nothing_left(world: World, gate: Gate) -> None:
    """No namespace of this test is in the catalog, and no file of one in the bucket."""
    paths = {r.path.partition("?")[0] for r in gate.requests if r.method == "DELETE"}
    names = {path.rpartition("/namespaces/")[2] for path in paths if "/tables/" not in path}
    assert names
    assert [name for name in names if _is_there(gate, name)] == []
    assert not [key for key in world.store.keys(BUCKET) if any(name in key for name in names)]


def _is_there(gate: Gate, namespace: str) -> bool:
    try:
        with urllib.request.urlopen(f"{gate.backend}/v1/namespaces/{namespace}", timeout=10):  # noqa: S310
            return True
    except urllib.error.HTTPError as error:
        return error.code != 404


def test_every_probe_passes_and_nothing_is_left(world: World, polaris: Gate) -> None:
    verdict = world.ask()
    assert problems(verdict) == {}, told(first_failure(verdict)[1])
    assert verdict.left_behind == ()
    names = [r.probe.name for r in verdict.results if r.probe.name.startswith("catalog")]
    assert names == [
        *("catalog", "catalog-region", "catalog-token", "catalog-warehouse", "catalog-namespaces"),
        *("catalog-may-drop", *MAKING, *USING, *DROPPING),
    ]
    details = {r.probe.name: r.detail for r in verdict.results}
    assert details["catalog-data"] == "with credentials that the catalog vended"
    made = [r for r in polaris.requests if r.path.endswith("/tables") and r.method == "POST"]
    assert len(made) == 1
    assert_nothing_left(world, polaris)


def test_token_is_requested_once_with_id_secret_and_scope(world: World, polaris: Gate) -> None:
    assert problems(world.ask()) == {}
    (asked,) = [r for r in polaris.requests if r.path.endswith("/oauth/tokens")]
    assert asked.form == {
        "grant_type": "client_credentials",
        "client_id": "loader-id",
        "client_secret": "loader-secret",
        "scope": "PRINCIPAL_ROLE:ALL",
    }
    assert "Authorization" not in asked.headers


def test_catalog_that_purges_tables_removes_their_files(world: World, polaris: Gate) -> None:
    polaris.purges = True
    assert problems(world.ask()) == {}
    assert_nothing_left(world, polaris)


def test_without_delegation_the_destinations_own_keys_write(world: World, polaris: Gate) -> None:
    world.change(access_delegation="NONE")
    verdict = world.ask()
    assert problems(verdict) == {}, told(first_failure(verdict)[1])
    details = {r.probe.name: r.detail for r in verdict.results}
    assert details["catalog-data"] == "with the destination's own credentials"
    names = {name.lower() for request in polaris.requests for name in request.headers}
    assert "x-iceberg-access-delegation" not in names
    assert_nothing_left(world, polaris)


def test_read_only_check_creates_nothing(world: World, polaris: Gate) -> None:
    verdict = world.ask(read_only=True)
    assert problems(verdict) == {}
    methods = {r.method for r in polaris.requests if not r.path.endswith("/oauth/tokens")}
    assert methods == {"GET"}


def test_headers_and_a_credential_in_one_secret_reach_a_plain_catalog(
    world: World, polaris: Gate
) -> None:
    world.change(
        type="REST",
        client_id=None,
        client_secret=None,
        credential=world.secret("CREDENTIAL", "loader-id:loader-secret"),
        headers={"X-Team": world.secret("TEAM", "lake-team")},
    )
    verdict = world.ask()
    assert problems(verdict) == {}
    assert {p.action for p in [r.probe for r in verdict.results]} == {"", "sts:AssumeRole"}
    calls = [r for r in polaris.requests if "/v1/lake/" in r.path]
    assert calls
    assert all(request.headers.get("X-Team") == "lake-team" for request in calls)


def test_a_token_that_expires_in_between_is_replaced(world: World, polaris: Gate) -> None:
    forgotten: list[bool] = []
    original = polaris.bearer

    def forgetful(header: str) -> tuple[Principal, str] | None:
        calls = [r for r in polaris.requests if r.method == "POST" and r.path.endswith("/tables")]
        if calls and not forgotten:
            forgotten.append(True)
            polaris.expire_tokens()
        return original(header)

    polaris.bearer = forgetful  # type: ignore[method-assign]
    assert problems(world.ask()) == {}
    assert len([r for r in polaris.requests if r.path.endswith("/oauth/tokens")]) == 2


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_misconfiguration_fails_the_check_that_names_it(
    case: Case, world: World, polaris: Gate
) -> None:
    case.bend(world, polaris)
    verdict = world.ask()
    probe, failure = first_failure(verdict)
    assert (probe.name, failure.code, failure.status) == (case.probe, case.code, case.status), told(
        failure
    )
    assert case.says in told(failure)
    statuses = {r.probe.name: r.status for r in verdict.results}
    assert statuses[case.probe] is (CheckStatus.WARNING if case.warning else CheckStatus.FAILED)
    secrets = ("loader-secret", "an-older-secret", "4711-expired-yesterday")
    assert not [value for value in secrets if value in told(failure)]


def test_missing_drop_privilege_is_reported_at_the_end(world: World, polaris: Gate) -> None:
    polaris.deny("DROP_TABLE_WITHOUT_PURGE", "DROP_TABLE_WITH_PURGE")
    left = world.ask().left_behind
    assert len(left) == 2
    assert ".probe` of the Iceberg catalog" in left[0]
    assert "the namespace `lakeload_probe_" in left[1]


@pytest.mark.usefixtures("forked_commands")
def test_the_command_names_the_privilege_and_hides_the_secret(
    world: World, polaris: Gate, tmp_path: Path
) -> None:
    polaris.deny("CREATE_NAMESPACE")
    file = tmp_path / "destination.yml"
    keys = {"access_key_id": {"env": "STORE_KEY"}, "secret_access_key": {"env": "STORE_SECRET"}}
    catalog = {
        "type": "SNOWFLAKE_OPEN_CATALOG",
        "uri": polaris.uri,
        "catalog_name": CATALOG,
        "client_id": {"env": "CLIENT_ID"},
        "client_secret": {"env": "CLIENT_SECRET"},
    }
    document = {
        "version": 1,
        "bucket": BUCKET,
        "region": "us-east-1",
        "credentials": keys,
        "endpoints": {"s3": world.store.s3_endpoint},
        "table_format": "ICEBERG",
        "iceberg": {"catalog": catalog},
    }
    file.write_text(yaml.safe_dump(document))
    text = command(file)
    assert (text.returncode, text.stderr) == (3, "")
    assert f"privilege: NAMESPACE_CREATE on catalog {CATALOG}" in text.stdout
    assert "connection failed at catalog-create-namespace (ForbiddenException)" in text.stdout
    found = json.loads(command(file, "--output", "json").stdout)
    (failed,) = [probe for probe in found["probes"] if probe["status"] == "failed"]
    assert failed["failure"]["code"] == "ForbiddenException"
    assert failed["action"] == "NAMESPACE_CREATE"
    assert "loader-secret" not in text.stdout + json.dumps(found)


def command(file: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Run `lakeload test-connection` as a user does."""
    return subprocess.run(
        argv("test-connection", file, *flags, python=forked()),
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
