"""`lakeload schema`: JSON Schema of configuration files, for editors, and of results."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from lakeload.documents.destination import Destination
from lakeload.documents.pipeline import pipeline_model
from lakeload.sources.registry import SOURCES
from lakeload.ui.console import show_json


class DocumentKind(StrEnum):
    """The two configuration files, and the commands whose results have a schema."""

    DESTINATION = "destination"
    PIPELINE = "pipeline"
    INIT = "init"
    IMPORT = "import"
    INSPECT = "inspect"
    VALIDATE = "validate"
    TEST_CONNECTION = "test-connection"
    DOCTOR = "doctor"
    PLAN = "plan"
    SYNC = "sync"
    RECOVER = "recover"
    RUNS = "runs"
    STATUS = "status"
    RESET = "reset"
    MAINTAIN = "maintain"
    JARS = "jars"
    LAKE = "lake"


RESULTS: Mapping[str, tuple[str, ...]] = {
    "init": ("json_documents:InitDocument",),
    "import": ("json_documents:ImportDocument",),
    "inspect": ("json_documents:InspectDocument",),
    "validate": ("json_documents:ValidateDocument",),
    "test-connection": ("checks:ConnectionDocument",),
    "doctor": ("checks:DoctorDocument",),
    "plan": ("plan:PlanDocument",),
    "sync": ("json_documents:SyncDocument", "plan:PlanDocument"),
    "recover": ("recover:RecoverDocument", "recover:ResolutionDocument"),
    "runs": (
        "runs:RunsDocument",
        "runs:LocalRunsDocument",
        "history:HistoryJob",
    ),
    "status": ("json_documents:StatusDocument",),
    "reset": ("json_documents:ResetDocument",),
    "maintain": ("json_documents:MaintainDocument",),
    "jars": ("json_documents:JarsDocument",),
    "lake": ("lake:LakeState", "lake:Answer"),
}
"""The types of the documents that a command prints, in `lakeload.ui`. They are imported when one
is asked for: that of a plan imports much."""


def schema(
    kind: Annotated[
        DocumentKind,
        typer.Argument(
            help="A configuration file (`destination`, `pipeline`), or the command whose "
            "`--output json` to describe."
        ),
    ],
) -> None:
    """Print the JSON Schema of a configuration file, or of a command's `--output json`.

    For completion and checks in editors, put `# yaml-language-server: $schema=FILE` on the first
    line of a configuration file.
    """
    name = kind.value
    show_json(result_schema(name) if name in RESULTS else json_schema(name))


def result_schema(command: str) -> dict[str, Any]:
    """Return the schema of what a command prints with `--output json`, errors included."""
    found = []
    for place in (*RESULTS[command], "json_documents:FailedDocument"):
        module, _, name = place.partition(":")
        found.append(getattr(importlib.import_module(f"lakeload.ui.{module}"), name))
    mode: JsonSchemaMode = "serialization"
    schemas, shared = TypeAdapter.json_schemas(
        [(number, mode, TypeAdapter(kind)) for number, kind in enumerate(found)]
    )
    return {
        "$schema": DIALECT,
        "title": f"lakeload {command} --output json",
        "anyOf": [schemas[number, mode] for number in range(len(found))],
        **shared,
    }


DIALECT = "https://json-schema.org/draft/2020-12/schema"
_FILLED = {"type": "string", "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}"}
_ABOUT = ("title", "description", "default")
_CHECKED = ("enum", "const", "pattern", "minimum", "maximum", "oneOf")


def json_schema(kind: str) -> dict[str, Any]:
    """Return the schema of a document as it is written, `${NAME}` included."""
    schema = Destination.model_json_schema() if kind == "destination" else _pipelines()
    definitions = schema.get("$defs", {})
    for part in (schema, *definitions.values()):
        for name, field in part.get("properties", {}).items():
            field.pop("defaults", None)
            part["properties"][name] = _fillable(field)
    title = f"lakeload {kind}"
    return {"$schema": DIALECT, **schema, "title": title}


def _pipelines() -> dict[str, Any]:
    """Return the schema of pipelines; one variant for each source type where there are several."""
    models = [pipeline_model(source) for source in SOURCES.values()]
    if len(models) == 1:
        return models[0].model_json_schema()
    schemas, shared = models_json_schema(
        [(model, "validation") for model in models], ref_template="#/$defs/{model}"
    )
    return {"oneOf": [schemas[model, "validation"] for model in models], **shared}


def _fillable(field: dict[str, Any]) -> dict[str, Any]:
    """Let a setting that is not free text be filled from the environment as well."""
    checked = any(word in field for word in _CHECKED)
    if not checked and field.get("type") not in ("integer", "boolean"):
        return field
    about: dict[str, Any] = {word: field[word] for word in _ABOUT if word in field}
    rest = {word: value for word, value in field.items() if word not in about}
    return {**about, "anyOf": [rest, _FILLED]}
