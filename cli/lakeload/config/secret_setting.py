"""A secret setting: a reference, never a value."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from lakeload.config.model import FINDINGS, Finding, refusal, refusals
from lakeload.config.secret_names import REFERENCE_KINDS, SHORTHAND, VARIABLE_NAME, shown
from lakeload_jobs.contract.secrets import SecretReference

_FORMS = "`{env: NAME}`, `{file: PATH}`, `{aws_secret: NAME}` or `{aws_parameter: NAME}`"
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_SCHEMA: dict[str, Any] = {
    "oneOf": [
        {"type": "string", "pattern": rf"^\$\{{{VARIABLE_NAME.pattern}\}}$"},
        *(
            {
                "type": "object",
                "properties": {kind: {"type": "string", "minLength": 1}},
                "required": [kind],
                "additionalProperties": False,
            }
            for kind in REFERENCE_KINDS
        ),
    ]
}


@dataclass(frozen=True)
class SecretSetting:
    """Marks a field as a secret setting.

    An own annotation and not a validator, because the messages name the setting.
    """

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        """Read references; pydantic calls it."""
        return core_schema.no_info_plain_validator_function(_reader(handler.field_name))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: Any) -> dict[str, Any]:
        """Describe references; pydantic calls it."""
        return dict(_SCHEMA)


Secret = Annotated[SecretReference | None, SecretSetting()]


@dataclass(frozen=True)
class SecretHeaders:
    """Marks a mapping from the names of HTTP headers to secret settings."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        """Read headers; pydantic calls it."""
        return core_schema.no_info_plain_validator_function(_headers)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: Any) -> dict[str, Any]:
        """Describe headers; pydantic calls it."""
        return {"type": "object", "additionalProperties": dict(_SCHEMA)}


def _headers(given: Any) -> dict[str, SecretReference]:
    if not isinstance(given, dict):
        raise refusal("`headers` is a mapping from names to secret references", f"write {_FORMS}")
    read: dict[str, SecretReference] = {}
    found: list[Finding] = []
    for name, value in given.items():
        if not _HEADER_NAME.fullmatch(name):
            message = f"`{shown(name)}` is not the name of an HTTP header"
            found.append(
                Finding(message, "write letters, digits and hyphens, as in `X-Request-Id`", (name,))
            )
            continue
        try:
            read[name] = _reader(name)(value)
        except PydanticCustomError as error:
            context = error.context or {}
            found += [replace(one, at=(name, *one.at)) for one in context[FINDINGS]]
    if found:
        raise refusals(found)
    return read


def literal_finding(name: str) -> Finding:
    """Refuse a literal value, with the two lines to write instead. The value is not shown."""
    variable = "LAKELOAD_" + re.sub(r"[^A-Z0-9]+", "_", name.upper())
    return Finding(
        f"`{name}` is a secret: use a reference, not its value",
        f"keep the value outside the file and write:\n  {name}:\n    env: {variable}",
        code="secret-literal",
    )


def _reader(name: str) -> Callable[[Any], SecretReference]:
    def read(given: Any) -> SecretReference:
        if isinstance(given, str):
            return _from_text(name, given)
        if not isinstance(given, dict) or len(given) != 1:
            raise refusal(f"`{name}` takes one reference", f"write {_FORMS}")
        [(kind, value)] = given.items()
        if kind not in REFERENCE_KINDS:
            raise refusal(f"`{name}` is not a kind of reference", f"write {_FORMS}")
        if not isinstance(value, str) or not value.strip():
            raise refusal(f"the reference of `{name}` has no name", f"write {_FORMS}")
        if kind == "env" and not VARIABLE_NAME.fullmatch(value):
            raise refusal(
                f"`env` of `{name}` takes the name of an environment variable",
                "a name has letters, digits and `_`, and does not begin with a digit",
            )
        return SecretReference(kind, value)

    return read


def _from_text(name: str, text: str) -> SecretReference:
    if match := SHORTHAND.fullmatch(text):
        return SecretReference("env", match[1])
    if not text.strip():
        raise refusal(f"`{name}` has no value", f"write {_FORMS}")
    if text.startswith("${") and ":-" in text:
        raise refusal(
            f"`{name}` is a secret and has no default",
            "write `{env: NAME}`, without `:-`",
            code="secret-literal",
        )
    raise refusals([literal_finding(name)])
