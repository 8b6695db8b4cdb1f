"""A second run loads no row twice where `lakeload init` wrote the pipeline, and else says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from typer.testing import CliRunner

from lakeload.app import app
from lakeload.documents.load import load_pipeline
from lakeload.documents.spec import table_specs
from lakeload_jobs.contract.spec import AppendAgain
from tests.integration.formats.worlds import IcebergWorld, World, load

ROWS = [{"id": number, "note": f"note {number}"} for number in range(3)]


def test_second_run_of_what_init_writes_for_files_loads_nothing(
    world: World, tmp_path: Path
) -> None:
    world.file("a.parquet", ROWS)
    table_format = "ICEBERG" if isinstance(world, IcebergWorld) else "PARQUET"
    flags = ["--bucket", "b-1", "--region", "us-east-1", "--no-input", "--path", world.folder()]
    done = CliRunner().invoke(app, ["init", f"{tmp_path}", *flags, "--table-format", table_format])
    assert done.exit_code == 0, done.output
    [written] = table_specs(load_pipeline(tmp_path / "pipeline.yml", {}))
    assert written.append_again is None
    place = world.table("none")
    table = replace(written, schema=place.schema, table=place.table)

    assert load(world, table).rows == 3
    assert load(world, table).status == "NO_OP"
    assert len(world.rows()) == 3


def test_rows_that_are_appended_again_are_a_warning_of_the_second_load(world: World) -> None:
    again = AppendAgain("WARN", "set `incremental: true` in `source`")
    table = world.table(world.file("a.parquet", ROWS), append_again=again)

    first = load(world, table)
    second = load(world, table, job_id="second")
    rerun = load(world, table, job_id="second")

    assert (first.warnings, rerun.warnings) == ((), ())
    [text] = second.warnings
    assert "has loaded 3 rows of it at 20" in text
    assert "set `incremental: true` in `source`" in text
    assert len(world.rows()) == 6
    failed = load(world, replace(table, append_again=AppendAgain("FAIL", "set a cursor")))
    assert failed.error is not None
    assert "job `second` of this pipeline has loaded 3 rows" in failed.error.message
    assert len(world.rows()) == 6
