"""Notes about Glue: settings that are no mistake and may surprise."""

from __future__ import annotations

from pathlib import Path

from lakeload.config.problems import Problem
from lakeload.documents.load import inspect_all
from tests.unit.documents.documents import DESTINATION, PIPELINE, TABLES


def problems(folder: Path, text: str) -> tuple[Problem, ...]:
    path = folder / "document.yaml"
    path.write_text(text)
    return inspect_all([path], {})[0].problems


def test_partitions_that_athena_cannot_enumerate_are_noted(tmp_path: Path) -> None:
    [note] = problems(
        tmp_path,
        f"{DESTINATION}parquet:\n"
        "  {update_glue_catalog: true, partition_projection: true, partition_strategy: SYNC_ID}\n",
    )

    assert (note.severity, note.key) == ("note", "parquet.partition_projection")
    assert note.hint == "each query needs `WHERE lakeload_partition = '<job id>'`"


def test_a_prefix_without_glue_is_noted_where_it_stands(tmp_path: Path) -> None:
    [note] = problems(tmp_path, f"{DESTINATION}glue_database_prefix: supaflow\n")

    assert (note.severity, note.key) == ("note", "glue_database_prefix")

    inner = PIPELINE.replace("bucket", "glue_database_prefix: supaflow, bucket")
    [note] = problems(tmp_path, inner + TABLES)

    assert (note.severity, note.key) == ("note", "destination.glue_database_prefix")


def test_a_prefix_with_glue_needs_no_note(tmp_path: Path) -> None:
    settings = "glue_database_prefix: supaflow\nparquet: {update_glue_catalog: true}\n"

    assert problems(tmp_path, DESTINATION + settings) == ()


def test_invalid_pipeline_does_not_hide_target_problems(
    tmp_path: Path,
) -> None:
    inner = PIPELINE.replace("bucket", "parquet: {update_glue_catalog: true}, bucket")

    found = problems(tmp_path, f"{inner}nested: MAYBE\n{TABLES}")

    assert {problem.code for problem in found} == {"unknown-value", "no-database"}
