"""Causes that only this machine and the document can tell: variables, endpoints, addressing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from lakeload_jobs.contract.spec import DestinationSpec

_NO_SERVER = {
    *("EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "TimedOut"),
    *("ConnectionClosedError", "SSLError", "ResponseParserError", "NotAStore", "Unknown"),
    *("NoSuchBucket", "InvalidClientTokenId", "InvalidAccessKeyId"),
}
"""Codes that a server other than the one that is meant would cause."""


def surrounding_causes(
    error: Exception, service: str, destination: DestinationSpec, environment: Mapping[str, str]
) -> tuple[str, ...]:
    """Return what here makes the failure likely; more likely than what its code alone tells.

    `service` is `s3`, `sts` or `glue`. No value of a variable is shown but an endpoint's host.
    """
    code = str(getattr(error, "code", ""))
    return (
        *_stray_endpoint(code, service, destination, environment),
        *_addressing(code, service, destination),
    )


def _stray_endpoint(
    code: str, service: str, destination: DestinationSpec, environment: Mapping[str, str]
) -> Iterator[str]:
    if code not in _NO_SERVER or getattr(destination.endpoints, service, None):
        return
    for name in (f"AWS_ENDPOINT_URL_{service.upper()}", "AWS_ENDPOINT_URL"):
        if url := environment.get(name):
            yield (
                f"{name} sends this call to `{_host(url)}`, and the document does not: unset it, "
                f"or set `endpoints.{service}`"
            )
            return


def _addressing(code: str, service: str, destination: DestinationSpec) -> Iterator[str]:
    endpoint = destination.endpoints.s3
    if service != "s3" or not endpoint:
        return
    host = _host(endpoint)
    if code in _NO_SERVER and host.startswith(f"{destination.bucket}."):
        yield (
            "the endpoint begins with the bucket's name, which is added once more: write it "
            f"without (`{host.partition('.')[2]}`)"
        )
    elif destination.addressing_style == "VIRTUAL" and code in _NO_SERVER:
        yield (
            f"`addressing_style: VIRTUAL` asks the host `{destination.bucket}.{host}`, which needs "
            "a name in DNS: set PATH"
        )


def _host(url: str) -> str:
    """Return host and port of a URL: no userinfo, path or query."""
    return urlsplit(url if "//" in url else f"//{url}").netloc.rpartition("@")[2]
