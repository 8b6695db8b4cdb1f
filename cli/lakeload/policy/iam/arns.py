"""ARNs and the wildcards in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from lakeload_jobs.contract.spec import DestinationSpec
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


def literal(text: str) -> str:
    """Return text as an ARN pattern or a StringLike condition takes it by the letter.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html
    """
    return _SPECIAL.sub(lambda found: f"${{{found[0]}}}", text)


def below(prefix: str, *path: str) -> str:
    """Return the pattern of everything below a path in a bucket; no prefix is its root."""
    return "".join(f"{literal(part)}/" for part in (prefix, *path) if part) + "*"
