"""What the role may do with the KMS key of the files, and what the key's own policy must say.

https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html: S3 asks in the
role's name for GenerateDataKey to write and for Decrypt to read, and to finish an upload.
"""

from __future__ import annotations

from lakeload.policy.iam.model import Conditions, Place, PolicyDocument, Statement, place
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.core.aws_partitions import domain

_WRITES = ("kms:GenerateDataKey", "kms:Decrypt")


def key_statement(
    destination: DestinationSpec, account: str | None = None, *, read_only: bool = False
) -> Statement | None:
    """Return the statement for the key; None when none is named: `aws/s3` asks for none."""
    key = _key(destination, account)
    if key is None:
        return None
    resource, conditions = key
    what = "are decrypted" if read_only else "are encrypted and decrypted"
    return Statement(
        "UseKey",
        _WRITES[1:] if read_only else _WRITES,
        (resource,),
        f"files {what} with the key, in requests of S3 alone",
        conditions,
    )


def key_policy(destination: DestinationSpec, account: str | None = None) -> PolicyDocument | None:
    """Return what a key of another account has to say of the role; None for a key of its own.

    https://docs.aws.amazon.com/kms/latest/developerguide/key-policy-modifying-external-accounts.html
    """
    parts = (destination.encryption.kms_key_id or "").split(":")
    role = destination.credentials.role_arn
    own = place(destination, account)
    if len(parts) < 6 or own.account in ("*", parts[4]):
        return None
    statement = Statement(
        "AllowLakeload",
        _WRITES,
        ("*",),
        "in the key's own policy, `*` is the key itself",
        _through_s3(own),
        principals=(role or f"arn:{own.partition}:iam::{own.account}:root",),
    )
    return PolicyDocument("key", (statement,))


def _key(destination: DestinationSpec, account: str | None) -> tuple[str, Conditions] | None:
    """Return the key's ARN and the conditions; a policy cannot name a key by its alias.

    https://docs.aws.amazon.com/kms/latest/developerguide/alias-authorization.html
    """
    wanted = destination.encryption.kms_key_id
    if destination.encryption.type != "SSE_KMS" or not wanted:
        return None
    own = place(destination, account)
    if not wanted.startswith("arn:"):
        alias = wanted if wanted.startswith("alias/") else ""
        arn = own.arn("kms", "key/*" if alias else f"key/{wanted}")
    else:
        parts = wanted.split(":", 5)
        alias = parts[5] if parts[5].startswith("alias/") else ""
        arn = ":".join((*parts[:5], "key/*" if alias else parts[5]))
    conditions: dict[str, dict[str, str | tuple[str, ...]]] = dict(_through_s3(own))
    if alias:
        conditions["ForAnyValue:StringEquals"] = {"kms:ResourceAliases": alias}
    return arn, conditions


def _through_s3(own: Place) -> dict[str, dict[str, str | tuple[str, ...]]]:
    """Return the condition that it is S3 which asks; other partitions have other domains."""
    return {"StringEquals": {"kms:ViaService": f"s3.{own.region}.{domain(own.region)}"}}
