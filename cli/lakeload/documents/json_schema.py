"""JSON Schema (draft 2020-12) of the documents, from the models."""

from __future__ import annotations

from typing import Any, Literal

from lakeload.documents.destination import Destination
from lakeload.documents.pipeline import Pipeline

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_FILLED = {"type": "string", "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}"}
_ABOUT = ("title", "description", "default")
_CHECKED = ("enum", "const", "pattern", "minimum", "maximum", "oneOf")


def json_schema(kind: Literal["destination", "pipeline"]) -> dict[str, Any]:
    """Return the schema of a document as it is written, `${NAME}` included."""
    model = Destination if kind == "destination" else Pipeline
    schema = model.model_json_schema(mode="validation")
    definitions = schema.get("$defs", {})
    for part in (schema, *definitions.values()):
        for name, field in part.get("properties", {}).items():
            for ours in ("features", "defaults"):
                field.pop(ours, None)
            part["properties"][name] = _fillable(field)
    title = f"lakeload {kind}"
    return {"$schema": DIALECT, **schema, "title": title}


def _fillable(field: dict[str, Any]) -> dict[str, Any]:
    """Let a setting that is not free text be filled from the environment as well."""
    checked = any(word in field for word in _CHECKED)
    if not checked and field.get("type") not in ("integer", "boolean"):
        return field
    about: dict[str, Any] = {word: field[word] for word in _ABOUT if word in field}
    rest = {word: value for word, value in field.items() if word not in about}
    return {**about, "anyOf": [rest, _FILLED]}
