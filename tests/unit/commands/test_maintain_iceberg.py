"""What the commands after the load say of Iceberg tables that they cannot look after."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from lakeload.app import app

DESTINATION = """
version: 1
bucket: lake
region: us-east-1
table_format: ICEBERG
iceberg: {catalog: {type: NESSIE, uri: "http://127.0.0.1:9/", api: NATIVE}}
"""
PIPELINE = """
version: 1
name: shop
destination: destination.yml
namespace: shop
source: {type: FILES, format: CSV, options: {header: true}}
tables: [{table: orders, path: orders.csv}]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with both documents."""
    (tmp_path / "destination.yml").write_text(DESTINATION)
    (tmp_path / "pipeline.yml").write_text(PIPELINE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_iceberg_operations_on_a_destination_are_rejected(folder: Path) -> None:
    ended = CliRunner().invoke(app, ["recover", "destination.yml"])
    assert ended.exit_code == 2
    assert "give the pipeline's configuration file" in ended.stderr
