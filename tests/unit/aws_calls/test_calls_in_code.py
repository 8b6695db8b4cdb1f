"""Every call of AWS in the code exists, as written, at AWS; and errors name the right action."""

from __future__ import annotations

import ast
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


def test_no_call_escapes_the_finder() -> None:
    known = {name for service in SERVICES for name in operations(service)}
    # A method of AWS's name that is ours too proves nothing by being called.
    assert method_names(_sources()) & known <= {call.method for call in _calls()}
    assert len(_calls()) > 30
    assert {call.service for call in _calls()} >= {"s3", "sts", "glue", "secretsmanager", "ssm"}


@pytest.mark.parametrize("call", _calls(), ids=lambda call: f"{call.where}-{call.method}")
def test_a_call_is_one_that_the_service_has(call: Call) -> None:
    assert call.unresolved == "", "the names of its parameters are unknown"
    shape = service_model(call.service).operation_model(_operation(call)).input_shape
    members = set(shape.members) if shape else set()
    required = set(shape.required_members) if shape else set()
    assert call.parameters <= members
    assert required <= call.parameters


@pytest.mark.parametrize(
    ("service", "operation"), sorted({(call.service, _operation(call)) for call in _calls()})
)
def test_each_operation_needs_an_action_that_iam_knows(service: str, operation: str) -> None:
    known = known_action(action_of(service, operation))
    assert known is not None
    assert known["api_documentation_link"], "AWS documents the action"


@pytest.mark.parametrize("name", ACTIONS)
def test_an_operation_is_in_the_table_only_because_its_action_has_another_name(name: str) -> None:
    service, _, operation = name.partition(":")
    action, page = ACTIONS[name]
    assert operation in service_model(service).operation_names
    assert known_action(name) is None
    assert known_action(action) is not None
    assert page.endswith(f"API_{operation}.html")


@pytest.mark.parametrize(
    ("service", "operation"),
    sorted({(call.service, _operation(call)) for call in _calls() if call.service != "sts"}),
)
def test_a_refusal_names_the_action_that_is_missing(service: str, operation: str) -> None:
    denied = ClientError(
        {"Error": {"Code": "AccessDenied", "Message": ""}, "ResponseMetadata": {}},  # type: ignore[typeddict-item]
        operation,
    )
    with pytest.raises(AwsError) as caught, aws_call("asking"):
        raise denied
    action = action_of(service, operation)
    # Glue's own wrapper adds the service (aws/glue_calls.py), as it adds the resources.
    named = operation if service == "glue" else action
    assert f"allow `{named}`" in (caught.value.hint or "")


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
"""


def test_the_finder_sees_clients_paginators_and_named_arguments() -> None:
    found = calls(Sources({Path("sample.py"): ast.parse(SAMPLE)}))
    assert {(c.service, c.method, tuple(sorted(c.parameters)), c.unresolved) for c in found} == {
        ("s3", "list_objects_v2", ("Bucket", "Prefix"), ""),
        ("s3", "list_multipart_uploads", ("Bucket",), ""),
        ("glue", "get_tables", ("DatabaseName",), "unknown"),
        ("ssm", "get_parameter", ("Name",), ""),
        ("kms", "describe_key", ("KeyId",), ""),
        ("s3", "delete_object", ("IfMatch", "Key"), ""),
    }
