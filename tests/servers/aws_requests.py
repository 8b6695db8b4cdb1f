"""Recognises AWS requests on the wire: which service, operation, bucket and key."""

from __future__ import annotations

from dataclasses import dataclass, field
from email.message import Message
from functools import cached_property
from io import BufferedIOBase
from urllib.parse import parse_qs, unquote, urlsplit

_OBJECT_OPERATIONS = {
    # (method, the query parameter that tells it apart)
    ("PUT", "partNumber"): "UploadPart",
    ("PUT", ""): "PutObject",
    ("POST", "uploads"): "CreateMultipartUpload",
    ("POST", "uploadId"): "CompleteMultipartUpload",
    ("DELETE", "uploadId"): "AbortMultipartUpload",
    ("DELETE", ""): "DeleteObject",
    ("GET", "uploadId"): "ListParts",
    ("GET", ""): "GetObject",
    ("HEAD", ""): "HeadObject",
}
_BUCKET_OPERATIONS = {
    ("GET", "uploads"): "ListMultipartUploads",
    ("GET", "location"): "GetBucketLocation",
    ("GET", ""): "ListObjectsV2",
    ("POST", "delete"): "DeleteObjects",
    ("PUT", ""): "CreateBucket",
    ("HEAD", ""): "HeadBucket",
    ("DELETE", ""): "DeleteBucket",
}


@dataclass(frozen=True)
class Request:
    """One HTTP request to AWS in path style; `target` is path and query as sent."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes = field(repr=False)

    def header(self, name: str) -> str:
        """Return a header's value, or ''."""
        return next((v for n, v in self.headers if n.lower() == name.lower()), "")

    @cached_property
    def service(self) -> str:
        """The service the signature is for (`s3`, `sts`, `glue`, …), or ''."""
        _, _, scope = self.header("Authorization").partition("Credential=")
        parts = scope.split(",")[0].split("/")
        return parts[3] if len(parts) > 3 else ""

    @cached_property
    def operation(self) -> str:
        """The API operation, such as `PutObject` or `AssumeRole`; '' if not recognised."""
        if target := self.header("X-Amz-Target"):
            return target.rpartition(".")[2]
        if self.service != "s3":
            form = parse_qs(self.body.decode("utf-8", "replace"))
            return form.get("Action", [""])[0]
        table = _OBJECT_OPERATIONS if self.key else _BUCKET_OPERATIONS
        query = parse_qs(urlsplit(self.target).query, keep_blank_values=True)
        named = (name for (method, name), _ in table.items() if method == self.method)
        mark = next((name for name in named if name and name in query), "")
        return table.get((self.method, mark), "")

    @cached_property
    def bucket(self) -> str:
        """The bucket of an S3 request, or ''."""
        return self._path[0] if self.service == "s3" else ""

    @cached_property
    def key(self) -> str:
        """The object key of an S3 request, or ''."""
        return self._path[1] if self.service == "s3" else ""

    @property
    def _path(self) -> tuple[str, str]:
        bucket, _, key = unquote(urlsplit(self.target).path).lstrip("/").partition("/")
        return bucket, key


def read_body(headers: Message, stream: BufferedIOBase) -> bytes:
    """Read a request's body, of a known length or chunked."""
    if headers.get("Transfer-Encoding", "").lower() != "chunked":
        return stream.read(int(headers.get("Content-Length") or 0))
    body = b""
    while size := int(stream.readline().split(b";")[0], 16):
        body += stream.read(size)
        stream.readline()
    while stream.readline().strip():  # trailers
        pass
    return body
