"""Nessie: over Iceberg's REST protocol, and by its native interface."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from lakeload_jobs.contract.spec import CatalogSpec
from tests.integration.formats.iceberg.catalogs.world import World, first_failure, problems, told
from tests.integration.formats.iceberg.nessie_world import BRANCHES
from tests.servers.nessie import BUCKET, Nessie


@pytest.fixture
def world(nessie: Nessie, monkeypatch: pytest.MonkeyPatch) -> World:
    """A Nessie with everything right."""
    spec = CatalogSpec(type="NESSIE", uri=nessie.uri, api="REST")
    return World(nessie.store, monkeypatch, BUCKET, spec)


def native(nessie: Nessie, path: str) -> dict[str, Any]:
    """Return an answer of the native interface."""
    with urllib.request.urlopen(f"{nessie.uri}/api/v2/{path}", timeout=10) as answer:  # noqa: S310
        found: dict[str, Any] = json.load(answer)
        return found


def changes(nessie: Nessie, before: str) -> list[dict[str, Any]]:
    """Return what came into main since a commit, from tests that run at the same time too."""
    history = native(nessie, "trees/main/history?fetch=ALL&max-records=200")
    found: list[dict[str, Any]] = history["logEntries"]
    hashes = [entry["commitMeta"]["hash"] for entry in found]
    assert before in hashes
    return found[: hashes.index(before)]


def branches(nessie: Nessie) -> list[str]:
    """Return the names of all branches but those of tests that run at the same time."""
    names = [reference["name"] for reference in native(nessie, "trees")["references"]]
    return [name for name in names if not name.startswith(BRANCHES)]


def test_every_probe_passes_over_rest_and_nothing_is_left(world: World, nessie: Nessie) -> None:
    verdict = world.ask()
    assert problems(verdict) == {}, told(first_failure(verdict)[1])
    assert verdict.left_behind == ()
    assert "lakeload_probe" not in str(native(nessie, "trees/main/entries"))
    assert not [key for key in world.store.keys(BUCKET) if "probe" in key]
    place = {r.probe.name: r.detail for r in verdict.results}["catalog-create-table"]
    assert place.startswith(f"at s3://{BUCKET}/team/lake/_lakeload/probe/lakeload_probe_")


def test_every_probe_passes_natively_and_history_keeps_nothing(
    world: World, nessie: Nessie
) -> None:
    before = native(nessie, "trees/main")["reference"]["hash"]
    world.change(api="NATIVE")
    verdict = world.ask()
    assert problems(verdict) == {}, told(first_failure(verdict)[1])
    assert "lakeload_probe" not in str(changes(nessie, before))
    assert branches(nessie) == ["main"]


@dataclass(frozen=True)
class Case:
    """One misconfiguration: how to make it, and what must be said about it."""

    name: str
    bend: Callable[[World], object]
    probe: str
    code: str
    status: int | None
    says: str


def _warehouse(world: World, location: str) -> None:
    iceberg = replace(world.destination.iceberg, warehouse_location=location)
    world.destination = replace(world.destination, iceberg=iceberg)


CASES = [
    Case(
        "branch that does not exist",
        lambda world: world.change(ref="nosuch"),
        *("catalog-namespaces", "NoSuchReferenceException", 400, "the branch `nosuch` in `ref`"),
    ),
    Case(
        "branch that does not exist, natively",
        lambda world: world.change(ref="nosuch", api="NATIVE"),
        *("catalog-warehouse", "REFERENCE_NOT_FOUND", 404, "the branch `nosuch` in `ref`"),
    ),
    Case(
        "warehouse that it does not know",
        lambda world: _warehouse(world, "s3://elsewhere/lake"),
        *("catalog-warehouse", "IllegalStateException", 500, "is not a warehouse that this Nessie"),
    ),
    Case(
        "path of another server",
        lambda world: world.change(uri=f"{world.catalog.uri}/other"),
        *("catalog", "NotACatalog", 404, "check the path in `uri`"),
    ),
    Case(
        "path of another server, natively",
        lambda world: world.change(uri=f"{world.catalog.uri}/other", api="NATIVE"),
        *("catalog", "NotACatalog", 404, "check `uri`: Nessie does not respond at"),
    ),
    Case(
        "nobody listens there",
        lambda world: world.change(uri="http://127.0.0.1:9", api="NATIVE"),
        *("catalog", "EndpointConnectionError", None, "the host or port in `uri`"),
    ),
]


def test_nessie_single_warehouse_may_be_named(world: World) -> None:
    _warehouse(world, f"s3://{BUCKET}/lake")
    assert problems(world.ask()) == {}


def test_nessie_native_uri_works_for_both_interfaces(world: World, nessie: Nessie) -> None:
    world.change(uri=f"{nessie.uri}/api/v1")
    assert problems(world.ask(read_only=True)) == {}
    world.change(api="NATIVE")
    assert problems(world.ask(read_only=True)) == {}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_misconfiguration_fails_the_check_that_names_it(case: Case, world: World) -> None:
    case.bend(world)
    probe, failure = first_failure(world.ask())
    assert (probe.name, failure.code, failure.status) == (case.probe, case.code, case.status), told(
        failure
    )
    assert case.says in told(failure)
