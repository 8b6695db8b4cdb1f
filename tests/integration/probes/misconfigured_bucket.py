"""What is wrong with the bucket, its owner, and the policies that speak of it and its catalog."""

from __future__ import annotations

from lakeload.demo.aws import loader_policy
from lakeload_jobs.contract.spec import ParquetSpec
from tests.integration.probes.world import Case, World
from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import Action, Forward, Response, answer

_DENIED = answer(403, "AccessDenied", "Access Denied")


def _wrong_prefix_in_policy(world: World) -> None:
    seeded = world.lake.seeded
    world.lake.server.admin.put_role_policy(
        seeded.role, loader_policy(seeded.bucket, seeded.prefix + "x")
    )


def _bucket_policy_denies(world: World) -> None:
    bucket = world.lake.seeded.bucket
    world.lake.server.s3.put_bucket_policy(
        Bucket=bucket,
        Policy='{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Principal":'
        f'{{"AWS":"{world.lake.seeded.role_arn}"}},"Action":"s3:ListBucket",'
        f'"Resource":"arn:aws:s3:::{bucket}"}}]}}',
    )


def _deny_if(header: str, *, present: bool) -> Action:
    """Deny a request that carries the header, or one that does not."""

    def act(request: Request, forward: Forward) -> Response:
        if bool(request.header(header)) is present:
            return _DENIED(request, forward)
        return forward(request)

    return act


def _broken_token(world: World) -> None:
    world.proxy.on("HeadBucket", answer(400, ""))
    world.proxy.on("ListObjectsV2", answer(400, "InvalidToken"))


def _lake_formation(world: World) -> None:
    world.change(parquet=ParquetSpec(update_glue_catalog=True), glue_database_prefix="shop")
    world.endpoints(glue=world.proxy.endpoint)
    text = "Insufficient Lake Formation permission(s): Required Describe on shop"
    world.proxy.on("GetDatabase", answer(400, "AccessDeniedException", text))


BUCKETS = [
    Case(
        "credentials that expire between STS and S3",
        lambda world: world.proxy.on("ListObjectsV2", answer(400, "ExpiredToken")),
        *("list", "ExpiredToken", "expired"),
    ),
    Case(
        "wrong region",
        lambda world: world.change(region="eu-central-1"),
        *("bucket", "RegionMismatch", "set `region: us-east-1`"),
    ),
    Case(
        "missing bucket",
        lambda world: world.change(bucket="no-such-bucket-here"),
        *("bucket", "NoSuchBucket", "create the bucket"),
    ),
    Case(
        "listing denied",
        lambda world: world.deny("s3:ListBucket"),
        *("list", "AccessDenied", "no policy of the role or user allows s3:ListBucket"),
    ),
    Case(
        "listing denied by the bucket's own policy",
        _bucket_policy_denies,
        *("list", "AccessDenied", "the policy of the resource itself (bucket, key or catalog) has"),
    ),
    Case(
        "another prefix in the policy",
        _wrong_prefix_in_policy,
        *("list", "AccessDenied", "a condition on s3:prefix does not match `data-lake/test/*`"),
    ),
    Case(
        "listing uploads denied",
        lambda world: world.deny("s3:ListBucketMultipartUploads"),
        *("list-uploads", "AccessDenied", "which this action does not support"),
        warning=True,
    ),
    Case(
        "deleting denied",
        lambda world: world.deny("s3:DeleteObject"),
        *("delete", "AccessDenied", "allow `s3:DeleteObject`"),
    ),
    Case(
        "writing denied",
        lambda world: world.deny("s3:PutObject"),
        *("put", "AccessDenied", "no policy of the role or user allows s3:PutObject"),
    ),
    Case(
        "reading denied",
        lambda world: world.deny("s3:GetObject"),
        *("get", "AccessDenied", "no policy of the role or user allows s3:GetObject"),
    ),
    Case(
        "aborting denied",
        lambda world: world.deny("s3:AbortMultipartUpload"),
        *("abort-upload", "AccessDenied", "allow `s3:AbortMultipartUpload`"),
        warning=True,
    ),
    Case(
        "role whose own policy forbids what it allows",
        lambda world: world.forbid("s3:GetObject"),
        *(
            "get",
            "AccessDenied",
            "remove or narrow the Deny for `s3:GetObject` in a policy of the role",
        ),
    ),
    Case(
        "session token that a program has cut",
        _broken_token,
        *("bucket", "InvalidToken", "part of it is missing"),
    ),
    Case(
        "bucket whose requesters pay",
        lambda world: world.proxy.on(
            "ListObjectsV2", _deny_if("x-amz-request-payer", present=False)
        ),
        *("list", "RequesterPays", "turn Requester Pays off"),
    ),
    Case(
        "bucket of another account",
        lambda world: world.proxy.on(
            "ListObjectsV2", _deny_if("x-amz-expected-bucket-owner", present=True)
        ),
        *("bucket-owner", "OtherOwner", "Bucket owner enforced"),
        warning=True,
    ),
    Case(
        "bucket that AWS has closed",
        lambda world: world.proxy.on("ListObjectsV2", answer(403, "AllAccessDisabled")),
        *("list", "AllAccessDisabled", "AWS has closed the bucket"),
    ),
    Case(
        "bucket policy that demands https",
        lambda world: world.refuse(
            "ListObjectsV2", "s3:ListBucket", "with an explicit deny in a resource-based policy"
        ),
        *("list", "AccessDenied", "aws:SecureTransport"),
    ),
    Case(
        "bucket policy that demands encryption",
        lambda world: world.refuse(
            "PutObject", "s3:PutObject", "with an explicit deny in a resource-based policy"
        ),
        *("put", "AccessDenied", "the bucket policy requires encryption: set `encryption: {"),
    ),
    Case(
        "organization that forbids to write",
        lambda world: world.refuse(
            "PutObject", "s3:PutObject", "with an explicit deny in a service control policy: arn"
        ),
        *("put", "AccessDenied", "remove or narrow the Deny for `s3:PutObject` in an SCP"),
    ),
    Case(
        "organization that forbids the resource",
        lambda world: world.refuse(
            "PutObject", "s3:PutObject", "with an explicit deny in a resource control policy"
        ),
        *("put", "AccessDenied", "an RCP of the organization has a Deny"),
    ),
    Case(
        "permissions boundary without the action",
        lambda world: world.refuse(
            "PutObject",
            "s3:PutObject",
            "because no permissions boundary allows the s3:PutObject action",
        ),
        *("put", "AccessDenied", "in the permissions boundary of the role or user as well"),
    ),
    Case(
        "catalog that Lake Formation governs",
        _lake_formation,
        *("glue-get-database", "AccessDeniedException", "grant `Describe on shop` to the role"),
    ),
    Case(
        "endpoint of S3 in the VPC that lets only other buckets through",
        lambda world: world.refuse(
            "GetObject",
            "s3:GetObject",
            "because no VPC endpoint policy allows the s3:GetObject action",
        ),
        *("get", "AccessDenied", "allow `s3:GetObject` in the policy of the VPC endpoint"),
    ),
]
