"""Reader options as documents write them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from lakeload_jobs.sources.files.text.options import option_text


def _option_values(given: Any) -> Any:
    """Options are text; booleans, whole numbers and lists of texts may be written as such."""
    if not isinstance(given, dict):
        return given
    return {name: option_text(value) for name, value in given.items()}


Options = Annotated[
    dict[str, str],
    BeforeValidator(_option_values),
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": {"type": ["string", "boolean", "integer", "array"]},
        }
    ),
]
