"""What the reading S3 probes do: questions about the bucket and its prefix; nothing changes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakeload.probes.model import BesideThePoint, ProbeFailed
from lakeload_jobs.aws import AwsError, AwsSession, aws_call
from lakeload_jobs.aws.bucket import bucket_region
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.storage.objects import Objects

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import ListObjectsV2OutputTypeDef, ListObjectsV2RequestTypeDef


@dataclass
class ProbeBucket:
    """The reading probes of one test."""

    destination: DestinationSpec
    session: AwsSession
    objects: Objects

    @property
    def place(self) -> str:
        """What every key of the lake begins with; '' without a prefix."""
        return f"{self.destination.prefix}/" if self.destination.prefix else ""

    def find(self) -> str:
        """The bucket exists, where the document says."""
        wanted, bucket = self.destination.region, self.destination.bucket
        try:
            found = bucket_region(self.session.s3, bucket)
        except AwsError as error:
            if error.code == "400":
                # The answer to HEAD has no body: an expired key and a broken token look alike.
                self._list()
            raise
        if found and found != wanted:
            raise ProbeFailed(
                f"the bucket `{bucket}` is in `{found}` and the destination says `{wanted}`",
                code="RegionMismatch",
                hint=f"set `region: {found}`, or name a bucket of `{wanted}`",
            )
        if found:
            return f"in {found}"
        # AWS always names it. Whatever else answers may be no store at all.
        with suppress(AwsError):
            self._list()
        return "the store names no region"

    def list_prefix(self) -> str:
        """Objects under the prefix can be listed."""
        try:
            answer = self._list()
        except AwsError as error:
            if error.denied and self._wants_a_payer():
                raise _requester_pays(self.destination.bucket) from error
            raise
        return "" if answer.get("Contents") else "nothing there yet"

    def find_owner(self) -> str:
        """The bucket belongs to the account that writes, and not to whoever took its name."""
        account = self._account()
        try:
            self._list(ExpectedBucketOwner=account)
        except AwsError as error:
            if not error.denied:
                raise
            raise ProbeFailed(
                f"the bucket `{self.destination.bucket}` does not belong to the account `{account}`"
                " of the role or user",
                code="OtherOwner",
                hint="correct `bucket`; if it is another account's on purpose, set its Object "
                "Ownership to `Bucket owner enforced`, so that its owner can read what is "
                "written, and use --skip bucket-owner",
            ) from error
        return f"account {account}"

    def list_uploads(self) -> str:
        """Open multipart uploads can be listed."""
        found = any(True for _ in self.objects.list_uploads(self.place))
        return "some are open" if found else ""

    def _list(self, **more: str) -> ListObjectsV2OutputTypeDef:
        wanted: ListObjectsV2RequestTypeDef = {
            "Bucket": self.destination.bucket,
            "Prefix": self.place,
            "MaxKeys": 1,
            **more,  # type: ignore[typeddict-item]
        }
        with aws_call(f"listing `{self.objects.url(self.place)}`"):
            answer = self.session.s3.list_objects_v2(**wanted)
        if "Name" in answer:
            return answer
        raise ProbeFailed(
            f"the answer to listing `{self.objects.url(self.place)}` is not that of a store",
            code="NotAStore",
            hint="set `endpoint_url` to the store's S3 interface: its port is often another "
            "than that of its web console",
        )

    def _wants_a_payer(self) -> bool:
        """Whether the bucket lets in only who pays for the request, and this is why it refused."""
        with suppress(AwsError):
            self._list(RequestPayer="requester")
            try:
                self._list()
            except AwsError as error:
                return error.denied
        return False

    def _account(self) -> str:
        role = self.destination.credentials.role_arn or ""
        if role:
            return role.split(":")[4]
        endpoints = self.destination.endpoints
        if endpoints.s3 and not endpoints.sts:
            raise BesideThePoint("the S3 endpoint is not AWS's: the store has no accounts of AWS")
        with aws_call("asking AWS whose account this is"):
            return self.session.sts.get_caller_identity()["Account"]


def _requester_pays(bucket: str) -> ProbeFailed:
    return ProbeFailed(
        f"the bucket `{bucket}` lets other accounts in only if they pay for each request "
        "(Requester Pays)",
        code="RequesterPays",
        hint="turn Requester Pays off in the bucket's properties, or write with a role of the "
        "account that owns the bucket",
    )
