"""Parts of a multipart upload."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """One uploaded part: what CompleteMultipartUpload wants back. `checksum` is base64 CRC32."""

    number: int
    etag: str
    checksum: str
