"""A stand-in for STS, Glue and S3 on the loopback: as much of them as loads of Iceberg tables ask.

For the training run alone: Iceberg's clients then do all they do in a load, and nothing leaves the
machine. Signatures are not looked at, and nothing is kept.
"""

from __future__ import annotations

import hashlib
import json
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urlsplit

_XML = "application/xml"
_JSON = "application/x-amz-json-1.1"


class TrainingAws:
    """The stand-in, from `with` to its end; `endpoint` is its URL."""

    def __init__(self) -> None:
        """Take a free port of the loopback."""
        self.objects: dict[str, bytes] = {}
        self.databases: dict[str, dict[str, Any]] = {}
        self.tables: dict[tuple[str, str], dict[str, Any]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        """Answer from now on."""
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def glue(self, action: str, request: dict[str, Any]) -> dict[str, Any] | None:
        """Answer one action of Glue; None for what is not there."""
        if action == "CreateDatabase":
            self.databases[request["DatabaseInput"]["Name"]] = request["DatabaseInput"]
            return {}
        if action == "GetDatabase":
            database = self.databases.get(request["Name"])
            return None if database is None else {"Database": database}
        schema = request["DatabaseName"]
        if action in ("CreateTable", "UpdateTable"):
            given = request["TableInput"]
            before = self.tables.get((schema, given["Name"]), {"VersionId": "-1"})
            version = str(int(before["VersionId"]) + 1)
            kept = {**given, "DatabaseName": schema, "VersionId": version}
            self.tables[schema, given["Name"]] = kept
            return {}
        table = self.tables.get((schema, request["Name"]))
        return None if table is None else {"Table": table}


def _handler(aws: TrainingAws) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self._body()
            target = self.headers.get("X-Amz-Target", "")
            if not target:
                self._answer(200, _role(), _XML)
                return
            answer = aws.glue(target.rpartition(".")[2], json.loads(body))
            if answer is None:
                missing = {"__type": "EntityNotFoundException", "Message": "not found"}
                self._answer(400, json.dumps(missing).encode(), _JSON)
            else:
                self._answer(200, json.dumps(answer).encode(), _JSON)

        def do_PUT(self) -> None:
            body = self._body()
            if "aws-chunked" in self.headers.get("Content-Encoding", ""):
                body = _without_chunks(body)
            aws.objects[self._key()] = body
            self._answer(200, b"", _XML, ETag=f'"{hashlib.sha256(body).hexdigest()[:32]}"')

        def do_GET(self) -> None:
            found = aws.objects.get(self._key())
            if found is None:
                self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>", _XML)
                return
            wanted = self.headers.get("Range", "")
            if not wanted:
                self._answer(200, found, "binary/octet-stream")
                return
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            begin = int(first) if first else max(0, len(found) - int(last))
            end = min(int(last), len(found) - 1) if first and last else len(found) - 1
            place = f"bytes {begin}-{end}/{len(found)}"
            part = found[begin : end + 1]
            self._answer(206, part, "binary/octet-stream", **{"Content-Range": place})

        def do_HEAD(self) -> None:
            found = aws.objects.get(self._key())
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Length", str(len(found or b"")))
            self.end_headers()

        def do_DELETE(self) -> None:
            aws.objects.pop(self._key(), None)
            self._answer(204, b"", _XML)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: spark.log is for Spark."""

        def _key(self) -> str:
            return unquote(urlsplit(self.path).path)

        def _body(self) -> bytes:
            return self.rfile.read(int(self.headers.get("Content-Length", "0")))

        def _answer(self, status: int, body: bytes, kind: str, **headers: str) -> None:
            self.send_response(status)
            now = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
            for name, value in {"Content-Type": kind, "Last-Modified": now, **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


def _without_chunks(body: bytes) -> bytes:
    """Return what an upload in signed chunks holds: https://docs.aws.amazon.com/AmazonS3/latest/API/
    sigv4-streaming-trailers.html."""
    found, rest = [], body
    while rest:
        head, _, rest = rest.partition(b"\r\n")
        size = int(head.partition(b";")[0] or b"0", 16)
        if size == 0:
            break
        found.append(rest[:size])
        rest = rest[size + 2 :]
    return b"".join(found)


def _role() -> bytes:
    expires = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    role = "arn:aws:sts::000000000000:assumed-role/training/training"
    return (
        '<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>'
        "<Credentials><AccessKeyId>training</AccessKeyId>"
        "<SecretAccessKey>training</SecretAccessKey><SessionToken>training</SessionToken>"
        f"<Expiration>{expires}</Expiration></Credentials>"
        f"<AssumedRoleUser><Arn>{role}</Arn><AssumedRoleId>training:training</AssumedRoleId>"
        "</AssumedRoleUser></AssumeRoleResult></AssumeRoleResponse>"
    ).encode()
