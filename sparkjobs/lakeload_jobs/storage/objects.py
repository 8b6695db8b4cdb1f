"""S3 objects: conditional writes, multipart uploads, retries until an outcome is known."""

from __future__ import annotations

import base64
import copy
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Literal, TypedDict, TypeVar, assert_never

from lakeload_jobs.aws import AwsError, AwsSession, aws_call
from lakeload_jobs.contract.errors import LoadFailed, Refused
from lakeload_jobs.contract.spec import DestinationSpec, EncryptionSpec
from lakeload_jobs.core.layout import conditional_writes_key
from lakeload_jobs.storage.backoff import Waits

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef, ObjectTypeDef


@dataclass(frozen=True)
class Part:
    """One uploaded part: what CompleteMultipartUpload wants back. `checksum` is base64 CRC32, ''
    where it was uploaded without."""

    number: int
    etag: str
    checksum: str


T = TypeVar("T")


class UnknownOutcome(LoadFailed):
    """A write was sent and its answer never came: it may or may not have happened."""


class ConditionalWritesUnsupported(Refused):
    """The store does not know If-None-Match or If-Match."""


class ChecksumsUnsupported(Refused):
    """The store does not know `x-amz-checksum-crc32`."""


@dataclass(frozen=True)
class ObjectEntry:
    """One object as LIST shows it."""

    key: str
    size: int
    etag: str
    modified: datetime


@dataclass(frozen=True)
class ObjectHead:
    """One object as HEAD shows it; metadata names are lower case."""

    size: int
    etag: str
    metadata: Mapping[str, str]


@dataclass(frozen=True)
class OpenUpload:
    """One multipart upload that is neither completed nor aborted."""

    key: str
    upload_id: str
    initiated: datetime


class Completion(Enum):
    """What S3 said to CompleteMultipartUpload. Only COMPLETED says anything about the object."""

    COMPLETED = "completed"
    NO_SUCH_UPLOAD = "no such upload"
    KEY_TAKEN = "key taken"


def until_answered(once: Callable[[], T | None], doing: str, waits: Waits) -> T:
    """Repeat `once` until it returns an answer; None means "ask again".

    Raises the `AwsError` of a certain refusal, or `UnknownOutcome` when patience ends and one of
    the tries may have been carried out. `once` must not retry by itself.
    """
    unclear = False
    last: AwsError | None = None
    for _ in waits.attempts(waits.answer):
        try:
            if (answer := once()) is not None:
                return answer
        except AwsError as error:
            last = error
            unclear = unclear or error.may_have_acted
            # A refusal proves nothing about an earlier try that got no answer.
            if not unclear and not error.retryable:
                raise
    if last is not None and not unclear:
        raise last
    raise UnknownOutcome(
        f"{doing}: state unknown: no clear response in {waits.answer:.0f} s",
        hint="run again with the same `--job-id`, and change nothing before",
        retryable=True,
    ) from last


def without_conditions(error: AwsError) -> ConditionalWritesUnsupported:
    """Return the error of a store that rejected a request because of its condition."""
    return ConditionalWritesUnsupported(
        f"{error.message}: this store has no conditional writes",
        hint=(
            "set `single_writer: true` only if you never run two writers at a time: they "
            "could damage a table"
        ),
    )


def crc32(body: bytes) -> str:
    """Return the CRC32 of `body` as S3 writes it: base64 of four bytes, the highest first."""
    return base64.b64encode(zlib.crc32(body).to_bytes(4, "big")).decode()


class EncryptionHeaders(TypedDict, total=False):
    """Arguments of PutObject and CreateMultipartUpload."""

    ServerSideEncryption: Literal["AES256", "aws:kms"]
    SSEKMSKeyId: str


class ChecksumHeader(TypedDict, total=False):
    """The checksum of a body."""

    ChecksumCRC32: str


class ChecksumAlgorithm(TypedDict, total=False):
    """The checksum that the parts of an upload will have."""

    ChecksumAlgorithm: Literal["CRC32"]


class IfMatch(TypedDict, total=False):
    """Only if the object at the key still has this ETag."""

    IfMatch: str


class IfUnchanged(TypedDict, total=False):
    """Only if nothing is at the key, or only if the object there still has this ETag."""

    IfNoneMatch: Literal["*"]
    IfMatch: str


def encryption_headers(encryption: EncryptionSpec) -> EncryptionHeaders:
    """Return what every upload must carry; nothing for NONE (the bucket's default then applies)."""
    match encryption.type:
        case "NONE":
            return {}
        case "SSE_S3":
            return {"ServerSideEncryption": "AES256"}
        case "SSE_KMS":
            headers: EncryptionHeaders = {"ServerSideEncryption": "aws:kms"}
            if encryption.kms_key_id:
                headers["SSEKMSKeyId"] = encryption.kms_key_id
            return headers
        case _:
            assert_never(encryption.type)


MARKER = b"lakeload asks here whether this store has conditional writes; keep it\n"

WHAT_IS_LOST = (
    "this store has no conditional writes (`single_writer: true`): a concurrent "
    "sync, recover or reset of this table is not detected, and rows may be lost or duplicated"
)


BODY_TRIES = 3
PARQUET_CONTENT_TYPE = "application/vnd.apache.parquet"


class Objects:
    """Reads and writes of one bucket. Thread-safe. Every method may raise `AwsError`.

    `waits` is the patience and the clock of everything that uses this bucket. `conditional` says
    whether writes carry conditions; None: always, but for a `single_writer` as the store can.
    """

    def __init__(
        self,
        session: AwsSession,
        destination: DestinationSpec,
        *,
        waits: Waits | None = None,
        conditional: bool | None = None,
    ) -> None:
        self._session = session
        self._bucket = destination.bucket
        self._single_writer = destination.single_writer
        self._encryption = encryption_headers(destination.encryption)
        self.waits = waits or Waits()
        self._marker = conditional_writes_key(destination.prefix)
        self._conditional = True if conditional is None and not self._single_writer else conditional
        self._lock = threading.Lock()

    def in_bucket(self, bucket: str) -> Objects:
        """Return the objects of another bucket, which is reached alike."""
        other = copy.copy(self)
        other._bucket = bucket
        return other

    def url(self, key: str) -> str:
        """Return `s3://bucket/key`, for messages."""
        return f"s3://{self._bucket}/{key}"

    def get(self, key: str, *, denied_is_missing: bool = False) -> bytes | None:
        """Return the object's bytes, or None when it does not exist.

        Under a policy that allows ListBucket for a prefix only, S3 answers 403 for a missing key:
        `denied_is_missing` suits a cache that may not be there; otherwise read what LIST has shown.
        """
        for _ in range(BODY_TRIES - 1):
            try:
                return self._get_once(key, denied_is_missing)
            except AwsError as error:
                # botocore retries requests, not bodies that break off.
                if error.status is not None or not error.retryable:
                    raise
        return self._get_once(key, denied_is_missing)

    def _get_once(self, key: str, denied_is_missing: bool) -> bytes | None:
        try:
            with aws_call(f"reading `{self.url(key)}`"):
                return self._session.s3.get_object(Bucket=self._bucket, Key=key)["Body"].read()
        except AwsError as error:
            if error.code == "NoSuchKey" or (error.denied and denied_is_missing):
                return None
            raise

    def get_version(self, key: str) -> tuple[bytes, str] | None:
        """Return the object's bytes and its ETag, by one request; None when it does not exist."""
        try:
            with aws_call(f"reading `{self.url(key)}`"):
                answer = self._session.s3_once.get_object(Bucket=self._bucket, Key=key)
                return answer["Body"].read(), answer["ETag"]
        except AwsError as error:
            if error.code == "NoSuchKey":
                return None
            raise

    def put_version(self, key: str, body: bytes, etag: str | None) -> bool:
        """Write an object if the one there still has this ETag, or with None if there is none, by
        one request; return False where another writer came first. Without conditional writes it is
        written whatever is there: for what may get lost."""
        condition: IfUnchanged = {}
        if not self._single_writer:
            condition = {"IfNoneMatch": "*"} if etag is None else {"IfMatch": etag}
        try:
            return self._put_version(key, body, condition)
        except AwsError as error:
            if not condition or not error.not_implemented:
                raise
            return self._put_version(key, body, {})

    def _put_version(self, key: str, body: bytes, condition: IfUnchanged) -> bool:
        try:
            self._put(self._session.s3_once, key, body, condition)
        except AwsError as error:
            # 404: If-Match, and the object is gone.
            if condition and (error.status in (409, 412) or error.code == "NoSuchKey"):
                return False
            raise
        return True

    def _put(self, s3: S3Client, key: str, body: bytes, condition: IfUnchanged) -> None:
        checksum = self._checksum(body)
        with aws_call(f"writing `{self.url(key)}`"):
            s3.put_object(
                Bucket=self._bucket,
                Key=key,
                Body=body,
                **condition,
                **checksum,
                **self._encryption,
            )

    def list(self, prefix: str, start_after: str | None = None) -> Iterator[ObjectEntry]:
        """Yield the objects below `prefix` in key order, page by page."""
        paginator = self._session.s3.get_paginator("list_objects_v2")
        pages = paginator.paginate(Bucket=self._bucket, Prefix=prefix, StartAfter=start_after or "")
        with aws_call(f"listing `{self.url(prefix)}`"):
            for page in pages:
                yield from map(_entry, page.get("Contents", []))

    def list_folders(self, prefix: str) -> Iterator[str]:
        """Yield the names of the folders right below `prefix`, whatever their contents."""
        paginator = self._session.s3.get_paginator("list_objects_v2")
        with aws_call(f"listing the folders in `{self.url(prefix)}`"):
            for page in paginator.paginate(Bucket=self._bucket, Prefix=prefix, Delimiter="/"):
                for item in page.get("CommonPrefixes", []):
                    yield item["Prefix"][len(prefix) : -1]

    def find(self, key: str) -> ObjectEntry | None:
        """Return the object at exactly `key` by a LIST sent now, or None.

        HEAD cannot tell: for a missing key it answers 403 under a prefix-scoped policy.
        """
        found = self._first(key, f"checking for `{self.url(key)}`")
        return found if found and found.key == key else None

    def is_empty(self, prefix: str) -> bool:
        """Return whether no object lies below `prefix`."""
        return self._first(prefix, f"listing `{self.url(prefix)}`") is None

    def _first(self, prefix: str, doing: str) -> ObjectEntry | None:
        with aws_call(doing):
            answer = self._session.s3.list_objects_v2(Bucket=self._bucket, Prefix=prefix, MaxKeys=1)
        return next(map(_entry, answer.get("Contents", [])), None)

    def head(self, key: str) -> ObjectHead | None:
        """Return size, ETag and metadata of an object that LIST has shown; None when it is gone."""
        try:
            with aws_call(f"reading the metadata of `{self.url(key)}`"):
                answer = self._session.s3.head_object(Bucket=self._bucket, Key=key)
        except AwsError as error:
            if error.status == 404:
                return None
            raise
        return ObjectHead(answer["ContentLength"], answer["ETag"], answer["Metadata"])

    def put(self, key: str, body: bytes) -> None:
        """Write an object, whatever is there: for caches only."""
        self._put(self._session.s3, key, body, {})

    def _checksum(self, body: bytes) -> ChecksumHeader:
        return {"ChecksumCRC32": crc32(body)} if self._session.sends_checksums else {}

    def put_if_absent(self, key: str, body: bytes) -> bool:
        """Create an object; return False when `key` is taken, perhaps by an earlier try of ours.

        No answer → the same PUT again until one comes. Raises `AwsError` when it certainly did not
        happen, `UnknownOutcome` when that cannot be told, `ConditionalWritesUnsupported`.
        """
        if not self._sends_conditions():
            if self.find(key) is not None:
                return False
            self.put(key, body)
            return True
        return self._create(key, body)

    def _sends_conditions(self) -> bool:
        """Return whether writes carry conditions. Raises what a write raises.

        They do, unless the document says `single_writer: true` of a store that has none: such a
        document must not weaken a store that has them, so the store is asked once, at the first
        write.
        """
        with self._lock:
            if self._conditional is None:
                self._conditional = self.has_conditional_writes()
            return self._conditional

    def has_conditional_writes(self) -> bool:
        """Return whether the store refuses to write an object that is there, whatever the document
        says of it. The marker stays, so that one request answers on every later run.

        A store that lacks the feature says so (501), or ignores the header and takes the second
        write as it took the first.
        """
        try:
            return not all(self._create(self._marker, MARKER) for _ in range(2))
        except ConditionalWritesUnsupported:
            return False

    def _create(self, key: str, body: bytes) -> bool:
        doing = f"writing `{self.url(key)}`"
        try:
            return until_answered(lambda: self._put_once(key, body), doing, self.waits)
        except AwsError as error:
            if not error.not_implemented:
                raise
            raise self._unsupported(key, error) from error

    def _unsupported(self, key: str, error: AwsError) -> Refused:
        """Return what the store lacks that answered 501 to a condition, a checksum and perhaps
        encryption: found by leaving them out, as no code tells it. No object is written."""
        try:
            upload_id = self._create_upload(key, {}, checksums=False)
        except AwsError:
            return error
        try:
            self.upload_part(key, upload_id, 1, MARKER)
        except AwsError as again:
            if again.not_implemented and self._session.sends_checksums:
                return ChecksumsUnsupported(
                    f"{error.message}: this store does not accept checksums "
                    "(`x-amz-checksum-crc32`)",
                    hint="set AWS_REQUEST_CHECKSUM_CALCULATION=WHEN_REQUIRED",
                )
            return error
        finally:
            with suppress(AwsError):
                self.abort_upload(key, upload_id)
        return without_conditions(error)

    def _put_once(self, key: str, body: bytes) -> bool | None:
        try:
            self._put(self._session.s3_once, key, body, {"IfNoneMatch": "*"})
        except AwsError as error:
            if error.status == 412:
                return False
            if error.status == 409:
                return None
            raise
        return True

    def create_upload(self, key: str, metadata: Mapping[str, str]) -> str:
        """Begin a multipart upload and return its id. Nothing is visible at `key`."""
        return self._create_upload(key, metadata, checksums=self._session.sends_checksums)

    def _create_upload(self, key: str, metadata: Mapping[str, str], *, checksums: bool) -> str:
        algorithm: ChecksumAlgorithm = {"ChecksumAlgorithm": "CRC32"} if checksums else {}
        with aws_call(f"starting the upload of `{self.url(key)}`"):
            answer = self._session.s3.create_multipart_upload(
                Bucket=self._bucket,
                Key=key,
                Metadata=dict(metadata),
                ContentType=PARQUET_CONTENT_TYPE,
                **algorithm,
                **self._encryption,
            )
            return answer["UploadId"]

    def upload_part(self, key: str, upload_id: str, number: int, body: bytes) -> Part:
        """Upload part `number` (1…10,000; at least 5 MiB unless it is the last)."""
        checksum = self._checksum(body)
        with aws_call(f"uploading part {number} of `{self.url(key)}`"):
            answer = self._session.s3.upload_part(
                Bucket=self._bucket,
                Key=key,
                UploadId=upload_id,
                PartNumber=number,
                Body=body,
                **checksum,
            )
        return Part(number, answer["ETag"], checksum.get("ChecksumCRC32", ""))

    def complete_upload(
        self, key: str, upload_id: str, parts: tuple[Part, ...], *, if_absent: bool = True
    ) -> Completion:
        """Make an upload visible if nothing is at its key; asked again until S3 answers. Without
        `if_absent` the key is nobody else's, and no condition is sent.

        Raises `UnknownOutcome` when no clear answer came in time: completing again is safe.
        """
        conditional = if_absent and self._sends_conditions()
        if if_absent and not conditional and self.find(key) is not None:
            return Completion.KEY_TAKEN
        condition: IfUnchanged = {"IfNoneMatch": "*"} if conditional else {}
        doing = f"completing the upload of `{self.url(key)}`"
        listed: list[CompletedPartTypeDef] = [
            {"PartNumber": part.number, "ETag": part.etag, "ChecksumCRC32": part.checksum}
            if part.checksum
            else {"PartNumber": part.number, "ETag": part.etag}
            for part in parts
        ]

        def once() -> Completion | None:
            with aws_call(doing):
                self._session.s3_once.complete_multipart_upload(
                    Bucket=self._bucket,
                    Key=key,
                    UploadId=upload_id,
                    MultipartUpload={"Parts": listed},
                    **condition,
                )
            return Completion.COMPLETED

        def answer() -> Completion | None:
            try:
                return once()
            except AwsError as error:
                if error.code == "NoSuchUpload":
                    return Completion.NO_SUCH_UPLOAD
                if error.status == 412:
                    return Completion.KEY_TAKEN
                if error.status == 409:
                    return None
                if conditional and error.not_implemented:
                    # It took the checksums of the parts.
                    raise without_conditions(error) from error
                raise

        return until_answered(answer, doing, self.waits)

    def abort_upload(self, key: str, upload_id: str) -> None:
        """Abort an upload; one that is gone already is fine."""
        try:
            with aws_call(f"aborting the upload of `{self.url(key)}`"):
                self._session.s3.abort_multipart_upload(
                    Bucket=self._bucket, Key=key, UploadId=upload_id
                )
        except AwsError as error:
            if error.code != "NoSuchUpload":
                raise

    def list_uploads(self, prefix: str) -> Iterator[OpenUpload]:
        """Yield the open uploads below `prefix`."""
        paginator = self._session.s3.get_paginator("list_multipart_uploads")
        with aws_call(f"listing the open uploads below `{self.url(prefix)}`"):
            for page in paginator.paginate(Bucket=self._bucket, Prefix=prefix):
                for item in page.get("Uploads", []):
                    yield OpenUpload(item["Key"], item["UploadId"], item["Initiated"])

    def delete(self, key: str, etag: str) -> bool:
        """Delete the object if it still has this ETag; False when another one is there now."""
        condition: IfMatch = {} if self._single_writer else {"IfMatch": etag}
        try:
            with aws_call(f"deleting `{self.url(key)}`"):
                self._session.s3.delete_object(Bucket=self._bucket, Key=key, **condition)
        except AwsError as error:
            if error.status == 412:
                return False
            if error.status == 404 and error.code != "NoSuchBucket":
                return True
            if condition and error.not_implemented:
                raise without_conditions(error) from error
            raise
        return True


def _entry(item: ObjectTypeDef) -> ObjectEntry:
    return ObjectEntry(item["Key"], item["Size"], item["ETag"], item["LastModified"])
