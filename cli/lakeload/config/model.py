"""Base of all configuration models: strict validation and its messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from lakeload.config.secret_names import absolute_reference
from lakeload_jobs.contract.secrets import SecretReference

FINDINGS = "findings"


class Model(BaseModel):
    """Immutable, no unknown keys, no conversions; errors never hold input values."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        hide_input_in_errors=True,
        validate_default=False,
        use_attribute_docstrings=True,
    )


def setting(default: Any, defaults: str) -> Any:
    """Declare a field whose default depends on other settings: `defaults` are those."""
    return Field(default=default, json_schema_extra={"defaults": defaults})


@dataclass(frozen=True)
class Finding:
    """What a rule found. `at` leads from the value that was checked to the setting meant."""

    message: str
    hint: str | None = None
    at: tuple[str | int, ...] = ()
    code: str = "invalid"


def refusal(message: str, hint: str | None = None, *, code: str = "invalid") -> PydanticCustomError:
    """Build the error a validator raises about its own value."""
    return refusals([Finding(message, hint, code=code)])


def refusals(findings: Sequence[Finding]) -> PydanticCustomError:
    """Build one error that carries several findings, each with its own place."""
    return PydanticCustomError("findings", "rejected by a rule", {FINDINGS: tuple(findings)})


def first_finding(error: ValidationError) -> Finding | None:
    """Return the first finding of a rule in an error of pydantic."""
    details = error.errors(include_url=False, include_input=False)
    found = (one for detail in details for one in detail.get("ctx", {}).get(FINDINGS, ()))
    return next(found, None)


@dataclass(frozen=True)
class Called:
    """What the reference page calls a type; pydantic ignores it."""

    name: str


def not_yet(what: str, hint: str | None = None) -> Finding:
    """Say that a setting is agreed on but not built."""
    return Finding(f"{what} is not supported yet", hint, code="not-supported-yet")


def checked(check: Callable[[str], str]) -> Callable[[Any], Any]:
    """Apply `check` to text and leave other values to pydantic's own message."""

    def validate(given: Any) -> Any:
        return check(given) if isinstance(given, str) else given

    return validate


S = TypeVar("S")


def spec_of(kind: Callable[..., S], model: BaseModel, folder: Path, **other: Any) -> S:
    """Return the contract's form of a model: its fields of the same names, and the `other` ones.

    Files of secrets become absolute, and empty mappings None. `kind` is a dataclass.
    """
    names = {field.name for field in fields(cast(Any, kind))} & set(type(model).model_fields)
    same = {name: _resolved(getattr(model, name), folder) for name in names - set(other)}
    return kind(**same, **other)


def _resolved(value: Any, folder: Path) -> Any:
    if isinstance(value, dict):
        return {name: _resolved(item, folder) for name, item in value.items()} or None
    return absolute_reference(value, folder) if isinstance(value, SecretReference) else value
