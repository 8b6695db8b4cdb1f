"""Signs of life while a command reads its documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeload.ui.display import Phases
from tests.unit.commands.command import lakeload

DESTINATION = """
version: 1
bucket: my-data-lake
region: us-east-1
prefix: landing
credentials:
  role_arn: arn:aws:iam::123456789012:role/Load
  external_id: {env: LAKELOAD_EXTERNAL_ID}
"""
PIPELINE = """
version: 1
name: shop
destination: destination.yml
namespace: web
source:
  type: JDBC
  url: postgresql://loader@127.0.0.1:1/shop?sslmode=disable
tables:
  - table: public.*
"""


@pytest.mark.parametrize(
    "command",
    [
        "sync FILE",
        "plan FILE",
        "runs FILE",
        "runs FILE --failed",
        "runs FILE --follow",
        "runs FILE --local",
        "status FILE",
        "recover FILE --dry-run",
        "reset FILE orders",
        "maintain FILE",
        "test-connection FILE",
        "policy FILE",
        "policy FILE --for duckdb",
        "policy FILE --for postgres",
        "doctor FILE",
        "jars list FILE",
    ],
)
def test_documents_are_read_while_the_command_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    shown: list[bool] = []
    start = Phases.start

    def starts(phases: Phases) -> None:
        shown.append(True)
        start(phases)

    monkeypatch.setattr(Phases, "start", starts)

    done = lakeload(*command.replace("FILE", "missing.yml").split(), folder=tmp_path)

    assert "missing.yml" in done.stderr
    assert shown


def test_policy_shows_that_it_asks_a_database_for_the_tables_of_a_glob(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    begin = Phases.begin

    def begins(phases: Phases, phase: str) -> None:
        begun.append(phase)
        begin(phases, phase)

    monkeypatch.setattr(Phases, "begin", begins)
    (tmp_path / "destination.yml").write_text(DESTINATION)
    (tmp_path / "pipeline.yml").write_text(PIPELINE)

    done = lakeload("policy", "pipeline.yml", "--for", "duckdb", folder=tmp_path)

    assert done.returncode == 3
    assert begun == ["reading the tables of the source"]
