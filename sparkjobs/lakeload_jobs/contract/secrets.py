"""References to secrets. Documents and specs carry references; values live in one process."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, assert_never

from lakeload_jobs.contract.errors import InvalidInput

LAKE_KEYS = "lake-keys"
"""The folder with the keys of the lake of this machine (`lakeload lake`)."""
ReferenceKind = Literal["env", "file", "aws_secret", "aws_parameter"]


@dataclass(frozen=True)
class SecretReference:
    """Where a secret is found, never the secret: `{env: NAME}`, `{file: PATH}`, …"""

    kind: ReferenceKind
    name: str

    def __str__(self) -> str:
        return f"{{{self.kind}: {self.name}}}"


class Secret:
    """A secret value that shows itself only through `reveal`."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value, for the one call that needs it."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(****)"

    __str__ = __repr__

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a secret value must not leave its process; send the reference")


_SHORT = 4
"""Secrets of fewer characters may be part of any word: they are masked only as words."""


def without_secrets(text: str, values: Iterable[str]) -> str:
    """Return the text with `****` in place of the values of secrets."""
    # The longest first: an id may be a part of its secret.
    for value in sorted({value for value in values if value}, key=len, reverse=True):
        if len(value) >= _SHORT:
            text = text.replace(value, "****")
        else:
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", "****", text)
    return text


def resolve_locally(reference: SecretReference) -> Secret:
    """Return the value of an `env` or `file` reference (one final newline of a file is dropped).

    Raises `InvalidInput` when the variable is unset or empty or the file cannot be read.
    References into AWS are resolved by `lakeload_jobs.aws`.
    """
    match reference.kind:
        case "env":
            return _from_variable(reference.name)
        case "file":
            return _from_file(reference.name)
        case "aws_secret" | "aws_parameter":
            raise ValueError(f"{reference.kind} is not a local reference")
        case _:
            assert_never(reference.kind)


def _from_variable(name: str) -> Secret:
    value = os.environ.get(name)
    if not value:
        state = "not set" if value is None else "set and empty"
        raise InvalidInput(
            f"the environment variable `{name}` is {state}",
            hint=(
                f"export {name}=… before running this command; lakeload does not read "
                "`.env`; load it with `set -a; . ./.env; set +a`"
            ),
        )
    return Secret(value)


def _from_file(name: str) -> Secret:
    try:
        text = Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        of_lake = Path(name).parent.name == LAKE_KEYS
        raise InvalidInput(
            f"the secret file `{name}` cannot be read: {reason}",
            hint="`lakeload lake up` makes the keys of the lake of this machine"
            if of_lake
            else "create the file with the secret as its only content, mode 0600",
        ) from error
    return Secret(text.removesuffix("\n"))
