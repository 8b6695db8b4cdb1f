"""A REST catalog that compares nothing: a real one, without what its commits require."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.servers.aws_requests import Request
from tests.servers.fault_proxy import Forward, Response


def without_requirements(request: Request, forward: Forward) -> Response:
    """Forward a commit without what it asserts, and anything else as it is."""
    if request.method == "POST" and b'"requirements"' in request.body:
        commit = {**json.loads(request.body), "requirements": []}
        request = replace(request, body=json.dumps(commit).encode())
    return forward(request)


def is_commit(request: Request) -> bool:
    """Whether a request changes a table, and names what it asserts."""
    return request.method == "POST" and b'"requirements"' in request.body
