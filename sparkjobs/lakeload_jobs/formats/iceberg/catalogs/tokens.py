"""Who we are to a REST catalog: an OAuth2 client, a fixed token, AWS's signature, or nobody."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import requests
from requests.auth import AuthBase

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.aws.signing import signed_headers
from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError
from lakeload_jobs.formats.iceberg.catalogs.http import (
    Patience,
    error_from,
    http_call,
    not_a_catalog,
    origin,
    prepare,
)

MARGIN_SECONDS = 60.0
"""A token is renewed this long before it expires, or at half of its life if that is shorter."""


class Identity(AuthBase):
    """How requests to a catalog say who sends them. This one says nothing."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Leave the request as it is: no password of a .netrc file either."""
        return request

    def renew(self) -> None:
        """Forget what the catalog no longer accepts."""


@dataclass(frozen=True)
class FixedToken(Identity):
    """A bearer token that somebody else made; it cannot be renewed here."""

    token: Secret

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the token."""
        return _with_token(request, self.token)


@dataclass(frozen=True)
class AwsSignature(Identity):
    """AWS's signature, with the identity that writes and renewed as that is."""

    session: AwsSession
    name: str
    region: str

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Sign the request as it is now. Raises what `AwsSession` raises."""
        body = request.body
        data = body.encode() if isinstance(body, str) else body if isinstance(body, bytes) else b""
        headers = signed_headers(
            self.session,
            method=request.method or "GET",
            url=request.url or "",
            body=data,
            content_type=request.headers.get("Content-Type"),
            name=self.name,
            region=self.region,
        )
        request.headers.update(headers)
        return request


class Client(Identity):
    """An OAuth2 client (client credentials, RFC 6749 section 4.4). Thread-safe.

    The id and the secret go into the body of the request, as every catalog takes them. A token is
    used until shortly before it expires. `hidden` is what no answer may show: tokens are added.
    """

    def __init__(
        self,
        *,
        uri: str,
        client_id: Secret,
        client_secret: Secret,
        scope: str,
        patience: Patience,
        hidden: list[Secret],
    ) -> None:
        self._uri = uri
        self._client_id = client_id
        self._client_secret = client_secret
        self._scope = scope
        self._patience = patience
        self._hidden = hidden
        self._lock = threading.Lock()
        self._token: Secret | None = None
        self._renew_at = 0.0

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add a token, asking for one if need be. Raises `CatalogError`."""
        return _with_token(request, self.token())

    def renew(self) -> None:
        """Ask for a new token with the next request."""
        with self._lock:
            self._token = None

    def token(self) -> Secret:
        """Return a token that is still valid. Raises `CatalogError`."""
        with self._lock:
            if self._token is None or time.monotonic() >= self._renew_at:
                self._token = self._ask()
            return self._token

    def _ask(self) -> Secret:
        doing = f"asking `{origin(self._uri)}` for a token"
        form = {
            "grant_type": "client_credentials",
            "client_id": self._client_id.reveal(),
            "client_secret": self._client_secret.reveal(),
            "scope": self._scope,
        }
        with http_call(doing, self._uri), prepare(requests.Session(), self._patience) as session:
            session.auth = Identity()
            response = session.post(self._uri, data=form)
        if not response.ok:
            raise error_from(doing, response, self._hidden)
        return self._taken(response, doing)

    def _taken(self, response: requests.Response, doing: str) -> Secret:
        try:
            document = response.json()
            token = Secret(str(document["access_token"]))
            life = float(document.get("expires_in") or 3600)
        except (ValueError, TypeError, KeyError, AttributeError):
            # The answer may hold a token under another name: it is not shown.
            raise not_a_catalog(doing, response.status_code) from None
        self._renew_at = time.monotonic() + life - min(MARGIN_SECONDS, life / 2)
        self._hidden.append(token)
        return token


def _with_token(request: requests.PreparedRequest, token: Secret) -> requests.PreparedRequest:
    value = token.reveal()
    if not value.isascii() or not value.isprintable():
        raise CatalogError(
            f"sending the token to `{origin(request.url or '')}`: it cannot be sent as a header",
            code="InvalidHeader",
            hint="look for a line break or white space around the token",
        )
    request.headers["Authorization"] = f"Bearer {value}"
    return request
