"""IAM statements and documents as values; whoever shows them decides how (DESIGN section 8)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

Conditions = Mapping[str, Mapping[str, str | tuple[str, ...]]]
"""Operator → condition key → the values allowed."""

MANAGED_POLICY_LIMIT = 6144
"""Characters of a managed policy, white space not counted.
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"""
INLINE_POLICY_LIMITS = {"user": 2048, "role": 10240}
"""Characters of all policies that are embedded in a user or role (same page)."""
LAST_CHARACTER = "\u00ff"
"""The last one of Unicode that a document may hold (same page)."""
TRUST_POLICY_LIMIT = 2048
"""Characters of a role's trust policy, unless the account's quota was raised (same page)."""


@dataclass(frozen=True)
class Statement:
    """One permission. Its effect is always Allow; `why` is a sentence for people, no part of it.

    A statement of a trust or key policy has `principals`; one of a trust policy no `resources`.
    """

    sid: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    why: str
    conditions: Conditions = field(default_factory=dict)
    principals: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """Return the statement as IAM reads it; one value stands alone, several in a list."""
        document: dict[str, object] = {"Sid": self.sid, "Effect": "Allow"}
        if self.principals:
            document["Principal"] = {"AWS": _one_or_list(self.principals)}
        document["Action"] = _one_or_list(self.actions)
        if self.resources:
            document["Resource"] = _one_or_list(self.resources)
        if self.conditions:
            document["Condition"] = {
                operator: {key: _one_or_list(values) for key, values in keys.items()}
                for operator, keys in self.conditions.items()
            }
        return document


@dataclass(frozen=True)
class PolicyDocument:
    """Statements that belong together, under the name that `lakeload policy --only` takes."""

    name: str
    statements: tuple[Statement, ...]

    @property
    def size(self) -> int:
        """Characters as IAM counts them, white space left out.

        https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
        """
        text = json.dumps(self.as_json(), separators=(",", ":"), ensure_ascii=False)
        return len("".join(text.split()))

    def as_json(self) -> dict[str, object]:
        """Return the document as IAM reads it. Policy variables need this version."""
        return {
            "Version": "2012-10-17",
            "Statement": [statement.as_json() for statement in self.statements],
        }


def _one_or_list(values: str | tuple[str, ...]) -> str | list[str]:
    if isinstance(values, str):
        return values
    return values[0] if len(values) == 1 else list(values)
