"""One pipeline for several lakes: the environment names its destination."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeload.config.problems import InvalidDocuments
from lakeload.documents.load import load_pipeline
from tests.unit.documents.documents import DESTINATION, PIPELINE, TABLES

INNER = "{version: 1, bucket: my-data-lake, region: us-east-1}"


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    (tmp_path / "lakes").mkdir()
    for name in ("dev", "production"):
        text = DESTINATION.replace("bucket: my-data-lake", f"bucket: lake-of-{name}")
        (tmp_path / f"lakes/{name}.yml").write_text(text, encoding="utf-8")
    file = tmp_path / "pipeline.yml"
    text = PIPELINE.replace(INNER, "lakes/${LAKE:-dev}.yml") + TABLES
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("environment", "bucket"),
    [({}, "lake-of-dev"), ({"LAKE": "production"}, "lake-of-production")],
)
def test_a_variable_names_the_destination(
    pipeline: Path, environment: dict[str, str], bucket: str
) -> None:
    document = load_pipeline(pipeline, environment)

    assert document.destination.model.bucket == bucket


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("productoin", "did you mean `lakes/production.yml`?"),
        ("zzzzzzzzzz", "lakes/zzzzzzzzzz.yml is looked for"),
    ],
)
def test_a_destination_that_a_variable_names_wrongly_is_told_with_its_name(
    pipeline: Path, value: str, hint: str
) -> None:
    with pytest.raises(InvalidDocuments) as caught:
        load_pipeline(pipeline, {"LAKE": value})

    (problem,) = caught.value.problems
    assert problem.message == "the destination file `lakes/${LAKE:-dev}.yml` does not exist"
    assert problem.hint is not None
    assert hint in problem.hint
