"""The proxy and the emulator behind it do what the other tests believe they do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError, ResponseStreamingError

from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import (
    FaultProxy,
    after,
    answer,
    before,
    drop_answer,
    drop_request,
    edit_body,
    truncate,
)
from tests.servers.ministack import Lake

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@pytest.fixture
def s3(lake: Lake, fault_proxy: FaultProxy) -> S3Client:
    """The role's S3 through the proxy, without retries."""
    config = Config(retries={"total_max_attempts": 1}, response_checksum_validation="when_required")
    key = lake.seeded.base_key
    sts = boto3.client(
        "sts",
        endpoint_url=fault_proxy.endpoint,
        region_name=lake.seeded.region,
        aws_access_key_id=key.access_key_id,
        aws_secret_access_key=key.secret_access_key,
        config=config,
    )
    answer = sts.assume_role(
        RoleArn=lake.seeded.role_arn, RoleSessionName="test", ExternalId=lake.seeded.external_id
    )["Credentials"]
    return boto3.client(
        "s3",
        endpoint_url=fault_proxy.endpoint,
        region_name=lake.seeded.region,
        aws_access_key_id=answer["AccessKeyId"],
        aws_secret_access_key=answer["SecretAccessKey"],
        aws_session_token=answer["SessionToken"],
        config=config,
    )


KEY = "data-lake/test/a b/é.json"


def test_every_protocol_step_is_recognised_and_passes_with_its_signature(
    lake: Lake, fault_proxy: FaultProxy, s3: S3Client
) -> None:
    bucket = lake.seeded.bucket
    upload = s3.create_multipart_upload(Bucket=bucket, Key=KEY)["UploadId"]
    part = s3.upload_part(Bucket=bucket, Key=KEY, UploadId=upload, PartNumber=1, Body=b"x" * 99)
    s3.list_multipart_uploads(Bucket=bucket, Prefix="data-lake/test/")
    s3.complete_multipart_upload(
        Bucket=bucket,
        Key=KEY,
        UploadId=upload,
        MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]},
        IfNoneMatch="*",
    )
    s3.put_object(Bucket=bucket, Key="data-lake/test/b", Body=b"1", IfNoneMatch="*")
    s3.list_objects_v2(Bucket=bucket, Prefix="data-lake/test/")
    assert s3.get_object(Bucket=bucket, Key=KEY)["Body"].read() == b"x" * 99
    s3.head_object(Bucket=bucket, Key=KEY)
    with pytest.raises(ClientError):
        s3.delete_object(Bucket=bucket, Key=KEY)
    assert [(r.operation, r.key) for r in fault_proxy.requests] == [
        ("AssumeRole", ""),
        ("CreateMultipartUpload", KEY),
        ("UploadPart", KEY),
        ("ListMultipartUploads", ""),
        ("CompleteMultipartUpload", KEY),
        ("PutObject", "data-lake/test/b"),
        ("ListObjectsV2", ""),
        ("GetObject", KEY),
        ("HeadObject", KEY),
        ("DeleteObject", KEY),
    ]
    assert {r.bucket for r in fault_proxy.requests[1:]} == {bucket}


def test_fault_lost_response_keeps_the_object_and_lost_request_does_not(
    lake: Lake, fault_proxy: FaultProxy, s3: S3Client
) -> None:
    fault_proxy.on("PutObject", drop_answer, key="*/landed")
    fault_proxy.on("PutObject", drop_request, key="*/lost")
    for name in ("landed", "lost"):
        with pytest.raises(ConnectionClosedError):
            s3.put_object(Bucket=lake.seeded.bucket, Key=f"data-lake/test/{name}", Body=b"1")
    assert lake.keys() == ["data-lake/test/landed"]


def test_fault_rule_skips_and_ends_as_configured(
    lake: Lake, fault_proxy: FaultProxy, s3: S3Client
) -> None:
    rule = fault_proxy.on("HeadObject", answer(503, "SlowDown"), skip=1, times=1)
    statuses = []
    for _ in range(3):
        with pytest.raises(ClientError) as caught:
            s3.head_object(Bucket=lake.seeded.bucket, Key=KEY)
        statuses.append(caught.value.response["ResponseMetadata"]["HTTPStatusCode"])
    assert statuses == [404, 503, 404]
    assert rule.hits == 3


def test_fault_error_response_has_the_code_of_each_protocol(
    lake: Lake, fault_proxy: FaultProxy, s3: S3Client
) -> None:
    fault_proxy.on("ListObjectsV2", answer(403, "RequestTimeTooSkewed"))
    with pytest.raises(ClientError) as caught:
        s3.list_objects_v2(Bucket=lake.seeded.bucket)
    assert caught.value.response["Error"]["Code"] == "RequestTimeTooSkewed"


def test_callbacks_run_before_and_after_the_server_acted(
    lake: Lake, fault_proxy: FaultProxy, s3: S3Client
) -> None:
    seen: list[list[str]] = []

    def look(request: Request) -> None:
        seen.append(lake.keys())

    fault_proxy.on("PutObject", before(look), times=1)
    fault_proxy.on("PutObject", after(look))
    for name in ("a", "b"):
        s3.put_object(Bucket=lake.seeded.bucket, Key=f"data-lake/test/{name}", Body=b"1")
    assert seen == [[], ["data-lake/test/a", "data-lake/test/b"]]


def test_a_body_can_be_cut_or_changed(lake: Lake, fault_proxy: FaultProxy, s3: S3Client) -> None:
    s3.put_object(Bucket=lake.seeded.bucket, Key="data-lake/test/a", Body=b"0123456789")
    fault_proxy.on("GetObject", truncate(4), times=1)
    fault_proxy.on("GetObject", edit_body(lambda body: body[::-1]))
    with pytest.raises(ResponseStreamingError):
        s3.get_object(Bucket=lake.seeded.bucket, Key="data-lake/test/a")["Body"].read()
    changed = s3.get_object(Bucket=lake.seeded.bucket, Key="data-lake/test/a")["Body"].read()
    assert changed == b"9876543210"
