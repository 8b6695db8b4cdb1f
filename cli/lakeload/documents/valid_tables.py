"""The tables of a pipeline that can be looked at, whatever is wrong with the others."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from lakeload.documents.pipeline import Table, table_model
from lakeload.sources.registry import source_type_of

Numbered = list[tuple[int, Table]]
"""Each with its place in the document."""


def valid_tables(data: dict[str, Any]) -> Numbered:
    """Return the tables of a pipeline's document that are valid by themselves."""
    raw, model = data.get("tables"), table_model(source_type_of(data))
    found: Numbered = []
    for i, item in enumerate(raw if isinstance(raw, tuple) else ()):
        try:
            found.append((i, model.model_validate(item)))
        except ValidationError:
            continue
    return found
