"""Writing where a catalog puts its tables, with the keys a load would use (B14)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lakeload.probes.model import BesideThePoint, ProbeFailed
from lakeload_jobs.aws import AwsError, AwsSession, aws_call
from lakeload_jobs.aws.vended_credentials import HandedKeys, s3_with
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.core.layout import probe_path
from lakeload_jobs.formats.iceberg.catalogs.catalog import OpenTable
from lakeload_jobs.formats.iceberg.catalogs.files import bucket_and_key
from lakeload_jobs.formats.iceberg.catalogs.http import Patience
from lakeload_jobs.storage.objects import encryption_headers

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

BODY = b"written by lakeload test-connection; safe to delete\n"


@dataclass
class ProbeStorage:
    """One object below the table's location, and what the catalog left of the table there."""

    destination: DestinationSpec
    session: AwsSession
    patience: Patience
    mark: str
    place: str = ""
    """The table's location, once there is a table."""
    left: list[str] = field(default_factory=list)
    """What could not be removed."""
    _client: S3Client | None = None
    _written: str = ""

    def __post_init__(self) -> None:
        """Look up what every upload has to carry."""
        self._encryption = encryption_headers(self.destination.encryption)

    def write(self, table: OpenTable | None) -> str:
        """Write an object as a load would: with the keys vended for `table`, or our own.

        Raises `AwsError`, `ProbeFailed`.
        """
        if table is None:
            return self._write_as_ourselves()
        keys = table.vended_keys(self.destination.region)
        if keys is None:
            raise ProbeFailed(
                "the catalog was asked for credentials for the table and sent none",
                code="NoVendedCredentials",
                hint="set `access_delegation: NONE` to write with the bucket's own credentials, or "
                "let the catalog vend some",
            )
        self._client = self._vended(keys)
        self._put(self._client)
        return "with credentials that the catalog vended"

    def remove_all(self) -> None:
        """Remove the object, and files that the catalog left of the dropped table."""
        if self._client is None or not self.place:
            return
        bucket, prefix = bucket_and_key(self.place)
        if self.mark not in prefix:
            # Only what certainly is the test's own.
            return
        with aws_call(f"removing the test's files below `{self.place}/`"):
            answer = self._client.list_objects_v2(Bucket=bucket, Prefix=f"{prefix}/")
            for entry in answer.get("Contents", []):
                self._client.delete_object(Bucket=bucket, Key=entry["Key"])
        self.left = [place for place in self.left if place != self._written]

    def _write_as_ourselves(self) -> str:
        bucket, prefix = bucket_and_key(self.place)
        wanted = self.destination.bucket
        if bucket != wanted:
            raise ProbeFailed(
                f"the catalog puts its tables into the bucket `{bucket}`, and the destination's "
                f"is `{wanted}`",
                code="OtherBucket",
                hint=f"set `bucket: {bucket}`, or give the catalog a warehouse in `{wanted}`",
            )
        if not prefix.startswith(probe_path(self.destination.prefix)):
            self._ask_for_deletion(bucket, prefix)
        self._client = self.session.s3
        self._put(self._client)
        return "with the destination's own credentials"

    def _ask_for_deletion(self, bucket: str, prefix: str) -> None:
        """Delete nothing: what could not be removed again is not written."""
        place = f"s3://{bucket}/{prefix}/"
        try:
            with aws_call(f"deleting below `{place}`"):
                absent = f"{prefix}/data/{self.mark}-absent"
                self.session.s3.delete_object(Bucket=bucket, Key=absent)
        except AwsError as error:
            if not error.denied:
                raise
            raise BesideThePoint(
                f"not tried: what is written below `{place}` could not be removed (s3:DeleteObject)"
            ) from error

    def _put(self, client: S3Client) -> None:
        bucket, prefix = bucket_and_key(self.place)
        key = f"{prefix}/data/{self.mark}-object"
        self._written = f"s3://{bucket}/{key}"
        self.left.append(self._written)
        with aws_call(f"writing `{self._written}`"):
            client.put_object(Bucket=bucket, Key=key, Body=BODY, **self._encryption)
        with aws_call(f"deleting `{self._written}`"):
            client.delete_object(Bucket=bucket, Key=key)
        self.left.remove(self._written)

    def _vended(self, keys: HandedKeys) -> S3Client:
        """A catalog that says nothing of its store leaves that to the destination."""
        endpoint = self.destination.endpoints.s3
        if keys.endpoint is None and endpoint:
            keys = replace(keys, endpoint=endpoint, path_style=True)
        patience = self.patience
        return s3_with(keys, connect_timeout=patience.connect, read_timeout=patience.read)
