"""The IAM documents of the embedded AWS: those that `lakeload policy` writes."""

from __future__ import annotations

from lakeload.demo.aws_admin import Policy
from lakeload.policy.iam.base import base_policy
from lakeload.policy.iam.iam import role_policies
from lakeload.policy.iam.model import PolicyDocument
from lakeload.policy.iam.trust import Principal
from lakeload.policy.iam.trust import trust_policy as trust_document
from lakeload_jobs.contract.spec import CredentialsSpec, DestinationSpec

REGION = "us-east-1"


def allow_assume_role(role_arn: str) -> Policy:
    """Return the base identity's policy: nothing but sts:AssumeRole on the role."""
    credentials = CredentialsSpec(role_arn=role_arn)
    destination = DestinationSpec("any", REGION, credentials=credentials)
    document = base_policy(destination, account=None, assumes=True)
    return (document or PolicyDocument("base", ())).as_json()


def trust_policy(principal: str, external_id: str | None) -> Policy:
    """Return a trust policy for `principal`; with an ExternalId it demands it (F11)."""
    return trust_document([Principal(principal, external_id)]).as_json()


def loader_policy(bucket: str, prefix: str) -> Policy:
    """Return the least a Parquet load needs on S3 (DESIGN section 8): no deletion of data."""
    (document,) = role_policies(DestinationSpec(bucket, REGION, prefix))
    return document.as_json()


def destination_policy(destination: DestinationSpec) -> Policy:
    """Return everything that `lakeload policy` writes for the destination, as one document."""
    statements = (one for document in role_policies(destination) for one in document.statements)
    return PolicyDocument("all", tuple(statements)).as_json()


def embedded_policy(destination: DestinationSpec) -> Policy:
    """Return the same for the embedded AWS: where AWS checks a call on a database of Glue against
    that database, the emulator looks for a table of its name."""
    whole = dict(destination_policy(destination))
    table = f"arn:aws:glue:{destination.region}:*:table/{destination.glue_database_prefix}"
    quirks = [
        {"Effect": "Allow", "Action": "glue:GetDatabase", "Resource": f"{table}*"},
        {
            "Effect": "Allow",
            "Action": "glue:DeleteDatabase",
            "Resource": f"{table}_lakeload_probe_*",
        },
    ]
    statements = whole["Statement"]
    return {**whole, "Statement": [*(statements if isinstance(statements, list) else []), *quirks]}
