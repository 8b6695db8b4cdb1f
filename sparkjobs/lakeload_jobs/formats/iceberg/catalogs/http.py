"""HTTP to a REST catalog: tokens, signatures, retries."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self
from urllib.parse import urljoin, urlsplit

import requests
from requests import exceptions as request_errors
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from urllib3.connectionpool import ConnectionPool
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NewConnectionError,
    ReadTimeoutError,
)
from urllib3.response import BaseHTTPResponse
from urllib3.util.retry import Retry

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.aws.network_errors import (
    authorities_unreadable,
    certificate_problem,
    proxy_refusal,
    proxy_unreached,
    start_hint,
)
from lakeload_jobs.aws.signing import signed_headers
from lakeload_jobs.contract.secrets import Secret, without_secrets
from lakeload_jobs.contract.usage import REQUESTS
from lakeload_jobs.formats.iceberg.catalogs.errors import (
    NOT_A_CATALOG,
    REDIRECTED,
    CatalogError,
    name_advice,
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
        patience: HttpTimeouts,
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
        doing = f"requesting a token from `{origin(self._uri)}`"
        form = {
            "grant_type": "client_credentials",
            "client_id": self._client_id.reveal(),
            "client_secret": self._client_secret.reveal(),
            "scope": self._scope,
        }
        response = send("POST", self._uri, doing, Identity(), self._patience, data=form)
        if not response.ok:
            raise error_from(doing, response, self._hidden)
        return self._taken(response, doing)

    def _taken(self, response: requests.Response, doing: str) -> Secret:
        try:
            document = document_of(response, doing)
            token = Secret(str(document["access_token"]))
            life = float(document.get("expires_in") or 3600)
        except (ValueError, TypeError, KeyError):
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
            hint="remove line breaks and spaces around the token",
        )
    request.headers["Authorization"] = f"Bearer {value}"
    return request


_BUSY = (408, 429, 502, 503, 504)
_MAX_SAID = 500
_AUTHORITIES = (
    "FileUnreadable",
    "the file of trusted certificates cannot be read",
    "correct the path in REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE",
)


@dataclass(frozen=True)
class HttpTimeouts:
    """How long one request may take, in seconds, and how often a reading one is sent."""

    connect: float = 5
    read: float = 60
    attempts: int = 3


DEFAULT_PATIENCE = HttpTimeouts()


def prepare(session: requests.Session, patience: HttpTimeouts) -> requests.Session:
    """Give a session time-outs and retries, and let it follow no redirect; return it."""
    session.mount("http://", _Adapter(patience))
    session.mount("https://", _Adapter(patience))
    # A redirected POST would take the client's secret to another server.
    session.max_redirects = 0
    return session


class _Retries(Retry):
    """urllib3's, which would repeat any request after an error of TLS or of a proxy, also where
    that has taken the request and its answer was lost."""

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: BaseHTTPResponse | None = None,
        error: Exception | None = None,
        _pool: ConnectionPool | None = None,
        _stacktrace: TracebackType | None = None,
    ) -> Self:
        reads = self._is_method_retryable(method or "")
        if error is not None and not reads and not self._is_connection_error(error):
            raise error
        return super().increment(method, url, response, error, _pool, _stacktrace)


class _Adapter(HTTPAdapter):
    def __init__(self, patience: HttpTimeouts) -> None:
        self._timeout = (patience.connect, patience.read)
        retries = _Retries(
            total=patience.attempts - 1,
            redirect=0,
            backoff_factor=0.2,
            status_forcelist=_BUSY,
            # A refused connection is tried again for every method: nothing was sent.
            allowed_methods=("GET", "HEAD"),
            raise_on_status=False,
            raise_on_redirect=False,
            respect_retry_after_header=False,
        )
        super().__init__(max_retries=retries)

    def send(self, request: requests.PreparedRequest, **settings: Any) -> requests.Response:  # type: ignore[override]
        settings["timeout"] = settings.get("timeout") or self._timeout
        REQUESTS.add(f"catalog.{request.method}")
        return super().send(request, **settings)


def send(
    method: str, uri: str, doing: str, identity: Identity, patience: HttpTimeouts, **body: Any
) -> requests.Response:
    """Send one request, with retries where it only reads. Raises `CatalogError` without an answer;
    a refusal is one."""
    with http_call(doing, uri), prepare(requests.Session(), patience) as session:
        session.auth = identity
        return session.request(method, uri, **body)


def document_of(response: requests.Response, doing: str) -> dict[str, Any]:
    """Return the JSON object that a catalog has answered, an empty one where it says that there is
    none (204). Raises `CatalogError` for anything else."""
    try:
        document = {} if response.status_code == HTTPStatus.NO_CONTENT else response.json()
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise not_a_catalog(doing, response.status_code)
    return document


@contextmanager
def http_call(doing: str, uri: str) -> Iterator[None]:
    """Translate every exception of requests in the block into a `CatalogError`.

    `doing` begins the message, such as "asking the catalog for its namespaces".
    """
    try:
        yield
    except request_errors.JSONDecodeError:
        raise not_a_catalog(doing) from None
    except (request_errors.RequestException, HTTPError) as error:
        # Their texts repeat header values and URLs: not even as a cause.
        raise _without_answer(doing, uri, error) from None
    except OSError as error:
        if error.errno is not None:
            raise
        # requests says so, and nothing else, with a text alone.
        code, meaning, hint = _AUTHORITIES
        raise CatalogError(f"{doing}: {meaning} ({code})", code=code, hint=hint) from None


def origin(uri: str) -> str:
    """Return scheme, host and port of a URI: what may be shown of it."""
    parts = urlsplit(uri)
    if not parts.netloc:
        return uri.rpartition("@")[2].partition("?")[0]
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def shown(uri: str) -> str:
    """Return what may be shown of a URI that a person wrote down, path included."""
    return f"{origin(uri)}{urlsplit(uri).path if urlsplit(uri).netloc else ''}"


def error_from(
    doing: str, response: requests.Response, hidden: Sequence[Secret] = ()
) -> CatalogError:
    """Return the refusal in `response`; `hidden` are removed from what the server said."""
    status = response.status_code
    code, said = _named(response)
    said = _scrubbed(said, hidden)
    if not code and status in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
        return CatalogError(
            f"{doing}: there is no Iceberg catalog at this path (HTTP {status})",
            code=NOT_A_CATALOG,
            status=status,
            hint="check the path in `uri`: it ends before `/v1`",
        )
    told = f"`{code}`, HTTP {status}" if code else f"HTTP {status}"
    sentence = f"{_meaning(status)} ({told})"
    return CatalogError(
        f"{doing}: {sentence}: {said}" if said else f"{doing}: {sentence}",
        code=code or _phrase(status),
        status=status,
        said=said,
        hint=name_advice(said) if status == HTTPStatus.BAD_REQUEST else None,
        retryable=status in _BUSY or status >= 500,
    )


def not_a_catalog(doing: str, status: int | None = None) -> CatalogError:
    """Return the error for an answer that no Iceberg catalog gives."""
    return CatalogError(
        f"{doing}: the response is not that of an Iceberg catalog",
        code=NOT_A_CATALOG,
        status=status,
        hint="check `uri`: it is the catalog's own address, not that of its web pages",
        unanswered=status is None,
    )


def _named(response: requests.Response) -> tuple[str, str]:
    """Return the code and text of an error document, of the catalog's kind or of OAuth2's."""
    try:
        document = json.loads(response.content)
    except ValueError:
        return "", ""
    error = document.get("error") if isinstance(document, dict) else None
    if isinstance(error, dict):
        return str(error.get("type") or ""), str(error.get("message") or "")
    if isinstance(error, str):
        return error, str(document.get("error_description") or "")
    return "", ""


def _scrubbed(text: str, hidden: Sequence[Secret]) -> str:
    text = without_secrets(text, (secret.reveal() for secret in hidden))
    return " ".join(text.split())[:_MAX_SAID]


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase.replace(" ", "")
    except ValueError:
        return f"HTTP{status}"


def _meaning(status: int) -> str:
    meanings = {
        400: "the request was rejected",
        401: "the catalog does not accept these credentials",
        403: "access denied",
        404: "not found",
        408: "the request took too long",
        409: "it exists already, or is in use",
        419: "the token has expired",
        429: "the catalog is busy",
        501: "the catalog does not support this call",
    }
    return meanings.get(status, "the catalog failed" if status >= 500 else "refused")


_NEVER_SENT = {
    "EndpointConnectionError",
    "ConnectTimeoutError",
    "ProxyConnectionError",
    "ProxyAuthenticationRequired",
    "ProxyRefused",
    "CertificateExpired",
    "CertificateForAnotherHost",
    "CertificateUntrusted",
    "FileUnreadable",
    "InvalidHeader",
    "InvalidUrl",
}
"""Codes that prove that nothing was sent. All others may be of an answer that was lost."""


def _without_answer(
    doing: str, uri: str, error: request_errors.RequestException | HTTPError
) -> CatalogError:
    code, meaning, hint = _transport(error, origin(uri))
    if isinstance(error, request_errors.TooManyRedirects) and error.response is not None:
        target = origin(urljoin(uri, error.response.headers.get("Location", "")))
        meaning = f"`{origin(uri)}` redirects to `{target}`"
    return CatalogError(
        f"{doing}: {meaning} ({code})",
        code=code,
        hint=hint,
        retryable=code in ("ReadTimeoutError", "ConnectionClosedError"),
        unanswered=code not in _NEVER_SENT,
    )


def _transport(
    error: request_errors.RequestException | HTTPError, place: str
) -> tuple[str, str, str]:
    """Return code, meaning and hint of a request without an answer. The codes are those that
    AWS's own client uses for the same failures."""
    if isinstance(error, request_errors.TooManyRedirects):
        return (
            REDIRECTED,
            "",
            "set `uri` to that address: lakeload does not send secrets to a redirect",
        )
    if isinstance(error, request_errors.SSLError):
        return _of_tls(error, place)
    closed = "ConnectionClosedError"
    if isinstance(error, request_errors.ProxyError):
        silent = "ProxyConnectionError", "the proxy does not respond"
        broken = closed, "the connection through the proxy broke before a response came"
        code, meaning = proxy_refusal(error) or (silent if proxy_unreached(error) else broken)
        return code, meaning, "check HTTPS_PROXY and NO_PROXY"
    wrapped = error.args[0] if error.args else None
    reason = getattr(wrapped, "reason", None) or wrapped
    if isinstance(error, request_errors.ReadTimeout) or isinstance(reason, ReadTimeoutError):
        hint = "check the network and run again"
        return "ReadTimeoutError", f"`{place}` accepts the connection and does not respond", hint
    reach = "check `uri` and the network from here to the catalog"
    if isinstance(reason, NewConnectionError):
        hint = start_hint(place) or reach
        return "EndpointConnectionError", f"`{place}` does not respond", hint
    if isinstance(reason, ConnectTimeoutError):
        return "ConnectTimeoutError", f"`{place}` does not respond", reach
    if isinstance(error, request_errors.ContentDecodingError):
        return closed, f"the response of `{place}` cannot be decoded", reach
    if isinstance(error, request_errors.ConnectionError | request_errors.ChunkedEncodingError):
        return closed, f"`{place}` broke the connection", reach
    if isinstance(error, request_errors.InvalidHeader):
        hint = "remove line breaks and spaces around the token or header value"
        return "InvalidHeader", "a secret cannot be sent as a header", hint
    bad_urls = request_errors.InvalidURL, request_errors.MissingSchema, request_errors.InvalidSchema
    if isinstance(error, bad_urls):
        return "InvalidUrl", "the address is not a URL", "write it as `https://host[:port]/path`"
    return type(error).__name__, "the call could not be made", reach


def _of_tls(error: request_errors.SSLError, place: str) -> tuple[str, str, str]:
    if problem := certificate_problem(error):
        code, what = problem
        hint = "compare `uri`, the certificate and REQUESTS_CA_BUNDLE"
        return code, f"the certificate of `{place}` {what}", hint
    if authorities_unreadable(error):
        return _AUTHORITIES
    hint = "check that the catalog uses https and its certificate is trusted"
    return "SSLError", f"the TLS connection to `{place}` failed", f"{hint} (REQUESTS_CA_BUNDLE)"
