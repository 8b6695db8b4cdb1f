"""Snowflake Open Catalog through the whole command: loads, and refusals in words that help.

The catalog is Iceberg's own server behind Polaris's answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.command import sync
from tests.e2e.rest_lake import CLIENT_SECRET, gate_of, rows, write_pipeline
from tests.servers.ministack import Lake
from tests.servers.oauth2_gate import CATALOG, Gate

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("warm_spark")]


@pytest.fixture
def gate(lake: Lake, tmp_path: Path) -> Iterator[Gate]:
    """A catalog of the test's own."""
    with gate_of(lake) as running:
        yield running


def open_catalog(gate: Gate, **changes: Any) -> dict[str, Any]:
    """Return the block of Open Catalog."""
    return {
        "type": "SNOWFLAKE_OPEN_CATALOG",
        "uri": gate.uri,
        "catalog_name": CATALOG,
        "client_id": {"env": "CLIENT_ID"},
        "client_secret": {"env": "CLIENT_SECRET"},
        "principal_role": "loader_role",
        **changes,
    }


def test_open_catalog_load_without_a_privilege_fails_and_names_it(
    lake: Lake, gate: Gate, tmp_path: Path, jars_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLIENT_ID", "loader-id")
    monkeypatch.setenv("CLIENT_SECRET", CLIENT_SECRET)
    # The catalog lends the keys: whoever runs this has no identity in AWS.
    nobody: dict[str, str | None] = {
        "LAKELOAD_CACHE_DIR": str(jars_cache),
        "AWS_ACCESS_KEY_ID": None,
        "AWS_SECRET_ACCESS_KEY": None,
        "LAKELOAD_EXTERNAL_ID": None,
    }
    (tmp_path / "orders.csv").write_text("id,name\n1,a\n2,b\n")
    write_pipeline(lake, tmp_path, open_catalog(gate, catalog_region="us-east-1"), "orders")
    document = yaml.safe_load((tmp_path / "destination.yml").read_text())
    del document["credentials"]
    (tmp_path / "destination.yml").write_text(yaml.safe_dump(document))

    loaded = sync(lake, tmp_path, "--job-id", "first", **nobody)
    assert loaded.code == 0, loaded.stdout + loaded.stderr
    table = loaded.tables["orders"]
    assert (table["status"], table["target"], table["rows"]) == ("LOADED", "shop.orders", 2)
    again = sync(lake, tmp_path, "--job-id", "first", **nobody)
    assert again.tables["orders"]["status"] == "NO_OP"
    assert again.tables["orders"]["snapshot_id"] == table["snapshot_id"]

    (tmp_path / "orders.csv").write_text("id,name\n2,B\n3,c\n")
    (tmp_path / "new.csv").write_text("id,name\n1,a\n")
    write_pipeline(lake, tmp_path, open_catalog(gate), "orders", "new")
    document = yaml.safe_load((tmp_path / "destination.yml").read_text())
    del document["credentials"]
    (tmp_path / "destination.yml").write_text(yaml.safe_dump(document))
    gate.deny("CREATE_TABLE_DIRECT_WITH_WRITE_DELEGATION")
    second = sync(lake, tmp_path, "--job-id", "second", **nobody)
    assert second.code == 1, second.stdout + second.stderr
    assert second.tables["orders"]["changes"] == {
        "inserted": 1,
        "updated": 1,
        "deleted": 0,
        "unchanged": 0,
        "ignored": 0,
    }
    refused = second.tables["new"]["error"]
    assert "is not authorized for op CREATE_TABLE_DIRECT" in refused["message"]
    assert "TABLE_CREATE and TABLE_WRITE_DATA" in refused["hint"]
    wanted = [{"id": 1, "name": "a"}, {"id": 2, "name": "B"}, {"id": 3, "name": "c"}]
    assert rows(lake, gate, "orders") == wanted


REFUSED: list[tuple[int, dict[str, Any], dict[str, str], tuple[str, ...]]] = [
    (
        3,
        {},
        {"CLIENT_SECRET": "an-older-secret"},
        ("unauthorized_client", "the client secret was rotated"),
    ),
    (
        3,
        {"catalog_name": "Lake"},
        {},
        ("Unable to find warehouse Lake", "`catalog_name` is misspelt"),
    ),
    (2, {"catalog_region": "eu-west-1"}, {}, ("eu-west-1", "use a bucket there")),
]
"""Exit code, changes of the block, variables, and what is said."""


def test_open_catalog_without_privileges_fails_before_spark_starts(
    lake: Lake, gate: Gate, tmp_path: Path
) -> None:
    (tmp_path / "orders.csv").write_text("id,name\n1,a\n")
    for code, block, variables, says in REFUSED:
        write_pipeline(lake, tmp_path, open_catalog(gate, **block), "orders")
        given = {"CLIENT_ID": "loader-id", "CLIENT_SECRET": CLIENT_SECRET, **variables}
        ended = sync(lake, tmp_path, **given)
        assert ended.code == code, (says, ended.stdout, ended.stderr)
        for text in says:
            assert text in ended.stdout
        assert not list((tmp_path / "runs").glob("2*")), "Spark's run folder was made"
