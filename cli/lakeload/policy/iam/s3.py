"""What the role may do in S3 (docs/decisions/0040).

Actions, resources and condition keys:
https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html
"""

from __future__ import annotations

from lakeload.policy.iam.model import Statement, below, place
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.contract.traits import catalog_of, format_of, needs_aws_identity
from lakeload_jobs.core.names import LOG_NAME, PROBE_NAME


def writing(destination: DestinationSpec) -> tuple[Statement, ...]:
    """Return what a load, `recover` and the connection test need. No data can be deleted."""
    if role_is_catalogs(destination):
        return _vending(destination)
    arns = place(destination)
    objects = arns.s3(destination.bucket, below(destination.prefix))
    probe = below(destination.prefix, LOG_NAME, PROBE_NAME)
    return (
        _listing(destination),
        *((_uploads(destination),) if format_of(destination).lists_uploads else ()),
        Statement(
            "WriteObjects",
            ("s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"),
            (objects,),
            "files and metadata are read and written, and an upload can be given up",
        ),
        Statement(
            "RemoveProbeObjects",
            ("s3:DeleteObject",),
            (arns.s3(destination.bucket, probe),),
            "`test-connection` removes its own objects; no data and no log can be deleted",
        ),
    )


def reading(destination: DestinationSpec) -> tuple[Statement, ...]:
    """Return what a query needs; Snowflake asks for the versions of an Iceberg table's files too.

    https://docs.snowflake.com/en/user-guide/tables-iceberg-configure-external-volume-s3
    """
    objects = place(destination).s3(destination.bucket, below(destination.prefix))
    versions = ("s3:GetObjectVersion",) if format_of(destination).has_catalog else ()
    return (
        _listing(destination),
        _location(destination, "Athena and Snowflake ask for the bucket's region"),
        Statement("ReadObjects", ("s3:GetObject", *versions), (objects,), "files are read"),
    )


def deleting(destination: DestinationSpec) -> Statement:
    """Return what `reset`, and `recover --void` of a half visible job, need beyond a load."""
    objects = place(destination).s3(destination.bucket, below(destination.prefix))
    return Statement(
        "DeleteObjects",
        ("s3:DeleteObject",),
        (objects,),
        "`reset` and `recover --void` delete data and log; take it away when that is done",
    )


def maintaining(destination: DestinationSpec) -> Statement:
    """Return what `maintain` needs beyond a load, where no catalog vends credentials."""
    objects = place(destination).s3(destination.bucket, below(destination.prefix))
    return Statement(
        "RemoveFiles",
        ("s3:DeleteObject",),
        (objects,),
        "`maintain` removes files that no snapshot of a table needs any more",
    )


def role_is_catalogs(destination: DestinationSpec) -> bool:
    """Whether the role that reaches the files is one that the catalog assumes.

    It vends credentials of that role, and whoever loads needs no identity of AWS.
    """
    catalog = catalog_of(destination)
    return catalog is not None and not needs_aws_identity(catalog)


def _listing(destination: DestinationSpec) -> Statement:
    return Statement(
        "ListObjects",
        ("s3:ListBucket",),
        (place(destination).s3(destination.bucket),),
        "objects below the prefix are found" if destination.prefix else "objects are found",
        {"StringLike": {"s3:prefix": below(destination.prefix)}} if destination.prefix else {},
    )


def _location(destination: DestinationSpec, why: str) -> Statement:
    return Statement(
        "FindBucket",
        ("s3:GetBucketLocation",),
        (place(destination).s3(destination.bucket),),
        f"{why}; the action has no key s3:prefix",
    )


def _uploads(destination: DestinationSpec) -> Statement:
    return Statement(
        "ListUploads",
        ("s3:ListBucketMultipartUploads",),
        (place(destination).s3(destination.bucket),),
        "uploads of killed runs are found; without a condition, as the action has no key s3:prefix",
    )


def _vending(destination: DestinationSpec) -> tuple[Statement, ...]:
    """Return what a catalog passes on to its clients, as Snowflake and Polaris ask for it.

    https://other-docs.snowflake.com/en/opencatalog/create-catalog
    """
    arns = place(destination)
    actions = ("GetObject", "GetObjectVersion", "PutObject", "DeleteObject", "DeleteObjectVersion")
    return (
        _listing(destination),
        _location(destination, "the catalog asks for the bucket's region"),
        Statement(
            "ManageObjects",
            tuple(f"s3:{action}" for action in actions),
            (arns.s3(destination.bucket, below(destination.prefix)),),
            "the catalog passes these on, for one table at a time, to whoever loads it",
        ),
    )
