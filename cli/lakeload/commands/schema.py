"""`lakeload schema`: JSON Schema for editors."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

import typer
from pydantic.json_schema import models_json_schema

from lakeload.documents.destination import Destination
from lakeload.documents.pipeline import pipeline_model
from lakeload.sources.registry import SOURCES
from lakeload.ui.console import show_json


class DocumentKind(StrEnum):
    """The two documents."""

    DESTINATION = "destination"
    PIPELINE = "pipeline"


def schema(
    kind: Annotated[DocumentKind, typer.Argument(help="The configuration file to describe.")],
) -> None:
    """Print the JSON Schema of a configuration file, for completion and checks in editors.

    Put `# yaml-language-server: $schema=FILE` on the first line of the file.
    """
    show_json(json_schema(kind.value))


DIALECT = "https://json-schema.org/draft/2020-12/schema"
_FILLED = {"type": "string", "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}"}
_ABOUT = ("title", "description", "default")
_CHECKED = ("enum", "const", "pattern", "minimum", "maximum", "oneOf")


def json_schema(kind: Literal["destination", "pipeline"]) -> dict[str, Any]:
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
