"""The clock: compared with the Date header of the endpoint that will judge signatures by it."""

from __future__ import annotations

import http.client
import shlex
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from lakeload.machine.doctor.endpoint import endpoint_of, without_userinfo
from lakeload.machine.doctor.fixes import set_clock
from lakeload.machine.doctor.model import Finding, Patient, Status
from lakeload.machine.doctor.proxies import proxy_for, shown
from lakeload.machine.jars.download import without_login
from lakeload_jobs.contract.errors import LakeloadError

REFUSED_AFTER = 300.0
"""Seconds a clock may be off: AWS takes a signature for five minutes, S3 for fifteen."""
NOTABLE = 60.0

Now = Callable[[], float]


def clock(patient: Patient, now: Now = time.time) -> Iterator[Finding]:
    """Ask the endpoint for its time: one HEAD, nothing signed, no redirect followed."""
    url = endpoint_of(patient)
    place = f"`{without_userinfo(url)}`"
    if patient.offline:
        yield Finding("clock", Status.SKIPPED, "not compared with the endpoint: --offline")
        return
    proxy = proxy_for(url, patient.environment)
    trouble: ssl.SSLError | None = None
    try:
        date = _date(url, proxy, patient.seconds / 2, trusting=False)
    except ssl.SSLCertVerificationError as error:
        # A clock that is years off makes every certificate invalid: the time is asked for without
        # one, and what is not trusted is said.
        trouble = error
        yield _untrusted(place, error)
        date = _date_or_none(url, proxy, patient.seconds / 2)
    except (OSError, http.client.HTTPException, ValueError) as error:
        yield _unreachable(patient, without_userinfo(url), proxy, error)
        return
    instant = _instant(date)
    if instant is not None:
        yield judge_clock(patient, (now() - instant.timestamp()), place)
    elif trouble is None:
        found = f"{place} answers without a Date"
        command = f"curl -sSI {shlex.quote(without_userinfo(url))}; date -u"
        yield Finding("clock", Status.WARNING, found, "the clock could not be compared", command)


def judge_clock(patient: Patient, ahead: float, place: str) -> Finding:
    """Return the finding for a clock that is `ahead` seconds before the endpoint's."""
    off = abs(ahead)
    if off < NOTABLE:
        return Finding("clock", Status.OK, f"within a minute of {place}")
    amount = f"{off / 60:.0f} minutes" if off >= 120 else f"{off:.0f} s"
    found = f"{amount} {'ahead of' if ahead > 0 else 'behind'} {place}"
    command = set_clock(patient.host.platform, patient.host.os_release)
    if off < REFUSED_AFTER:
        why = "AWS refuses signatures that are five minutes off"
        return Finding("clock", Status.WARNING, found, why, command)
    why = "AWS refuses signatures that are five minutes off, S3 those fifteen minutes off"
    return Finding("clock", Status.PROBLEM, found, why, command)


def silent_endpoint(patient: Patient) -> Finding:
    """Return the finding for an endpoint, or a name server before it, that says nothing at all."""
    url = endpoint_of(patient)
    silence = TimeoutError(f"no answer within {patient.seconds:g} s")
    return _unreachable(
        patient, without_userinfo(url), proxy_for(url, patient.environment), silence
    )


class _Stay(urllib.request.HTTPRedirectHandler):
    """Takes a redirect for the answer: it has a Date too."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """Follow nothing."""


def _date(url: str, proxy: str | None, seconds: float, *, trusting: bool) -> str | None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("it is not a URL")
    request = urllib.request.Request(  # noqa: S310 - the scheme was just looked at
        without_login(url),
        method="HEAD",
        headers={"User-Agent": "lakeload-doctor"},
    )
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({parts.scheme: proxy} if proxy else {}),
        urllib.request.HTTPSHandler(context=_context(trusting=trusting)),
        _Stay(),
    )
    try:
        with opener.open(request, timeout=seconds) as answer:
            return _header(answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            return _header(error.headers)
    except urllib.error.URLError as error:
        if isinstance(error.reason, OSError):
            raise error.reason from error
        raise


def _date_or_none(url: str, proxy: str | None, seconds: float) -> str | None:
    try:
        return _date(url, proxy, seconds, trusting=True)
    except (OSError, http.client.HTTPException, ValueError):
        return None


def _header(headers: Message) -> str | None:
    return headers.get("Date")


def _instant(date: str | None) -> datetime | None:
    if date is None:
        return None
    try:
        instant = parsedate_to_datetime(date)
    except ValueError:
        return None
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def _context(*, trusting: bool) -> ssl.SSLContext:
    from lakeload_jobs.aws.clients import trusted_certificates

    try:
        context = ssl.create_default_context(cafile=trusted_certificates())
    except (OSError, LakeloadError):
        # A file or a profile that is not there is a finding of its own.
        context = ssl.create_default_context()
    if trusting:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _untrusted(place: str, error: ssl.SSLCertVerificationError) -> Finding:
    found = f"the certificate of {place} is not trusted: {error.verify_message}"
    why = "a proxy that opens TLS, a store with a certificate of its own, or a wrong clock"
    command = "export AWS_CA_BUNDLE=/path/to/its/authority.pem"
    return Finding("endpoint", Status.PROBLEM, found, why, command)


def _unreachable(patient: Patient, url: str, proxy: str | None, error: Exception) -> Finding:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    through = f" through the proxy `{shown(proxy)}`" if proxy else ""
    found = f"`{url}` does not answer{through}: {reason}"
    needed = patient.need.destination is not None
    look = "HTTPS_PROXY and NO_PROXY" if proxy else "the network, its names and its firewall"
    why = f"look at {look}; the clock was not compared"
    command = f"curl -sSI {shlex.quote(url)}"
    status = Status.PROBLEM if needed else Status.WARNING
    return Finding("endpoint", status, found, why, command)
