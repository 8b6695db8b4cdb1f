"""Headers of writes as botocore's arguments: server-side encryption and conditions."""

from __future__ import annotations

from typing import Literal, TypedDict

from lakeload_jobs.contract.spec import EncryptionSpec


class EncryptionHeaders(TypedDict, total=False):
    """Arguments of PutObject and CreateMultipartUpload."""

    ServerSideEncryption: Literal["AES256", "aws:kms"]
    SSEKMSKeyId: str


class IfAbsent(TypedDict, total=False):
    """Only if nothing is at the key."""

    IfNoneMatch: Literal["*"]


class IfMatch(TypedDict, total=False):
    """Only if the object at the key still has this ETag."""

    IfMatch: str


def encryption_headers(encryption: EncryptionSpec) -> EncryptionHeaders:
    """Return what every upload must carry; nothing for NONE (the bucket's default then applies)."""
    if encryption.type == "SSE_S3":
        return {"ServerSideEncryption": "AES256"}
    if encryption.type == "SSE_KMS":
        headers: EncryptionHeaders = {"ServerSideEncryption": "aws:kms"}
        if encryption.kms_key_id:
            headers["SSEKMSKeyId"] = encryption.kms_key_id
        return headers
    return {}
