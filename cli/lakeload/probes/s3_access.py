"""What IAM and KMS have to allow for a call of S3, why they may not, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator

from lakeload.policy.iam.arns import place
from lakeload.policy.iam.kms import key_statement
from lakeload.probes.causes import likely_causes, refusal
from lakeload.probes.model import Permission
from lakeload.probes.refusals import Refusal
from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.core.layout import probe_path

_OF_KEY = {
    # https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html
    "put": ("kms:GenerateDataKey",),
    "get": ("kms:Decrypt",),
    "upload": ("kms:GenerateDataKey", "kms:Decrypt"),
    "complete-upload": ("kms:GenerateDataKey", "kms:Decrypt"),
}


def resource(destination: DestinationSpec, *, of_bucket: bool) -> str:
    """Return the ARN of the bucket, or of the objects of the connection test."""
    arns = place(destination)
    if of_bucket:
        return arns.s3(destination.bucket)
    return arns.s3(destination.bucket, f"{probe_path(destination.prefix)}*")


def key_permissions(name: str, destination: DestinationSpec) -> tuple[Permission, ...]:
    """Return what the probe `name` takes of the KMS key; nothing without a key of one's own."""
    statement = key_statement(destination)
    if statement is None:
        return ()
    key = ", ".join(statement.resources)
    return tuple(Permission(action, key) for action in _OF_KEY.get(name, ()))


def explain(
    error: Exception, name: str, action: str, destination: DestinationSpec
) -> tuple[str, ...]:
    """Return the likely causes of a failure of the probe `name`, the likeliest first."""
    code = getattr(error, "code", "")
    if code in ("NotImplemented", "MethodNotAllowed") and name == "list-uploads":
        return ("the store does not offer this call: let a lifecycle rule remove old uploads",)
    if code == "NotImplemented" and destination.encryption.type != "NONE":
        lacking = f"the store has no {destination.encryption.type}: leave `encryption` out"
        return (lacking, *likely_causes(error))
    causes = likely_causes(error, denied=_denied(name, action, destination))
    told = refusal(error)
    if told and told.explicit:
        return (*causes, *_demanded(told, action, destination))
    if told and told.action.startswith("kms:"):
        return _key_causes(told, name, destination)
    return causes


def hint(error: AwsError, name: str, action: str, destination: DestinationSpec) -> str | None:
    """Return what to do about a denial; None where the error's own hint will do."""
    told = refusal(error)
    keys = key_permissions(name, destination)
    if told and told.explicit:
        what = told.policy or "one of the policies"
        return f"find the Deny for `{told.action or action}` in {what}, and remove or narrow it"
    if told and told.action.startswith("kms:"):
        key = f"`{keys[0].resource}`" if keys else "the bucket's default key"
        return f"allow `{told.action}` on {key} in the role's policy and in the key's own policy"
    if told and told.policy and not told.policy.startswith("a policy"):
        return f"allow `{told.action or action}` in {told.policy} as well"
    if keys:
        needed = " and ".join(f"`{one.action}`" for one in keys)
        return f"allow `{action}` on this resource, and {needed} on the key `{keys[0].resource}`"
    return None


def _demanded(told: Refusal, action: str, destination: DestinationSpec) -> Iterator[str]:
    """Yield what a bucket's policy usually denies requests for the lack of."""
    if not told.of_resource:
        return
    if action == "s3:PutObject" and destination.encryption.type == "NONE":
        yield "the bucket's policy demands encryption: set `encryption`"
    if (destination.endpoints.s3 or "").startswith("http://"):
        yield (
            "the bucket's policy demands https (aws:SecureTransport), and the endpoint begins with "
            "http: write https"
        )


def _key_causes(told: Refusal, name: str, destination: DestinationSpec) -> tuple[str, ...]:
    """Return why the key is denied, where AWS says that it is the key."""
    keys = key_permissions(name, destination)
    if not keys:
        return (
            "the bucket encrypts with a KMS key by default, and this identity may not use it: see "
            "the bucket's properties; allow kms:GenerateDataKey and kms:Decrypt on that key",
        )
    of_role = (
        "no policy of the role or user allows kms:GenerateDataKey and kms:Decrypt on "
        f"{keys[0].resource}"
    )
    of_key = (
        "the key's own policy does not let this identity in: for a key of another account both "
        "policies have to allow it"
    )
    first, second = (of_key, of_role) if told.of_resource else (of_role, of_key)
    return first, second, "a condition there, such as kms:ViaService, is for another region"


def _denied(name: str, action: str, destination: DestinationSpec) -> tuple[str, ...]:
    """Return why S3 denies this, the likeliest cause first."""
    of_bucket = action.startswith("s3:List")
    causes = [f"no policy of the role or user allows {action} on the resource above"]
    if name == "list" and destination.prefix:
        pattern = f"{destination.prefix}/*"
        causes.append(f"a condition on s3:prefix does not match `{pattern}`, for example by a typo")
    if name == "list-uploads":
        causes.append("the statement has a condition on s3:prefix, which this action does not know")
    if of_bucket:
        causes.append("the action is allowed on the bucket's objects (`…/*`) only")
    else:
        causes.append("the prefix in the policy is not the one of the destination")
    if name in _OF_KEY and destination.encryption.type == "SSE_KMS":
        causes.append(
            "the KMS key does not allow kms:GenerateDataKey and kms:Decrypt: S3 then refuses too"
        )
    if action == "s3:PutObject" and destination.encryption.type == "NONE":
        causes.append("the bucket's policy demands encryption: set `encryption`")
    causes.append("the bucket's own policy, a permissions boundary or an SCP denies it")
    if of_bucket:
        causes.append("the bucket is another account's: its name is misspelt")
    return tuple(causes)
