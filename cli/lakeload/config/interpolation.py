"""`${NAME}` and `${NAME:-default}` in plain settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lakeload.config.secret_names import VARIABLE_NAME

_REFERENCE = re.compile(
    rf"\$\$\{{|\$\{{(?P<name>{VARIABLE_NAME.pattern})(?::-(?P<default>(?:[^}}$]|\$(?!\{{))*))?\}}|\$\{{"
)
_MAX_UNFILLED = 5
"""As many references of one text are reported."""


@dataclass(frozen=True)
class Unfilled:
    """A reference that could not be filled; `offset` is its place in the text."""

    message: str
    hint: str
    offset: int
    length: int


def fill(text: str, environment: Mapping[str, str]) -> tuple[str, tuple[Unfilled, ...]]:
    """Return the text with references replaced, and those that could not be.

    `$${` stands for a literal `${`. As in a shell, the default also replaces an empty value.
    """
    unfilled: list[Unfilled] = []

    def replacement(match: re.Match[str]) -> str:
        if match[0] == "$${":
            return "${"
        name: str | None = match["name"]
        default: str | None = match["default"]
        if len(unfilled) == _MAX_UNFILLED:
            return match[0]
        if name is None:
            unfilled.append(_malformed(match.start()))
            return match[0]
        value = environment.get(name)
        if value is None and default is None:
            unfilled.append(_unset(name, match))
            return match[0]
        return value or default or ""

    filled = _REFERENCE.sub(replacement, text) if "${" in text else text
    return filled, tuple(unfilled)


def _unset(name: str, match: re.Match[str]) -> Unfilled:
    return Unfilled(
        f"the environment variable `{name}` is not set",
        f"export {name}=… before running lakeload, or give a default: `${{{name}:-…}}`",
        match.start(),
        len(match[0]),
    )


def _malformed(offset: int) -> Unfilled:
    return Unfilled(
        "`${` begins a reference to an environment variable, and this is none",
        "write `${NAME}` or `${NAME:-default}`; a literal `${` is written `$${`",
        offset,
        2,
    )
