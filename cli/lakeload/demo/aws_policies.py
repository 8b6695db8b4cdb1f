"""The IAM documents of the embedded AWS: what a careful owner of a lake would write."""

from __future__ import annotations

from lakeload.demo.aws_admin import Policy


def allow_assume_role(role_arn: str) -> Policy:
    """Return the base identity's policy: nothing but sts:AssumeRole on the role."""
    return _policy(_allow(["sts:AssumeRole"], role_arn))


def trust_policy(principal: str, external_id: str | None) -> Policy:
    """Return a trust policy for `principal`; with an ExternalId it demands it (F11)."""
    statement: dict[str, object] = {
        "Effect": "Allow",
        "Principal": {"AWS": principal},
        "Action": "sts:AssumeRole",
    }
    if external_id is not None:
        statement["Condition"] = {"StringEquals": {"sts:ExternalId": external_id}}
    return _policy(statement)


def loader_policy(bucket: str, prefix: str) -> Policy:
    """Return the least a Parquet load needs on S3 (DESIGN section 8): no deletion of data."""
    arn = f"arn:aws:s3:::{bucket}"
    below = f"{arn}/{prefix}/" if prefix else f"{arn}/"
    listing = _allow(["s3:ListBucket"], arn)
    if prefix:
        listing["Condition"] = {"StringLike": {"s3:prefix": f"{prefix}/*"}}
    return _policy(
        listing,
        # Neither action has the condition key s3:prefix: with one, both would always be denied.
        _allow(["s3:GetBucketLocation", "s3:ListBucketMultipartUploads"], arn),
        _allow(
            [
                "s3:PutObject",
                "s3:GetObject",
                "s3:AbortMultipartUpload",
                "s3:ListMultipartUploadParts",
            ],
            f"{below}*",
        ),
        _allow(["s3:DeleteObject"], f"{below}_lakeload/probe/*"),
    )


def _allow(actions: list[str], resource: str) -> dict[str, object]:
    return {"Effect": "Allow", "Action": actions, "Resource": resource}


def _policy(*statements: dict[str, object]) -> Policy:
    return {"Version": "2012-10-17", "Statement": list(statements)}
