"""Classification of proxy and TLS errors.

HTTP clients wrap these errors, each in its own way; what is inside is the same.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

from urllib3.exceptions import ConnectTimeoutError, ProxyError
from urllib3.util.ssl_match_hostname import CertificateError

_TUNNEL_STATUS = re.compile(r"Tunnel connection failed: (\d{3})")

# OpenSSL's X509_V_ERR_* numbers.
_CERTIFICATES = {
    9: ("CertificateExpired", "is not valid yet"),
    10: ("CertificateExpired", "has expired"),
    62: ("CertificateForAnotherHost", "is for another host name"),
    64: ("CertificateForAnotherHost", "is for another address"),
}
_UNTRUSTED = ("CertificateUntrusted", "is not signed by an authority that this machine trusts")


_THIS_MACHINE = {"127.0.0.1", "localhost", "::1"}


def start_hint(url: str) -> str | None:
    """Return what to do where nothing listens at an address of this machine; None elsewhere."""
    if urlsplit(url).hostname not in _THIS_MACHINE:
        return None
    return "start the server of this address; the lake of this machine: `lakeload lake up`"


def proxy_refusal(error: BaseException) -> tuple[str, str] | None:
    """Return a code and what the proxy says to a request for a tunnel; None without an answer."""
    status = next((m[1] for e in _chain(error) if (m := _TUNNEL_STATUS.search(str(e)))), None)
    if status is None:
        return None
    if status == "407":
        meaning = "the proxy requires a user name and password (HTTP 407)"
        return "ProxyAuthenticationRequired", meaning
    return "ProxyRefused", f"the proxy cannot connect (HTTP {status})"


def proxy_unreached(error: BaseException) -> bool:
    """Return whether nothing passed a proxy. urllib3 has the same error for a connection to it that
    broke later, before the answer to what was sent came."""
    original = next((e.original_error for e in _chain(error) if isinstance(e, ProxyError)), None)
    if original is None or isinstance(original, ConnectTimeoutError):
        return True
    return certificate_problem(original) is not None


def certificate_problem(error: BaseException) -> tuple[str, str] | None:
    """Return a code and what is wrong with the server's certificate, as a phrase that follows "the
    certificate"; None when something else is wrong."""
    for inner in _chain(error):
        if isinstance(inner, ssl.SSLCertVerificationError):
            return _CERTIFICATES.get(inner.verify_code, _UNTRUSTED)
        if isinstance(inner, CertificateError):
            return _CERTIFICATES[62]
    return None


def authorities_unreadable(error: BaseException) -> bool:
    """Whether the file of trusted certificates is missing or holds no certificate."""
    return any(
        isinstance(inner, FileNotFoundError)
        or (isinstance(inner, ssl.SSLError) and inner.reason == "NO_CERTIFICATE_OR_CRL_FOUND")
        for inner in _chain(error)
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions that an exception wraps."""
    todo, seen = [error], set()
    while todo:
        one = todo.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        inside = (
            *(getattr(one, "kwargs", None) or {}).values(),
            *one.args,
            getattr(one, "reason", None),
            getattr(one, "original_error", None),
            one.__cause__,
            one.__context__,
        )
        todo += [other for other in inside if isinstance(other, BaseException)]
