"""What the identity that reads `s3://` paths may do: list and read what they name (F12)."""

from __future__ import annotations

from collections.abc import Sequence

from lakeload.policy.iam.arns import Place, literal
from lakeload.policy.iam.model import Conditions, PolicyDocument, Statement
from lakeload_jobs.contract.spec import DestinationSpec, TableSpec
from lakeload_jobs.core.aws_partitions import partition
from lakeload_jobs.sources.files.file_state import is_s3
from lakeload_jobs.sources.files.key_patterns import KeyPattern


def source_policy(
    destination: DestinationSpec, tables: Sequence[TableSpec]
) -> PolicyDocument | None:
    """Return what reading the tables with the destination's identity takes; None for no S3.

    Tables read with credentials of their own are left out.
    """
    by_bucket: dict[str, dict[str, None]] = {}
    for table in tables:
        if table.input.credentials is not None:
            continue
        for path in table.input.paths:
            if is_s3(path):
                pattern = KeyPattern.parse(path)
                by_bucket.setdefault(pattern.bucket, {})[pattern.prefix] = None
    arns = Place(partition(destination.region), destination.region, "*")
    statements: list[Statement] = []
    for number, (bucket, beginnings) in enumerate(by_bucket.items(), 1):
        named = f"{number}" if len(by_bucket) > 1 else ""
        statements += _bucket(bucket, _shortest(list(beginnings)), arns, named)
    return PolicyDocument("source", tuple(statements)) if statements else None


def _bucket(
    bucket: str, beginnings: Sequence[str], arns: Place, number: str
) -> tuple[Statement, Statement]:
    patterns = tuple(f"{literal(beginning)}*" for beginning in beginnings)
    # IfExists: for a key that is not there HEAD answers 404 only to those who may list, and a
    # HEAD has no prefix; Spark takes the 403 that the others get for a refusal.
    limit: Conditions = {"StringLikeIfExists": {"s3:prefix": patterns}}
    return (
        Statement(
            f"ListSource{number}",
            ("s3:ListBucket",),
            (arns.s3(bucket),),
            f"the source's files in `{bucket}` are found",
            {} if "" in beginnings else limit,
        ),
        Statement(
            f"ReadSource{number}",
            ("s3:GetObject",),
            tuple(arns.s3(bucket, pattern) for pattern in patterns),
            f"the source's files in `{bucket}` are read; nothing is written there",
        ),
    )


def _shortest(beginnings: Sequence[str]) -> list[str]:
    """Return the beginnings that no other one covers, sorted."""
    kept: list[str] = []
    for beginning in sorted(beginnings):
        if not kept or not beginning.startswith(kept[-1]):
            kept.append(beginning)
    return kept
