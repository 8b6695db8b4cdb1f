"""What is read out of a denial's text, which AWS documents and other stores word differently."""

from __future__ import annotations

import pytest

from lakeload.probes.causes import (
    Refusal,
    grant_hint,
    is_lake_formation,
    likely_causes,
    read_refusal,
)
from lakeload.probes.runner import Probe, failure_of
from lakeload_jobs.aws import AwsError

USER = "User: arn:aws:sts::123456789012:assumed-role/loader/x is not authorized to perform: "

PUT = Probe(
    name="put",
    proves="",
    action="s3:PutObject",
    resource="arn",
    run=lambda: "",
    explain=likely_causes,
)


@pytest.mark.parametrize(
    ("text", "action", "policy", "explicit"),
    [
        (
            's3:PutObject on resource: "arn:aws:s3:::b/k" because no identity-based policy allows '
            "the s3:PutObject action",
            *("s3:PutObject", "a policy of the role or user", False),
        ),
        (
            's3:ListBucket on resource: "arn:aws:s3:::b" with an explicit deny in a resource-based '
            "policy",
            *("s3:ListBucket", "the policy of the resource itself (bucket, key or catalog)", True),
        ),
        (
            "kms:Decrypt on resource: arn:aws:kms:us-east-1:1:key/2 because no resource-based "
            "policy allows the kms:Decrypt action",
            *("kms:Decrypt", "the policy of the resource itself (bucket, key or catalog)", False),
        ),
        (
            "s3:PutObject on resource: arn with an explicit deny in a service control policy: "
            "arn:aws:organizations::1:policy/o-1/service_control_policy/p-1",
            *("s3:PutObject", "an SCP of the organization", True),
        ),
        (
            "sts:AssumeRole on resource: arn because no VPC endpoint policy allows the "
            "sts:AssumeRole action",
            *("sts:AssumeRole", "the policy of the VPC endpoint", False),
        ),
        (
            "s3:GetObject on resource: arn because no permissions boundary allows the s3:GetObject "
            "action",
            *("s3:GetObject", "the permissions boundary of the role or user", False),
        ),
        ("s3:GetObject on resource: arn with an explicit deny", "s3:GetObject", "", True),
    ],
)
def test_denial_names_action_and_policy(
    text: str, action: str, policy: str, explicit: bool
) -> None:
    assert read_refusal(USER + text) == Refusal(action, policy, explicit)


@pytest.mark.parametrize("text", ["Access Denied", "Forbidden", ""])
def test_denial_without_a_text_is_classified_by_its_code(text: str) -> None:
    assert read_refusal(text) is None
    error = AwsError(text, code="AccessDenied", status=403)
    assert likely_causes(error, denied=("a", "b")) == ("a", "b")


def test_explicit_deny_suggests_no_grant() -> None:
    text = f"{USER}s3:PutObject on resource: arn with an explicit deny in an identity-based policy"
    error = AwsError(text, code="AccessDenied", status=403)
    first, *rest = likely_causes(error, denied=("a", "b"))
    assert first.startswith("a policy of the role or user has a Deny for s3:PutObject")
    assert rest == []
    assert failure_of(error, PUT).denied == ""


def test_lake_formation_denial_is_distinguished_from_iam() -> None:
    text = "Insufficient Lake Formation permission(s): Required Create Database on Catalog"
    assert is_lake_formation(AwsError(text, code="AccessDeniedException", status=400))
    assert not is_lake_formation(AwsError(text, code="InternalServiceException", status=500))
    assert not is_lake_formation(AwsError(USER, code="AccessDeniedException", status=400))


def test_missing_lake_formation_grant_suggests_no_iam_statement() -> None:
    text = "Insufficient Lake Formation permission(s): Required Create Database on Catalog"
    error = AwsError(text, code="AccessDeniedException", status=400)
    assert "grant `Create Database on Catalog`" in (grant_hint(error) or "")
    assert "has no grant for the role" in likely_causes(error, denied=("a",))[0]
    probe = Probe(
        name="glue-create-database",
        proves="",
        action="glue:CreateDatabase",
        resource="arn",
        run=lambda: "",
        explain=likely_causes,
    )
    assert failure_of(error, probe).denied == ""


def test_a_denial_names_the_action_that_was_denied_or_the_probes() -> None:
    of_key = AwsError(f"{USER}kms:GenerateDataKey on resource", code="AccessDenied", status=403)
    silent = AwsError("Access Denied", code="AccessDenied", status=403)
    assert failure_of(of_key, PUT).denied == "kms:GenerateDataKey"
    assert failure_of(silent, PUT).denied == "s3:PutObject"
