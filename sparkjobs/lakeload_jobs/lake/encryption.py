"""Server-side encryption as S3 headers."""

from __future__ import annotations

from typing import Literal, TypedDict

from lakeload_jobs.contract.spec import EncryptionSpec


class EncryptionHeaders(TypedDict, total=False):
    """Arguments of PutObject and CreateMultipartUpload."""

    ServerSideEncryption: Literal["AES256", "aws:kms"]
    SSEKMSKeyId: str


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
