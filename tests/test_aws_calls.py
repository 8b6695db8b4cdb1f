"""Every call of AWS in the code exists, as written, at AWS; and errors name the right action."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from lakeload_jobs.aws import AwsError, aws_call
from tests.aws_calls import (
    ACTIONS,
    Call,
    Sources,
    action_of,
    calls,
    known_action,
    method_names,
    operations,
    read,
    service_model,
)

SERVICES = ("s3", "sts", "glue", "kms", "iam", "secretsmanager", "ssm", "lakeformation", "athena")


@cache
def _sources() -> Sources:
    return read()


@cache
def _calls() -> tuple[Call, ...]:
    return tuple(calls(_sources()))


def _operation(call: Call) -> str:
    return operations(call.service)[call.method]


def test_every_aws_call_is_found() -> None:
    known = {name for service in SERVICES for name in operations(service)}
    # A method of AWS's name that is ours too, or psycopg's, proves nothing by being called.
    known -= {"get_parameters"}
    assert method_names(_sources()) & known <= {call.method for call in _calls()}
    assert len(_calls()) > 30
    assert {call.service for call in _calls()} >= {"s3", "sts", "glue", "secretsmanager", "ssm"}


def test_every_aws_call_exists_in_the_service() -> None:
    # Not a case for each: every process that collects tests would read all of the code.
    wrong = [problem for call in _calls() for problem in _problems(call)]
    assert wrong == []


def _problems(call: Call) -> Iterator[str]:
    where = f"{call.where}: {call.service}.{call.method}"
    if call.unresolved:
        yield f"{where}: the names of its parameters are unknown: {call.unresolved}"
    shape = service_model(call.service).operation_model(_operation(call)).input_shape
    members = set(shape.members) if shape else set()
    required = set(shape.required_members) if shape else set()
    if unknown := call.parameters - members:
        yield f"{where} has no {sorted(unknown)}"
    if missing := required - call.parameters:
        yield f"{where} needs {sorted(missing)}"


def test_invalid_aws_call_is_detected() -> None:
    call = Call("s3", "get_object", frozenset({"Bucket", "Name"}), "x.py:1", "more")
    assert list(_problems(call)) == [
        "x.py:1: s3.get_object: the names of its parameters are unknown: more",
        "x.py:1: s3.get_object has no ['Name']",
        "x.py:1: s3.get_object needs ['Key']",
    ]


def test_each_operation_needs_an_action_that_iam_knows() -> None:
    actions = {action_of(call.service, _operation(call)) for call in _calls()}
    known = {action: known_action(action) for action in actions}
    assert [action for action, found in known.items() if found is None] == []
    undocumented = [a for a, found in known.items() if not (found or {})["api_documentation_link"]]
    assert undocumented == [], "AWS documents the actions"


@pytest.mark.parametrize("name", ACTIONS)
def test_operation_table_lists_only_operations_with_another_action_name(name: str) -> None:
    service, _, operation = name.partition(":")
    action, page = ACTIONS[name]
    assert operation in service_model(service).operation_names
    assert known_action(name) is None
    assert known_action(action) is not None
    assert page.endswith(f"API_{operation}.html")


def test_denied_operation_names_the_missing_action() -> None:
    used = {(call.service, _operation(call)) for call in _calls() if call.service != "sts"}
    assert {(*one, _hint(*one)) for one in used} == {(*one, _named(*one)) for one in used}


def _hint(_: str, operation: str) -> str:
    """Return what the error says is to be allowed."""
    denied = ClientError(
        {"Error": {"Code": "AccessDenied", "Message": ""}, "ResponseMetadata": {}},  # type: ignore[typeddict-item]
        operation,
    )
    with pytest.raises(AwsError) as caught, aws_call("asking"):
        raise denied
    found = re.search(r"allow `([^`]+)`", caught.value.hint or "")
    return found[1] if found else ""


def _named(service: str, operation: str) -> str:
    # Glue's own wrapper adds the service (aws/glue_calls.py), as it adds the resources.
    return operation if service == "glue" else action_of(service, operation)


SAMPLE = """
class Session:
    @property
    def s3(self) -> S3Client: ...

class More(TypedDict):
    IfMatch: str

class One:
    extra: More
    def go(self, other: GlueClient):
        request = {"Bucket": "b"}
        request["Prefix"] = "p"
        self._session.s3.list_objects_v2(**request)
        pages = self._session.s3.get_paginator("list_multipart_uploads")
        def inner():
            other.get_tables(DatabaseName="d", **unknown)
        for page in pages.paginate(Bucket="b"): ...
        client = self._build(base, "ssm")
        client.get_parameter(Name="n")
        client = self._build(base, "kms")
        client.describe_key(KeyId="k")
        self._session.s3.delete_object(Key="k", **self.extra)
        self.endpoints.s3.startswith("https")
        self.client("place").put_object(Body=b"")

    def client(self, place: str) -> S3Client:
        return self.s3
"""


def test_call_finder_detects_clients_paginators_and_keywords() -> None:
    found = calls(Sources({Path("sample.py"): ast.parse(SAMPLE)}))
    assert {(c.service, c.method, tuple(sorted(c.parameters)), c.unresolved) for c in found} == {
        ("s3", "list_objects_v2", ("Bucket", "Prefix"), ""),
        ("s3", "list_multipart_uploads", ("Bucket",), ""),
        ("glue", "get_tables", ("DatabaseName",), "unknown"),
        ("ssm", "get_parameter", ("Name",), ""),
        ("kms", "describe_key", ("KeyId",), ""),
        ("s3", "delete_object", ("IfMatch", "Key"), ""),
        ("s3", "put_object", ("Body",), ""),
    }
