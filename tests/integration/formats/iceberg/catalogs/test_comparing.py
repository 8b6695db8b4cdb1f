"""Whether a catalog compares commits is asked of it, by the connection test and before a load."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from lakeload.app import app
from lakeload.formats.inspection import InspectionRequest, TableState, outcome_without_spark
from lakeload.formats.registry import commands_of
from lakeload.launch.spec import new_attempt
from lakeload.ui import console
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import ExitCode, Refused
from lakeload_jobs.contract.spec import NO_OPTIONS, CatalogSpec, FilesInput, TableSpec
from lakeload_jobs.formats.iceberg.catalogs.opening import open_catalog
from tests.fakes.spark_home import fake_spark_home
from tests.integration.formats.iceberg.catalogs.world import (
    World,
    first_failure,
    problems,
    secret,
    told,
)
from tests.servers.fault_proxy import Action, FaultProxy, MakeProxy, Response
from tests.servers.oauth2_gate import CATALOG, Gate
from tests.servers.rest_catalog import BUCKET
from tests.servers.seaweedfs import SeaweedFs
from tests.servers.uncompared import is_commit, without_requirements

_JSON = (("Content-Type", "application/json"),)


def refusing(status: int, kind: str, *, empty_only: bool = False) -> Action:
    """Answer commits with an error; with `empty_only` just those without updates."""

    def act(request: Any, forward: Any) -> Response:
        if not is_commit(request) or (empty_only and json.loads(request.body)["updates"]):
            return forward(request)  # type: ignore[no-any-return]
        error = {"message": "not here", "type": kind, "code": status}
        return Response(status, _JSON, json.dumps({"error": error}).encode())

    return act


@dataclass
class Shop:
    """A REST catalog behind a proxy, with the table `orders` in it that the pipeline has made."""

    world: World
    proxy: FaultProxy
    schema: str

    def look(self, *names: str) -> Sequence[TableState]:
        """Look at tables as a sync does before it starts Spark."""
        destination = self.world.destination
        given = FilesInput("CSV", ("/data/orders.csv",), {})
        tables = [TableSpec(name, self.schema, name, given, "f", mode="UPSERT") for name in names]
        session = AwsSession(destination)
        request = InspectionRequest(destination, "shop", new_attempt(None), NO_OPTIONS, loads=True)
        return commands_of("ICEBERG").inspect(session, tables, request)

    def commits(self) -> list[dict[str, Any]]:
        """Return the commits that reached the proxy."""
        return [json.loads(r.body) for r in self.proxy.requests if is_commit(r)]


@pytest.fixture
def shop(
    seaweedfs: SeaweedFs,
    rest_backend: str,
    make_proxy: MakeProxy,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Iterator[Shop]:
    """Tables of a namespace of the test's own; the proxy lets everything pass until told."""
    proxy = make_proxy(rest_backend)
    with Gate(proxy.endpoint) as gate:
        spec = CatalogSpec(
            type="REST",
            uri=gate.uri,
            warehouse=CATALOG,
            credential=secret(monkeypatch, "CREDENTIAL", "loader-id:loader-secret"),
            scope="PRINCIPAL_ROLE:ALL",
            access_delegation="NONE",
        )
        world = World(seaweedfs, monkeypatch, BUCKET, spec)
        made = Shop(world, proxy, f"compared_{tmp_path.name}".replace("-", "_"))
        catalog = open_catalog(world.destination, AwsSession(world.destination))
        catalog.create_namespace(made.schema)
        catalog.create_table(
            made.schema,
            "orders",
            columns={"id": "long"},
            properties={"lakeload.created-by": "shop"},
        )
        yield made
        catalog.drop_table(made.schema, "orders")
        catalog.drop_namespace(made.schema)


def test_commit_validation_of_an_enforcing_catalog_is_checked_once_without_changes(
    shop: Shop,
) -> None:
    catalog = open_catalog(shop.world.destination, AwsSession(shop.world.destination))
    before = catalog.load_table(shop.schema, "orders").metadata_location
    seen = shop.look("new", "orders", "orders")
    assert [(table.error, table.caveat) for table in seen] == [(None, "")] * 3
    (asked,) = shop.commits()
    assert asked["updates"] == []
    uuid, branch = asked["requirements"]
    assert uuid["type"] == "assert-table-uuid"
    assert branch == {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 1}
    assert catalog.load_table(shop.schema, "orders").metadata_location == before


def test_load_through_a_catalog_without_commit_validation_is_rejected(shop: Shop) -> None:
    shop.proxy.on("*", without_requirements)
    seen = shop.look("orders", "new")
    for table in seen:
        assert isinstance(table.error, Refused)
        assert shop.world.catalog.uri is not None
        assert shop.world.catalog.uri.removesuffix("/api/catalog") in table.error.message
        assert f"a commit to `{shop.schema}.orders` whose requirement" in table.error.message
        assert "`requirements`" in (table.error.hint or "")
    outcome = outcome_without_spark(seen)
    assert outcome is not None
    assert outcome.exit_code == ExitCode.REFUSED
    catalog = open_catalog(shop.world.destination, AwsSession(shop.world.destination))
    assert dict(catalog.load_table(shop.schema, "orders").properties)["lakeload.created-by"]


def test_commit_validation_without_a_table_is_checked_by_the_job(shop: Shop) -> None:
    shop.proxy.on("*", without_requirements)
    (seen,) = shop.look("new")
    assert (seen.error, seen.caveat) == (None, "")
    assert shop.commits() == []


def test_commit_validation_with_empty_commits_ignored_uses_an_update(shop: Shop) -> None:
    shop.proxy.on("*", refusing(400, "BadRequestException", empty_only=True))
    (seen,) = shop.look("orders")
    assert (seen.error, seen.caveat) == (None, "")
    _, asked = shop.commits()
    assert [update["action"] for update in asked["updates"]] == ["remove-properties"]


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, "BadRequestException"), (403, "ForbiddenException"), (503, "SlowDownException")],
)
def test_commit_validation_with_an_unclear_response_warns_and_loads(
    status: int, kind: str, shop: Shop
) -> None:
    shop.proxy.on("*", refusing(status, kind))
    (seen,) = shop.look("orders")
    assert seen.error is None
    assert "it is not known whether the catalog validates commit requirements" in seen.caveat
    assert kind in seen.caveat


def test_connection_test_reports_missing_commit_validation(shop: Shop) -> None:
    shop.proxy.on("*", without_requirements)
    verdict = shop.world.ask()
    probe, failure = first_failure(verdict)
    assert (probe.name, failure.code, failure.status) == (
        "catalog-compare",
        "CommitNotCompared",
        None,
    )
    assert problems(verdict) == {"catalog-compare": "failed"}
    assert "`requirements`" in told(failure)
    assert verdict.left_behind == ()


@pytest.fixture
def folder(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The documents of the shop's pipeline in the current folder, with a run folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAKELOAD_RUN_DIR", str(tmp_path / "runs"))
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "orders.csv").write_text("id\n1\n")
    (tmp_path / "pipeline.yml").write_text(yaml.safe_dump(_pipeline(shop)))
    yield tmp_path
    console.configure()


def test_sync_without_commit_validation_exits_with_3_before_spark(shop: Shop, folder: Path) -> None:
    shop.proxy.on("*", without_requirements)
    text = CliRunner().invoke(app, ["sync", "pipeline.yml"])
    assert text.exit_code == 3, text.output
    assert "nothing is loaded through" in text.output
    document = CliRunner().invoke(app, ["sync", "pipeline.yml", "--output", "json"])
    (table,) = json.loads(document.stdout)["tables"]
    assert (document.exit_code, table["status"], table["error"]["exit_code"]) == (3, "FAILED", 3)
    assert "accepted a commit" in table["error"]["message"]
    assert not list((folder / "runs").glob("2*")), "Spark's run folder was made"


def test_load_with_unverified_commit_validation_warns(
    shop: Shop, folder: Path, jars_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.proxy.on("*", refusing(403, "ForbiddenException"))
    monkeypatch.setenv("SPARK_HOME", str(fake_spark_home(folder)))
    monkeypatch.setenv("FAKE_SPARK_SCENARIO", "success")
    monkeypatch.setenv("LAKELOAD_CACHE_DIR", str(jars_cache))
    ended = CliRunner().invoke(app, ["sync", "pipeline.yml", "--output", "json"])
    assert ended.exit_code == 0, ended.output
    (table,) = json.loads(ended.stdout)["tables"]
    (warning,) = table["warnings"]
    assert warning.startswith("it is not known whether the catalog validates commit requirements: ")


def _pipeline(shop: Shop) -> dict[str, Any]:
    spec = shop.world.catalog
    catalog = {
        "type": "REST",
        "uri": spec.uri,
        "warehouse": spec.warehouse,
        "credential": {"env": "CREDENTIAL"},
        "scope": spec.scope,
        "access_delegation": "NONE",
    }
    keys = {"access_key_id": {"env": "STORE_KEY"}, "secret_access_key": {"env": "STORE_SECRET"}}
    destination = {
        "version": 1,
        "bucket": BUCKET,
        "region": "us-east-1",
        "prefix": shop.world.destination.prefix,
        "credentials": keys,
        "endpoints": {"s3": shop.world.store.s3_endpoint},
        "table_format": "ICEBERG",
        "iceberg": {"catalog": catalog},
    }
    return {
        "version": 1,
        "name": "shop",
        "destination": destination,
        "namespace": shop.schema,
        "source": {"type": "FILES", "format": "CSV", "options": {"header": True}},
        "tables": [
            {"table": "orders", "path": "orders.csv", "mode": "UPSERT", "primary_key": ["id"]}
        ],
    }
