"""What all document models share: strictness, and how they say no."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

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
    return PydanticCustomError("findings", "refused by a rule", {FINDINGS: tuple(findings)})


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
