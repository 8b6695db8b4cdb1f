"""IAM policies as values: statements, ARNs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.contract.traits import catalog_of, needs_aws_identity
from lakeload_jobs.core.aws_partitions import AWS_DOMAINS, partition

_SPECIAL = re.compile(r"[*?$]")


@dataclass(frozen=True)
class Place:
    """Where the destination lies in AWS: what its ARNs begin with."""

    partition: str
    region: str
    account: str
    """12 digits, or `*` where nothing says whose it is."""

    def arn(self, service: str, resource: str, *, account: str | None = None) -> str:
        """Return the ARN of a regional resource of the account."""
        owner = account or self.account
        return f"arn:{self.partition}:{service}:{self.region}:{owner}:{resource}"

    def s3(self, bucket: str, key: str = "") -> str:
        """Return the ARN of a bucket or, with a key or a pattern of keys, of its objects."""
        return f"arn:{self.partition}:s3:::{bucket}" + (f"/{key}" if key else "")


def place(destination: DestinationSpec, account: str | None = None) -> Place:
    """Return the place; the account is the one given, else the role's, else any."""
    role = (destination.credentials.role_arn or "").split(":")
    owner = account or (role[4] if len(role) > 4 else "*")
    return Place(partition(destination.region), destination.region, owner)


def other_store(destination: DestinationSpec) -> str | None:
    """Return host and port of a store that is not AWS's; None for one of AWS's own endpoints."""
    parts = urlsplit(destination.endpoints.s3 or "")
    if not parts.hostname or parts.hostname.endswith(AWS_DOMAINS):
        return None
    return parts.netloc.rpartition("@")[2]


def role_is_catalogs(destination: DestinationSpec) -> bool:
    """Whether the role that reaches the files is one that the catalog assumes.

    It vends credentials of that role, and whoever loads needs no identity of AWS.
    """
    catalog = catalog_of(destination)
    return catalog is not None and not needs_aws_identity(catalog)


def literal(text: str) -> str:
    """Return text as an ARN pattern or a StringLike condition takes it by the letter.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html
    """
    return _SPECIAL.sub(lambda found: f"${{{found[0]}}}", text)


def below(prefix: str, *path: str) -> str:
    """Return the pattern of everything below a path in a bucket; no prefix is its root."""
    return "".join(f"{literal(part)}/" for part in (prefix, *path) if part) + "*"


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
