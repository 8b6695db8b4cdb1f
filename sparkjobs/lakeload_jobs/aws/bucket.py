"""Region of a bucket, as S3 reports it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from lakeload_jobs.aws.errors import AwsError, aws_call

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def bucket_region(s3: S3Client, bucket: str) -> str | None:
    """Return the region of `bucket`, or None when the store does not name one.

    S3 names it in the header of a refusal too, and a policy that limits ListBucket to a prefix
    makes HeadBucket one: a refusal proves that the bucket exists. Raises `AwsError` for a missing
    bucket and for an endpoint that does not answer.
    """
    with aws_call(f"checking the bucket `{bucket}`"):
        try:
            answer = s3.head_bucket(Bucket=bucket)
        except ClientError as error:
            metadata = error.response["ResponseMetadata"]
            named = metadata.get("HTTPHeaders", {}).get("x-amz-bucket-region")
            if named or metadata["HTTPStatusCode"] == 403:
                return named
            if metadata["HTTPStatusCode"] == 404:  # an answer to HEAD has no body to name the error
                raise AwsError(
                    f"checking the bucket `{bucket}`: the bucket does not exist (HTTP 404)",
                    code="NoSuchBucket",
                    status=404,
                    request_id=metadata.get("RequestId"),
                    operation="HeadBucket",
                    hint="create the bucket or correct `bucket`",
                ) from error
            raise
    return answer.get("BucketRegion")
