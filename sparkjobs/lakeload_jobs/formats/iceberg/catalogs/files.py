"""Metadata files in S3, read and written with the destination's own identity and encryption."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from lakeload_jobs.aws import aws_call
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.storage.objects import encryption_headers

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MOST_TOGETHER = 1000
"""Files of one DeleteObjects, at most: S3 takes no more."""


class Store(Protocol):
    """Whoever has a client of S3: `AwsSession`, or keys that a catalog has given out."""

    @property
    def s3(self) -> S3Client:
        """The client."""


class LakeFiles:
    """Metadata files in S3, each small enough for memory. Every method raises `AwsError`."""

    def __init__(self, session: Store, destination: DestinationSpec) -> None:
        self.session = session
        self.encryption = encryption_headers(destination.encryption)

    def client(self, location: str) -> S3Client:
        """Return the client for a location."""
        return self.session.s3

    def read(self, location: str) -> bytes:
        """Return a whole file."""
        bucket, key = bucket_and_key(location)
        with aws_call(f"reading `{location}`"):
            return self.client(location).get_object(Bucket=bucket, Key=key)["Body"].read()

    def write(self, location: str, data: bytes) -> None:
        """Write a whole file."""
        bucket, key = bucket_and_key(location)
        with aws_call(f"writing `{location}`"):
            self.client(location).put_object(Bucket=bucket, Key=key, Body=data, **self.encryption)

    def delete(self, location: str) -> None:
        """Delete a file; a missing one is no error."""
        bucket, key = bucket_and_key(location)
        with aws_call(f"deleting `{location}`"):
            self.client(location).delete_object(Bucket=bucket, Key=key)

    def place(self, location: str) -> str:
        """Return where a location is: one request can delete files of the same place."""
        return bucket_and_key(location)[0]

    def delete_together(self, locations: Sequence[str]) -> Collection[str]:
        """Delete at most `MOST_TOGETHER` files of one place in one request; return those that stay.
        Not every store has such a request."""
        keys = {bucket_and_key(one)[1]: one for one in locations}
        bucket = bucket_and_key(locations[0])[0]
        with aws_call(f"deleting {len(locations):,} files of `s3://{bucket}/`"):
            response = self.client(locations[0]).delete_objects(
                Bucket=bucket, Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True}
            )
            return {keys[one["Key"]] for one in response.get("Errors", ())}


def bucket_and_key(location: str) -> tuple[str, str]:
    """Return both parts of an `s3://bucket/key` location (or `s3a://`, as some catalogs write)."""
    parts = urlsplit(location, allow_fragments=False)
    return parts.netloc, parts.path.removeprefix("/")
