"""Roles and users made after the published guides: the connection test, a sync, a recovery."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import Ended, lakeload, sync
from tests.published_policies import CASES, Case, Guide, published
from tests.servers.ministack import AwsServer, Lake

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@dataclass(frozen=True)
class Run:
    """What the commands of one case ended with."""

    lake: Lake
    tested: Ended
    synced: Ended
    recovered: Ended


@pytest.fixture(scope="module")
def runs(
    exact_aws: AwsServer, warm_spark_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Run]]:
    """Every case."""
    lakes = {
        name: published(exact_aws, Guide.read(case.guide), prefix=case.prefix, glue=case.glue)
        for name, case in CASES.items()
    }
    yield {
        name: _run(case, lakes[name], warm_spark_home, tmp_path_factory.mktemp(name))
        for name, case in CASES.items()
    }
    for lake in lakes.values():
        lake.empty()


def _run(case: Case, lake: Lake, spark_home: Path, folder: Path) -> Run:
    (folder / "orders.csv").write_text("ID,Name\n1,a\n2,b\n")
    place = lake.server.endpoint
    destination: dict[str, Any] = {
        "prefix": case.prefix or None,
        "endpoints": {"s3": place, "sts": place, "glue": place},
    }
    if not lake.seeded.role_arn:
        keys = {"access_key_id": "AWS_ACCESS_KEY_ID", "secret_access_key": "AWS_SECRET_ACCESS_KEY"}
        destination["credentials"] = {name: {"env": key} for name, key in keys.items()}
    if case.glue:
        destination |= {
            "glue_database_prefix": "supaflow",
            "parquet": {"update_glue_catalog": True},
        }
    tables = [{"table": "Orders", "path": "orders.csv"}]
    lake.write_pipeline(
        folder, tables=tables, destination=destination, destination_prefix=case.guide
    )
    warm = {"SPARK_HOME": str(spark_home)}
    command = ("test-connection", "pipeline.yml", "--output", "json")
    tested = lakeload(lake, folder, *command, **warm)
    synced = sync(lake, folder, **warm)
    recovered = lakeload(
        lake,
        folder,
        *("recover", "pipeline.yml", "--abort-older-than", "0", "--output", "json"),
        **warm,
    )
    return Run(lake, tested, synced, recovered)


@pytest.mark.parametrize("name", CASES)
def test_the_identity_of_a_published_guide_passes_with_its_known_warnings(
    name: str, runs: dict[str, Run]
) -> None:
    case, ended = CASES[name], runs[name].tested
    assert ended.code == 0, ended.stdout + ended.stderr
    odd = {
        probe["name"]: probe["status"]
        for probe in ended.document["probes"]
        if probe["failure"] or (probe["detail"] or "").startswith("needs `")
    }
    expected = dict.fromkeys(case.warns, "warning") | dict.fromkeys(case.skips, "skipped")
    assert odd == expected
    assert ended.document["left_behind"] == []


@pytest.mark.parametrize("name", CASES)
def test_the_identity_of_a_published_guide_loads(name: str, runs: dict[str, Run]) -> None:
    case, run = CASES[name], runs[name]
    assert run.synced.code == 0, run.synced.stdout + run.synced.stderr
    table = run.synced.tables["Orders"]
    assert (table["status"], table["rows"], table["error"]) == ("LOADED", 2, None)
    keys = run.lake.data_keys()
    assert len(keys) == 1
    assert keys[0].startswith(f"{case.prefix}/" if case.prefix else "")
    assert run.lake.uploads() == []


@pytest.mark.parametrize("name", CASES)
def test_the_identity_of_a_published_guide_recovers(name: str, runs: dict[str, Run]) -> None:
    case, ended = CASES[name], runs[name].recovered
    assert ended.code == 0, ended.stdout + ended.stderr
    tables = ended.document["tables"]
    assert [table["status"] for table in tables] == ["UP_TO_DATE"]
    assert tables[0]["errors"] == []
    assert bool(tables[0]["warnings"]) is ("list-uploads" in case.warns)
