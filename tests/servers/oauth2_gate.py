"""A gate before a REST catalog that asks nobody who they are: it makes a Polaris of it.

Error bodies and the order of checks are those measured on Polaris 1.4.1; what a privilege is
called for each call, too. It is a stand-in: it knows nothing of location rules or of grants below a
catalog.
"""

from __future__ import annotations

import http.client
import json
import re
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pyiceberg.catalog import Catalog, load_catalog

BASE = "/api/catalog"
CATALOG = "lake"
_SCOPE = "PRINCIPAL_ROLE:"
_FORWARDED = ("content-type", "x-iceberg-access-delegation", "if-none-match", "idempotency-key")
_TABLE = re.compile(r"namespaces/[^/]+/tables/[^/]+")
_TABLES = re.compile(r"namespaces/[^/]+/tables")
_NAMESPACE = re.compile(r"namespaces/[^/]+")
_PUBLISHES = b'"lakeload.jobs"'
"""What a commit has that publishes a job, and no other: the list of jobs, a property."""


@dataclass(frozen=True)
class Principal:
    """A client. `roles` maps each of its roles to the operations it may not do."""

    name: str
    secret: str
    roles: Mapping[str, frozenset[str]]


@dataclass
class Request:
    """One request as the gate saw it."""

    method: str
    path: str
    form: dict[str, str]
    headers: dict[str, str]


@dataclass
class Gate:
    """A running gate. Its principals, and what it is asked to get wrong, are the test's to set."""

    backend: str
    principals: dict[str, Principal] = field(
        default_factory=lambda: {
            "loader-id": Principal("loader", "loader-secret", {"loader_role": frozenset()})
        }
    )
    vends: bool = True
    """Whether it has a way to make credentials."""
    purges: bool = False
    requests: list[Request] = field(default_factory=list)
    on_commit: Callable[[str], None] | None = None
    """Called with `before` and with `after` for each commit of a table that publishes a job."""
    _tokens: dict[str, tuple[Principal, str]] = field(default_factory=dict)

    def __enter__(self) -> Gate:
        """Start to serve."""
        gate = self

        class Handler(_Handler):
            owner = gate

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def uri(self) -> str:
        """The catalog's address."""
        return f"http://127.0.0.1:{self._server.server_port}{BASE}"

    def deny(self, *operations: str, client: str = "loader-id") -> None:
        """Take operations from every role of a client."""
        principal = self.principals[client]
        roles = {role: denied | set(operations) for role, denied in principal.roles.items()}
        self.principals[client] = Principal(principal.name, principal.secret, roles)

    def expire_tokens(self) -> None:
        """Forget every token."""
        self._tokens.clear()

    def token_for(self, form: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        """Answer a request for a token."""
        principal = self.principals.get(form.get("client_id", ""))
        scope = form.get("scope", "")
        if not scope.startswith(_SCOPE):
            return 400, _oauth("invalid_scope", "The scope is invalid")
        if principal is None or principal.secret != form.get("client_secret"):
            return 401, _oauth("unauthorized_client", "The client is not authorized")
        token = uuid.uuid4().hex
        self._tokens[token] = (principal, scope.removeprefix(_SCOPE))
        return 200, {
            "access_token": token,
            "token_type": "bearer",
            "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
            "expires_in": 3600,
        }

    def bearer(self, header: str) -> tuple[Principal, str] | None:
        """Return whose token it is and the role it activates; None for an unknown one."""
        known = self._tokens.get(header.removeprefix("Bearer "))
        return (self.principals_by_name(known[0].name), known[1]) if known else None

    def principals_by_name(self, name: str) -> Principal:
        """Return the principal as it is now."""
        return next(one for one in self.principals.values() if one.name == name)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Each UPSERT of a sync opens the catalog, all at once: a queue of 5 loses some connections.
    request_queue_size = 64


class _Handler(BaseHTTPRequestHandler):
    owner: Gate
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        self.owner.requests.append(Request(self.command, self.path, form, dict(self.headers)))
        if not url.path.startswith(f"{BASE}/v1/"):
            return self._answer(404)
        path = url.path.removeprefix(f"{BASE}/v1/")
        if path == "oauth/tokens":
            return self._answer(*self.owner.token_for(form))
        who = self.owner.bearer(self.headers.get("Authorization") or "")
        if who is None:
            return self._answer(401, headers={"WWW-Authenticate": "Bearer"})
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if path == "config":
            return self._config(query.get("warehouse"))
        return self._call(path.partition("/")[2], url.query, body, who)

    def _config(self, warehouse: str | None) -> None:
        if not warehouse:
            return self._refuse(400, "BadRequestException", "Please specify a warehouse")
        if warehouse != CATALOG:
            text = f"Unable to find warehouse {warehouse}"
            return self._refuse(404, "NotFoundException", text)
        status, raw = self._forward("GET", "/v1/config", b"")
        document = json.loads(raw)
        document["overrides"]["prefix"] = warehouse
        return self._answer(status, document)

    def _call(self, path: str, query: str, body: bytes, who: tuple[Principal, str]) -> None:
        delegated = "x-iceberg-access-delegation" in {name.lower() for name in self.headers}
        operation = _operation(self.command, path, query, delegated=delegated)
        principal, role = who
        # Polaris looks for the thing before the privilege to remove it.
        gone = self.command == "DELETE" and self._forward("GET", f"/v1/{path}", b"")[0] == 404
        if not gone and self._denied(operation, principal, role):
            roles = f"[{role}]" if role != "ALL" else f"[{', '.join(principal.roles)}]"
            text = (
                f"Principal '{principal.name}' with activated PrincipalRoles '{roles}' and "
                f"activated grants via '{roles}' is not authorized for op {operation}"
            )
            return self._refuse(403, "ForbiddenException", text)
        if "PURGE" in operation and "WITHOUT" not in operation and not self.owner.purges:
            text = "Unable to purge entity: purging is not enabled for this catalog"
            return self._refuse(403, "ForbiddenException", text)
        if (
            delegated
            and not self.owner.vends
            and ("CREATE_TABLE" in operation or "LOAD_TABLE" in operation)
        ):
            name = path.removeprefix("namespaces/").replace("/tables/", ".")
            text = (
                f"Credential vending was requested for table {name}, but no credentials are "
                "available"
            )
            return self._refuse(400, "IllegalArgumentException", text)
        target = f"/v1/{path}" + (f"?{query}" if query else "")
        on_commit = self.owner.on_commit if _PUBLISHES in body else None
        if on_commit is not None:
            on_commit("before")
        status, raw = self._forward(self.command, target, body)
        if on_commit is not None:
            on_commit("after")
        return self._answer(status, raw=raw)

    def _denied(self, operation: str, principal: Principal, role: str) -> bool:
        """A role that the principal does not have grants nothing."""
        if role == "ALL":
            return all(operation in denied for denied in principal.roles.values())
        return role not in principal.roles or operation in principal.roles[role]

    def _forward(self, method: str, target: str, body: bytes) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(urlsplit(self.owner.backend).netloc, timeout=30)
        headers = {k: v for k, v in self.headers.items() if k.lower() in _FORWARDED}
        connection.request(method, target, body or None, headers)
        response = connection.getresponse()
        raw = response.read()
        connection.close()
        return response.status, raw

    def _refuse(self, status: int, kind: str, message: str) -> None:
        self._answer(status, {"error": {"message": message, "type": kind, "code": status}})

    def _answer(
        self,
        status: int,
        document: Mapping[str, Any] | None = None,
        *,
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        content = raw if raw is not None else json.dumps(document).encode() if document else b""
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if content:
            self.send_header("Content-Type", "application/json")
        if status != 204:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_POST = do_DELETE = do_HEAD = _serve


def _operation(method: str, path: str, query: str, *, delegated: bool) -> str:
    """Return what Polaris calls this request when it refuses it."""
    if path == "namespaces":
        return "CREATE_NAMESPACE" if method == "POST" else "LIST_NAMESPACES"
    if _TABLE.fullmatch(path):
        if method == "DELETE":
            purge = "purgerequested=true" in query.lower()
            return "DROP_TABLE_WITH_PURGE" if purge else "DROP_TABLE_WITHOUT_PURGE"
        if method == "POST":
            return "UPDATE_TABLE"
        return "LOAD_TABLE_WITH_READ_DELEGATION" if delegated else "LOAD_TABLE"
    if _TABLES.fullmatch(path):
        if method == "POST":
            return "CREATE_TABLE_DIRECT" + ("_WITH_WRITE_DELEGATION" if delegated else "")
        return "LIST_TABLES"
    if _NAMESPACE.fullmatch(path):
        return "DROP_NAMESPACE" if method == "DELETE" else "LOAD_NAMESPACE_METADATA"
    return f"{method} {path}"


def _oauth(error: str, description: str) -> dict[str, Any]:
    return {"error": error, "error_description": description, "error_uri": None}


def iceberg_in(gate: Gate, uri: str | None = None) -> dict[str, Any]:
    """Return what a destination says of the catalog, which vends no keys: files are written with
    the destination's role. The secret is in the variable CREDENTIAL."""
    catalog = {
        "type": "REST",
        "uri": uri or gate.uri,
        "warehouse": CATALOG,
        "credential": {"env": "CREDENTIAL"},
        "scope": "PRINCIPAL_ROLE:ALL",
        "access_delegation": "NONE",
    }
    return {"table_format": "ICEBERG", "iceberg": {"catalog": catalog}}


def opened(gate: Gate, endpoint: str, credential: str = "reader-id:r") -> Catalog:
    """Return the catalog as another program opens it, with an administrator's keys to S3."""
    return load_catalog(
        "reader",
        **{
            "type": "rest",
            "uri": gate.uri,
            "warehouse": CATALOG,
            "credential": credential,
            "scope": "PRINCIPAL_ROLE:ALL",
            "s3.endpoint": endpoint,
            "s3.region": "us-east-1",
            "s3.access-key-id": "test",
            "s3.secret-access-key": "test",
        },
    )
