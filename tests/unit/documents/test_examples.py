"""The examples of configs/ are valid: for lakeload and for an editor with the JSON Schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args

import jsonschema
import pytest
import yaml

from lakeload.documents.load import PipelineDocument, inspect_all, load_destination, load_pipeline
from lakeload.documents.spec import destination_spec, table_specs
from lakeload_jobs.contract.spec import CatalogType
from tests.unit.commands.command import CONFIGS
from tests.unit.documents.documents import validator

EXAMPLES = sorted(CONFIGS.glob("*.yaml"))
KINDS: tuple[Literal["destination", "pipeline"], ...] = ("destination", "pipeline")


def example_id(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", EXAMPLES, ids=example_id)
def test_an_example_has_no_problem_of_any_severity(path: Path) -> None:
    [inspection] = inspect_all([path], {})

    assert inspection.problems == ()
    assert inspection.kind == path.stem.partition("-")[0]


@pytest.mark.parametrize("path", EXAMPLES, ids=example_id)
def test_an_example_becomes_a_spec(path: Path) -> None:
    document: Any = (load_pipeline if "pipeline" in path.stem else load_destination)(path, {})
    if isinstance(document, PipelineDocument):
        assert table_specs(document)
        document = document.destination

    assert destination_spec(document).bucket


@pytest.mark.parametrize("path", EXAMPLES, ids=example_id)
def test_an_example_fits_the_json_schema(path: Path) -> None:
    kind = KINDS["pipeline" in path.stem]

    assert [e.message for e in validator(kind).iter_errors(yaml.safe_load(path.read_text()))] == []


def test_there_is_an_example_of_each_kind_of_credentials() -> None:
    found = [load_destination(path, {}).model.credentials for path in EXAMPLES]

    assert any(item.role_arn and item.external_id for item in found)
    assert any(item.access_key_id and not item.role_arn for item in found)
    assert any(item.profile for item in found)
    assert any(not item.model_fields_set for item in found)


def test_there_is_an_example_of_each_catalog_of_iceberg_tables() -> None:
    found = [load_destination(path, {}).model for path in EXAMPLES]

    catalogs = {item.iceberg.catalog.type for item in found if item.table_format == "ICEBERG"}
    assert catalogs == set(get_args(CatalogType))


@pytest.mark.parametrize("kind", KINDS)
def test_the_json_schema_is_valid_itself(kind: Literal["destination", "pipeline"]) -> None:
    schema: Any = validator(kind).schema

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize(
    ("change", "setting"),
    [
        ({"bucket": 5}, "bucket"),
        ({"regoin": "us-east-1"}, "regoin"),
        ({"table_format": "DELTA"}, "table_format"),
        ({"iceberg": {"catalog": {"type": "POLARIS"}}}, "type"),
        ({"iceberg": {"catalog": {"headers": {"X-Tenant": "a literal"}}}}, "headers"),
        ({"credentials": {"external_id": "a literal"}}, "external_id"),
        ({"parquet": {"upload_parallelism": 50}}, "upload_parallelism"),
    ],
)
def test_json_schema_rejects_what_validate_rejects(change: dict[str, Any], setting: str) -> None:
    document = {"version": 1, "bucket": "b-1", "region": "us-east-1", **change}

    errors = list(validator("destination").iter_errors(document))

    assert len(errors) == 1
    assert setting in f"{list(errors[0].absolute_path)} {errors[0].message}"


def test_the_json_schema_takes_references_to_the_environment_for_any_value() -> None:
    document = {
        "version": 1,
        "bucket": "${BUCKET}",
        "region": "us-east-1",
        "single_writer": "${SINGLE:-false}",
        "parquet": {"upload_parallelism": "${PARALLEL}", "partition_strategy": "${STRATEGY}"},
    }

    validator("destination").validate(document)
