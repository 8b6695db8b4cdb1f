"""Recognises the steps of an Iceberg load on the wire: which table, and what happens to it."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from lakeload_jobs.core.names import REJECTED_SUFFIX
from tests.servers.aws_requests import Request

CREATE, COMMIT, LOAD = "create", "commit", "load"
"""Requests to the catalog."""
PUBLISH = 2
"""The number of the publishing commit of a load that lakeload writes: the branch is made before."""

_REST_TABLE = re.compile(r"/namespaces/[^/?]+/tables/([^/?]+)(\?|$)")
_NESSIE_COMMIT = re.compile(r"/trees/[^/?]+/history/commit")
_NESSIE_CONTENT = re.compile(r"/trees/[^/?]+/contents/[^/?.]+\.([^/?]+)(\?|$)")
_REST_TABLES = re.compile(r"/namespaces/[^/?]+/tables(\?|$)")
_S3 = {
    "CreateMultipartUpload": "begin",
    "UploadPart": "write",
    "CompleteMultipartUpload": "complete",
    "PutObject": "write",
    "GetObject": "read",
}
_GLUE = {"CreateTable": CREATE, "UpdateTable": COMMIT, "GetTable": LOAD}
_FILE = re.compile(
    r"/([^/]+?)(?:_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?/(data|metadata)/(?:.*/)?([^/]+)$"
)
"""In Nessie a UUID ends the name of a table's folder."""


@dataclass(frozen=True)
class Step:
    """One request about one table: `commit`, `write data`, `complete data`, …"""

    table: str
    kind: str


REJECTED = "rejected "
"""Begins the kind of a step that is about the side table of a table's rejected records."""


def step_of(request: Request) -> Step | None:
    """Return what a request is; None for one that is about no table."""
    step = _step_of(request)
    if step is not None and step.table.endswith(REJECTED_SUFFIX):
        return Step(step.table.removesuffix(REJECTED_SUFFIX), f"{REJECTED}{step.kind}")
    return step


def _step_of(request: Request) -> Step | None:
    if request.service == "glue":
        return _of_glue(request)
    if request.service == "s3":
        return _of_s3(request)
    return _of_rest(request)


def _of_glue(request: Request) -> Step | None:
    kind = _GLUE.get(request.operation)
    if kind is None:
        return None
    body = json.loads(request.body)
    return Step(body.get("TableInput", body)["Name"], kind)


def _of_rest(request: Request) -> Step | None:
    if "/trees/" in request.target:
        return _of_nessie(request)
    if named := _REST_TABLE.search(request.target):
        kind = {"POST": COMMIT, "GET": LOAD}.get(request.method)
        if kind == COMMIT and not json.loads(request.body)["updates"]:
            # A sync asks so, about one of its tables, whether the catalog compares commits.
            return None
        return Step(unquote(named[1]), kind) if kind else None
    if request.method == "POST" and _REST_TABLES.search(request.target):
        return Step(json.loads(request.body)["name"], CREATE)
    return None


def _of_nessie(request: Request) -> Step | None:
    """Java asks for several contents in one request, which is about no table."""
    if request.method == "GET" and (named := _NESSIE_CONTENT.search(request.target)):
        return Step(unquote(named[1]), LOAD)
    if request.method != "POST" or not _NESSIE_COMMIT.search(request.target):
        return None
    tables = [
        (operation["key"]["elements"][-1], operation["content"])
        for operation in _json(request.body)["operations"]
        if operation["type"] == "PUT" and operation["content"]["type"] == "ICEBERG_TABLE"
    ]
    if not tables:
        return None
    ((name, content),) = tables
    return Step(name, COMMIT if content.get("id") else CREATE)


def _json(body: bytes) -> Any:
    """Java's client of Nessie compresses what it sends."""
    return json.loads(gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body)


def _of_s3(request: Request) -> Step | None:
    found = _FILE.search(f"/{request.key}")
    verb = _S3.get(request.operation)
    if found is None or verb is None:
        return None
    return Step(found[1], f"{verb} {_file_kind(found[2], found[3])}")


def _file_kind(folder: str, name: str) -> str:
    if folder == "data":
        deletes = "-deletes." in name or name.endswith(".puffin")
        return "deletes" if deletes else "data"
    if name.endswith(".metadata.json"):
        return "metadata"
    return "manifest list" if name.startswith("snap-") else "manifest"


@dataclass(frozen=True)
class Point:
    """A place in a load: the `number`-th request of its kind, from 1, before or after the server
    acted on it."""

    kind: str
    number: int
    after: bool

    def __str__(self) -> str:
        return f"{'after' if self.after else 'before'} {self.kind} {self.number}"


def points(kinds: list[str], wanted: Callable[[str], bool]) -> list[Point]:
    """Return the places that a recorded load has."""
    counted: dict[str, int] = {}
    found = []
    for kind in kinds:
        counted[kind] = counted.get(kind, 0) + 1
        if wanted(kind):
            found += [Point(kind, counted[kind], after) for after in (False, True)]
    return found
