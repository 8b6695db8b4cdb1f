"""What S3 answers, and what to do when it does not: ask again, never guess (DESIGN section 5)."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TypeVar

from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import LoadFailed, Refused
from lakeload_jobs.storage.backoff import Waits

T = TypeVar("T")


class UnknownOutcome(LoadFailed):
    """A write was sent and its answer never came: it may or may not have happened."""


class ConditionalWritesUnsupported(Refused):
    """The store does not know If-None-Match or If-Match."""


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
                raise plainer(error) from error
    if last is not None and not unclear:
        raise last
    raise UnknownOutcome(
        f"{doing}: no clear answer came in {waits.answer:.0f} s; it may have happened or not",
        hint="leave everything as it is and run again with the same --job-id",
        retryable=True,
    ) from last


def plainer(error: AwsError) -> Refused:
    """Return the error, or for HTTP 501 the one that says what this store lacks."""
    if error.status != 501 and error.code != "NotImplemented":
        return error
    return ConditionalWritesUnsupported(
        f"{error.message}: this store has no conditional writes",
        hint="without them two writers can damage a table: set `single_writer: true` only if there "
        "is never more than one at a time",
    )


def crc32(body: bytes) -> str:
    """Return the CRC32 of `body` as S3 writes it: base64 of four bytes, the highest first."""
    return base64.b64encode(zlib.crc32(body).to_bytes(4, "big")).decode()
