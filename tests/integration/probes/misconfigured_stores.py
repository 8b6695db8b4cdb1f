"""Stores that are not S3, or not quite: what they lack, break or take for something else."""

from __future__ import annotations

from tests.integration.probes.world import Case, World
from tests.servers.fault_proxy import answer, edit_body, without_header, without_support
from tests.servers.local_sockets import answering, http_answer


def _put_ignores_condition(world: World) -> None:
    world.administrator()
    world.proxy.on("PutObject", without_header("If-None-Match"))


def _completion_ignores_condition(world: World) -> None:
    world.administrator()
    world.proxy.on("CompleteMultipartUpload", without_header("If-None-Match"))


def _web_page(world: World) -> None:
    port = answering(world.cleanup, http_answer("200 OK", "<html><body>Console</body></html>"))
    world.endpoints(s3=f"http://127.0.0.1:{port}")


def _virtual(world: World) -> None:
    world.change(addressing_style="VIRTUAL")
    world.endpoints(s3="http://s3.invalid")


STORES = [
    Case(
        "store whose PUT ignores If-None-Match",
        _put_ignores_condition,
        *("put-again", "ConditionalWritesUnsupported", "single_writer: true"),
    ),
    Case(
        "store whose completion ignores If-None-Match",
        _completion_ignores_condition,
        *("complete-upload", "ConditionalWritesUnsupported", "CompleteMultipartUpload"),
    ),
    Case(
        "store that does not implement If-None-Match",
        lambda world: world.proxy.on("PutObject", without_support("if-none-match")),
        *("put", "NotImplemented", "no conditional writes"),
    ),
    Case(
        "store that does not implement checksums",
        lambda world: [
            world.proxy.on(operation, without_support("x-amz-checksum-"))
            for operation in ("PutObject", "UploadPart")
        ],
        *("put", "NotImplemented", "AWS_REQUEST_CHECKSUM_CALCULATION=WHEN_REQUIRED"),
    ),
    Case(
        "clock that is wrong, as S3 says it",
        lambda world: world.proxy.on("ListObjectsV2", answer(403, "RequestTimeTooSkewed")),
        *("list", "RequestTimeTooSkewed", "clock"),
    ),
    Case(
        "store that is busy all the time",
        lambda world: world.proxy.on("ListObjectsV2", answer(503, "SlowDown")),
        *("list", "SlowDown", "busy"),
    ),
    Case(
        "web console in place of the store",
        _web_page,
        *("bucket", "NotAStore", "the port is that of the store's web console"),
    ),
    Case(
        "keys of another store",
        lambda world: world.proxy.on("ListObjectsV2", answer(403, "InvalidAccessKeyId")),
        *("list", "InvalidAccessKeyId", "another store or AWS partition"),
    ),
    Case(
        "store that signs for a region of its own",
        lambda world: world.proxy.on("ListObjectsV2", answer(400, "AuthorizationHeaderMalformed")),
        *("list", "AuthorizationHeaderMalformed", "set `region`"),
    ),
    Case(
        "store that wants the bucket in the host name",
        lambda world: world.proxy.on("ListObjectsV2", answer(403, "SecondLevelDomainForbidden")),
        *("list", "SecondLevelDomainForbidden", "`addressing_style: VIRTUAL`"),
    ),
    Case(
        "store without host names for its buckets",
        _virtual,
        *("bucket", "EndpointConnectionError", "needs a DNS name for"),
    ),
    Case(
        "endpoint that has the bucket's name in it",
        lambda world: world.endpoints(s3=f"http://{world.destination.bucket}.s3.invalid"),
        *("bucket", "EndpointConnectionError", "remove it from the URL (`s3.invalid`)"),
    ),
    Case(
        "store that cannot list uploads",
        lambda world: world.proxy.on("ListMultipartUploads", answer(501, "NotImplemented")),
        *("list-uploads", "NotImplemented", "lifecycle rule"),
        warning=True,
    ),
    Case(
        "store whose quota is used up",
        lambda world: world.proxy.on("PutObject", answer(403, "QuotaExceeded")),
        *("put", "QuotaExceeded", "is used up"),
    ),
    Case(
        "store whose disks are full",
        lambda world: world.proxy.on("PutObject", answer(507, "XMinioStorageFull")),
        *("put", "XMinioStorageFull", "disks are full"),
    ),
    Case(
        "store that fails inside",
        lambda world: world.proxy.on("ListObjectsV2", answer(500, "InternalError")),
        *("list", "InternalError", "status page"),
    ),
    Case(
        "store that finds a new object there already",
        lambda world: world.proxy.on("PutObject", answer(412, "PreconditionFailed")),
        *("put", "PreconditionFailed", "If-None-Match does not work"),
    ),
    Case(
        "gateway that changes what is read",
        lambda world: world.proxy.on("GetObject", edit_body(bytes.upper)),
        *("get", "ContentDiffers", "changes bodies"),
    ),
    Case(
        "store that loses uploads",
        lambda world: world.proxy.on("CompleteMultipartUpload", answer(404, "NoSuchUpload")),
        *("complete-upload", "NoSuchUpload", "lost an upload"),
    ),
]
