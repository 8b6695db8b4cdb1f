"""Flags of `lakeload maintain` that are refused, before anything is asked or started."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from lakeload.app import app

DESTINATION = "version: 1\nbucket: lake\nregion: us-east-1\nprefix: data\n"
PIPELINE = """version: 1
name: shop
destination: destination.yml
namespace: shop
source: {type: FILES, format: CSV}
tables:
  - {table: orders, path: orders.csv}
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    (tmp_path / "destination.yml").write_text(DESTINATION)
    (tmp_path / "pipeline.yml").write_text(PIPELINE)
    return tmp_path / "pipeline.yml"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--only", "compakt"], "`--only compakt` is no step"),
        (["--only", "compact"], "is no step for tables of PARQUET"),
        (["--where", "x = 1"], "tables of PARQUET have no such step"),
        (["--retain-last", "3"], "is an option of the step `expire`"),
        (["--max-bytes", "lots"], "`--max-bytes`: `lots` is not a size"),
        (["--max-bytes", "0"], "leaves nothing to rewrite"),
        (["--older-than", "soon"], "`--older-than soon` is not an age"),
        (["--orphans-older-than", "23h"], "a load may still be writing"),
        (["--optimizer-role", "arn"], "belongs to `--register-glue-optimizers`"),
        (["--register-glue-optimizers", "--only", "compact"], "what lakeload does itself"),
        (["--register-glue-optimizers"], "there is no role"),
        (["--register-glue-optimizers", "--optimizer-role", "me"], "is not the ARN of a role"),
        (["--table", "nothing"], "matches no table of the pipeline"),
    ],
)
def test_maintain_conflicting_options_are_rejected(
    pipeline: Path, flags: list[str], said: str
) -> None:
    result = CliRunner().invoke(app, ["maintain", str(pipeline), *flags])
    assert said in result.stderr
    assert result.exit_code == 2
