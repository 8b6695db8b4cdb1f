"""The emulator seen without the product: plain HTTP as its administrator, XML and JSON by hand."""

from __future__ import annotations

import http.client
import time
from dataclasses import dataclass
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

KEEP_SECONDS = 2
"""The emulator closes a connection that is idle for 5 s."""


@dataclass(frozen=True)
class Listed:
    """An object as a LIST shows it. `version` changes with it."""

    key: str
    size: int
    version: str


@dataclass(frozen=True)
class OpenUpload:
    """An upload that is neither completed nor aborted."""

    key: str
    upload_id: str


class Bucket:
    """One bucket, for whoever judges it. Not for two threads."""

    def __init__(self, endpoint: str, name: str) -> None:
        self.name = name
        self._connection = http.client.HTTPConnection(urlsplit(endpoint).netloc, timeout=60)
        self._used = 0.0
        self._read: dict[Listed, tuple[bytes, str]] = {}

    def create(self) -> None:
        """Make the bucket."""
        self._send("PUT", "")

    def objects(self) -> list[Listed]:
        """Every object."""
        found: list[Listed] = []
        query = "?list-type=2"
        while True:
            page = ElementTree.fromstring(self._send("GET", query))  # noqa: S314
            found += [
                Listed(
                    _text(item, "Key"),
                    int(_text(item, "Size")),
                    _text(item, "ETag") + _text(item, "LastModified"),
                )
                for item in _all(page, "Contents")
            ]
            token = _text(page, "NextContinuationToken")
            if not token:
                return found
            query = f"?list-type=2&continuation-token={quote(token, safe='')}"

    def uploads(self) -> list[OpenUpload]:
        """Every open upload."""
        page = ElementTree.fromstring(self._send("GET", "?uploads"))  # noqa: S314
        return [
            OpenUpload(_text(item, "Key"), _text(item, "UploadId")) for item in _all(page, "Upload")
        ]

    def abort(self, upload: OpenUpload) -> bool:
        """Abort an upload, as a lifecycle rule does; False when somebody was faster."""
        rest = f"{quote(upload.key)}?uploadId={quote(upload.upload_id, safe='')}"
        path = f"/{self.name}/{rest}"
        status, _, data = self._exchange("DELETE", path, b"", _signed("s3"))
        if status >= 300 and status != 404:
            raise RuntimeError(f"DELETE {path} answered {status} {data!r}")
        return status < 300

    def read(self, listed: Listed) -> tuple[bytes, str]:
        """An object's bytes and the attempt that its metadata names.

        Asked for once in each version: an object that was overwritten has another ETag.
        """
        if listed not in self._read:
            _, headers, data = self._request("GET", "/" + quote(listed.key))
            self._read[listed] = data, headers.get("x-amz-meta-attempt", "")
        return self._read[listed]

    def _send(self, method: str, rest: str) -> bytes:
        return self._request(method, rest)[2]

    def _request(self, method: str, rest: str) -> tuple[int, dict[str, str], bytes]:
        path = f"/{self.name}{rest}"
        status, found, data = self._exchange(method, path, b"", _signed("s3"))
        if status >= 300:
            raise RuntimeError(f"{method} {path} answered {status} {data!r}")
        return status, found, data

    def _exchange(
        self, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        if time.monotonic() - self._used > KEEP_SECONDS:
            self._connection.close()
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        data = answer.read()
        self._used = time.monotonic()
        return answer.status, found, data


def _signed(service: str) -> dict[str, str]:
    """The emulator knows its administrator by name and asks for no signature."""
    scope = f"test/20260101/us-east-1/{service}/aws4_request"
    return {
        "Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0"
    }


def _all(page: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [item for item in page.iter() if item.tag.rpartition("}")[2] == name]


def _text(item: ElementTree.Element, name: str) -> str:
    return next((found.text or "" for found in _all(item, name)), "")
