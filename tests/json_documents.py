"""JSON documents that commands print in tests, compared with the schemas that `lakeload schema`
publishes.

Consumers get open schemas, because keys are only ever added. Here they are closed: a key that no
schema has is an error.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

_COMMANDS = {
    "checks": ("test-connection", "doctor"),
    "validation": ("validate",),
    "import_configuration": ("import",),
    "plan_once": ("plan",),
}
"""Commands by the module that prints their document, where the names differ."""


def closed(schema: Any) -> Any:
    """Return a schema that allows no key beside those that it names."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(value) for key, value in schema.items()}
    return {**found, "additionalProperties": False} if "properties" in found else found


@functools.cache
def validator(command: str) -> Draft202012Validator:
    """Return the validator of a command's documents."""
    from lakeload.commands.schema import result_schema

    return Draft202012Validator(closed(result_schema(command)))


def check(document: Any, *commands: str) -> None:
    """Compare a document with the schemas of these commands; without any, with those of all."""
    # This module is read by every run, and the schemas take 0.2 seconds to import.
    from lakeload.commands.schema import RESULTS

    errors = []
    for name in commands or RESULTS:
        found = list(validator(name).iter_errors(document))
        if not found:
            return
        errors += [f"{name}: {error.json_path}: {error.message}" for error in _leaves(found)]
    raise AssertionError("no schema of `lakeload schema` fits:\n" + "\n".join(errors)[:8000])


def _leaves(errors: list[Any]) -> Iterator[Any]:
    for error in errors:
        if error.context:
            yield from _leaves(error.context)
        else:
            yield error


def checked(show_json: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return `show_json` that compares each document before it prints it."""

    def show(document: Any) -> None:
        from lakeload.commands.schema import RESULTS

        module = sys._getframe(1).f_globals["__name__"].rpartition(".")[2]
        commands = _COMMANDS.get(module, (module,))
        if commands[0] in RESULTS or module == "errors":
            check(document, *(() if module == "errors" else commands))
        show_json(document)

    return show


@pytest.fixture(scope="session", autouse=True)
def json_documents_have_schemas() -> Iterator[None]:
    """Compare every JSON document that a command prints in this process with its schema."""
    from lakeload.ui import console

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(console, "show_json", checked(console.show_json))
        yield
