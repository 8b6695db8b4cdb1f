"""What is said of a bucket whose store names no region."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from lakeload.probes.runner import CheckSkipped
from lakeload.probes.s3 import ProbeBucket
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.storage.objects import Objects


def refused(operation: str) -> ClientError:
    """Return a denial without the header that names the region."""
    answer: Any = {
        "Error": {"Code": "AccessDenied", "Message": "Access Denied"},
        "ResponseMetadata": {"HTTPStatusCode": 403, "HTTPHeaders": {}},
    }
    return ClientError(answer, operation)


def find(*, head: bool, listing: bool) -> str:
    """Look for the bucket at a store that allows HeadBucket, ListObjectsV2, both or neither."""

    def call(operation: str, allowed: bool) -> Any:
        if not allowed:
            raise refused(operation)
        return {"Name": "lake"}

    s3 = SimpleNamespace(
        head_bucket=lambda **_: call("HeadBucket", head),
        list_objects_v2=lambda **_: call("ListObjectsV2", listing),
    )
    session = cast(AwsSession, SimpleNamespace(s3=s3))
    destination = DestinationSpec("lake", "us-east-1")
    return ProbeBucket(destination, session, Objects(session, destination)).find()


@pytest.mark.parametrize("head", [True, False])
def test_a_bucket_that_can_be_listed_exists(head: bool) -> None:
    assert find(head=head, listing=True) == "it exists; the store reports no region to compare"


def test_denied_bucket_without_a_region_is_unverified() -> None:
    with pytest.raises(CheckSkipped) as skipped:
        find(head=False, listing=False)
    assert "not known" in skipped.value.message
