"""The models as a tree: which model describes the mapping at a location."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Sequence
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from lakeload.config.locate import join


def model_at(model: type[BaseModel], location: Sequence[str | int]) -> type[BaseModel] | None:
    """Return the model of the mapping at `location`, None where there is none."""
    current: Any = model
    for part in location:
        if isinstance(part, int):
            continue
        found = _model_in(current)
        if found is None:
            return None
        if part in found.model_fields:
            current = found.model_fields[part].annotation
        elif not part.startswith("("):
            return None
    return _model_in(current)


def sections(model: type[BaseModel], path: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield every mapping of a document with its path: `("", Pipeline)`, `("tables[]", Table)`."""
    yield path, model
    for name, field in model.model_fields.items():
        below = _model_in(field.annotation)
        if below is not None:
            is_list = get_origin(field.annotation) is tuple
            yield from sections(below, join(path, name) + ("[]" if is_list else ""))


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (tuple, typing.Union, types.UnionType, typing.Annotated):
        found = [model for item in get_args(annotation) if (model := _model_in(item))]
        # Which of several is meant, a tag tells before there is a model (documents.pipeline).
        assert len(found) <= 1, f"{annotation} has more than one model"  # noqa: S101
        return found[0] if found else None
    return None


def literals(annotation: Any) -> list[Any]:
    """Return the values of a `Literal`, at whatever depth of an annotation."""
    if get_origin(annotation) is typing.Literal:
        return list(get_args(annotation))
    return [value for argument in get_args(annotation) for value in literals(argument)]


def allowed_range(owner: type[BaseModel], field: str) -> str:
    """Say between which numbers a field's value lies."""
    limits = owner.model_fields[field].metadata
    low = next(item.ge for item in limits if hasattr(item, "ge"))
    high = next(item.le for item in limits if hasattr(item, "le"))
    return f"it can be {low} to {high}"
