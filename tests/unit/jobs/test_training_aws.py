"""The stand-in of the training run, asked by an AWS client."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.config import Config

from lakeload_jobs.jobs.appcds import TrainingAws


def client(aws: TrainingAws, service: str) -> Any:
    return boto3.client(  # type: ignore[call-overload]
        service,
        endpoint_url=aws.endpoint,
        region_name="us-east-1",
        aws_access_key_id="training",
        aws_secret_access_key="training",
        config=Config(retries={"max_attempts": 0}, s3={"addressing_style": "path"}),
    )


def test_fake_aws_serves_the_requests_of_a_load() -> None:
    with TrainingAws() as aws:
        sts, glue, s3 = (client(aws, name) for name in ("sts", "glue", "s3"))

        role = sts.assume_role(
            RoleArn="arn:aws:iam::000000000000:role/r", RoleSessionName="training"
        )
        assert role["Credentials"]["AccessKeyId"] == "training"

        with pytest.raises(glue.exceptions.EntityNotFoundException):
            glue.get_table(DatabaseName="d", Name="t")
        glue.create_database(DatabaseInput={"Name": "d", "LocationUri": "s3://b/d"})
        assert glue.get_database(Name="d")["Database"]["LocationUri"] == "s3://b/d"
        glue.create_table(DatabaseName="d", TableInput={"Name": "t", "Parameters": {"v": "0"}})
        glue.update_table(DatabaseName="d", TableInput={"Name": "t", "Parameters": {"v": "1"}})
        table = glue.get_table(DatabaseName="d", Name="t")["Table"]
        assert (table["VersionId"], table["Parameters"]) == ("1", {"v": "1"})

        s3.put_object(Bucket="b", Key="a/ä", Body=b"0123456789")
        assert s3.head_object(Bucket="b", Key="a/ä")["ContentLength"] == 10
        ranges = {"bytes=2-4": b"234", "bytes=7-": b"789", "bytes=-3": b"789"}
        for wanted, part in ranges.items():
            found = s3.get_object(Bucket="b", Key="a/ä", Range=wanted)
            assert found["Body"].read() == part
        s3.delete_object(Bucket="b", Key="a/ä")
        with pytest.raises(s3.exceptions.NoSuchKey):
            s3.get_object(Bucket="b", Key="a/ä")


def test_uploads_in_signed_chunks_are_put_together() -> None:
    with TrainingAws() as aws:
        s3 = client(aws, "s3")
        signed = "3;chunk-signature=aa\r\nabc\r\n2;chunk-signature=bb\r\nde\r\n0\r\nx: y\r\n\r\n"

        def chunked(request: Any, **_: Any) -> None:
            request.headers["Content-Encoding"] = "aws-chunked"

        s3.meta.events.register("before-sign.s3.PutObject", chunked)
        s3.put_object(Bucket="b", Key="k", Body=signed.encode())
        assert s3.get_object(Bucket="b", Key="k")["Body"].read() == b"abcde"
