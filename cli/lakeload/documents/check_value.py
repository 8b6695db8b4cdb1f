"""One value for one setting, checked before there is a document."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from lakeload.config.model import FINDINGS, Finding
from lakeload.config.secret_names import shown


def value_finding(model: type[BaseModel], setting: str, value: str) -> Finding | None:
    """Say why text cannot be the value of a setting of `model`, or return None."""
    field = model.model_fields[setting]
    kind: Any = field.annotation
    if field.metadata:
        kind = Annotated[kind, *field.metadata]
    try:
        TypeAdapter(kind).validate_python(value, strict=True)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            for finding in detail.get("ctx", {}).get(FINDINGS, ()):
                assert isinstance(finding, Finding), "rules refuse with findings"  # noqa: S101
                return finding
        return Finding(f"`{shown(value)}` cannot be the value of `{setting}`")
    return None
