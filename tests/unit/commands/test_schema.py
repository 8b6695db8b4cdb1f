"""Schemas of results: valid, printed by the command, and able to fail."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from lakeload.app import COMMANDS, app
from lakeload.commands.schema import RESULTS, result_schema
from lakeload.ui.errors import error_json
from lakeload_jobs.contract.errors import Refused
from tests.json_documents import check

FAILED: dict[str, Any] = {"error": error_json(Refused("in `x`", hint="do y"))}

WITHOUT_JSON = {"schema", "policy", "demo"}
"""Commands whose output is a document of its own, or no result."""


def test_every_command_with_json_output_has_a_schema() -> None:
    assert set(RESULTS) == set(COMMANDS) - WITHOUT_JSON


@pytest.mark.parametrize("command", RESULTS)
def test_schema_of_a_result_is_valid_and_allows_new_keys(command: str) -> None:
    schema = result_schema(command)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    assert validator.is_valid({**FAILED, "new": 1})
    assert not validator.is_valid({})
    assert not validator.is_valid({"error": {"type": "Refused"}})


def test_schema_command_prints_the_schema_of_a_result() -> None:
    result = CliRunner().invoke(app, ["schema", "test-connection"])
    assert json.loads(result.stdout) == result_schema("test-connection")


def test_check_of_a_document_with_an_unknown_or_a_missing_key_fails() -> None:
    check(FAILED, "sync")
    with pytest.raises(AssertionError, match="unexpected"):
        check({**FAILED, "new": 1}, "sync")
    with pytest.raises(AssertionError, match="'valid' is a required property"):
        check({"files": [], "problems": []}, "validate")
