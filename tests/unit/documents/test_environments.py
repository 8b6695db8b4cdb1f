"""One pipeline for several lakes: the environment names its destination."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeload.config.problems import InvalidDocuments
from lakeload.documents.load import load_either, load_pipeline
from lakeload.documents.named_files import NamedFiles
from lakeload_jobs.contract.errors import InvalidInput
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


@pytest.mark.parametrize(
    "written",
    [
        "destination: ${LAKE}.yml",
        "destination: missing.yml",
        "destination: {bucket: 5, credentials: {external_id: canary}, region: '${REGION}'}",
        "",
    ],
)
def test_named_destination_replaces_whatever_the_pipeline_has(pipeline: Path, written: str) -> None:
    text = pipeline.read_text().replace("destination: lakes/${LAKE:-dev}.yml", written)
    pipeline.write_text(text)
    production = pipeline.parent / "lakes/production.yml"

    document = load_pipeline(pipeline, {}, production)

    assert document.destination.model.bucket == "lake-of-production"
    assert document.destination.path == production
    assert document.warnings == ()
    assert document.files == NamedFiles(pipeline, production)


def test_problem_of_the_pipeline_beside_the_replaced_destination_stays(pipeline: Path) -> None:
    inline = "destination: {external_id: canary, region: '${R}'}, source: {type: '${KIND}'}"
    pipeline.write_text("{version: 1, name: shop, " + inline + ", tables: []}\n")

    with pytest.raises(InvalidDocuments) as caught:
        load_pipeline(pipeline, {}, pipeline.parent / "lakes/dev.yml")

    messages = [problem.message for problem in caught.value.problems]
    assert "the environment variable `KIND` is not set" in messages
    assert "the environment variable `R` is not set" not in messages
    assert "canary" not in str([problem.snippets for problem in caught.value.problems])


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("lakes/productoin.yml", "no such file", "did you mean `production.yml`?"),
        ("dev.yml", "no such file", "current folder: did you mean `{0}/lakes/dev.yml`?"),
        ("pipeline.yml", "this is a pipeline, and a destination is needed here", "describes what"),
        ("lakes", "is a directory", None),
    ],
)
def test_named_destination_that_is_none_is_told_at_its_own_path(
    pipeline: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str, hint: str | None
) -> None:
    moved = pipeline
    if name == "dev.yml":
        moved = pipeline.rename(pipeline.parent / "lakes" / "pipeline.yml")
    monkeypatch.chdir(pipeline.parent)

    with pytest.raises(InvalidDocuments) as caught:
        load_pipeline(moved, {}, Path(name))

    (problem,) = caught.value.problems
    assert problem.path == name
    assert message in problem.message
    assert hint is None or hint.format(pipeline.parent) in (problem.hint or "")


def test_named_destination_beside_a_destination_is_refused(pipeline: Path) -> None:
    lakes = pipeline.parent / "lakes"
    with pytest.raises(InvalidInput, match=r"`--destination` replaces .* is a destination"):
        load_either(lakes / "dev.yml", {}, lakes / "production.yml")


def test_command_about_the_same_files_has_the_option_and_quotes() -> None:
    files = NamedFiles(Path("my shop.yml"), Path("production.yml"))

    line = "lakeload jars fetch 'my shop.yml' --destination production.yml --for s3"
    assert files.command("jars fetch", "--for", "s3") == line
    assert NamedFiles(Path("p.yml")).command("reset", "*") == "lakeload reset p.yml '*'"
