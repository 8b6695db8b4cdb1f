"""Proxies: what the environment says about them, in both spellings, and whom they are for.

Python and boto3 prefer the lower-case spelling, other programs know only one of the two. Spark's
S3 reader (the AWS SDK for Java) reads the same variables; the rest of a JVM does not.
"""

from __future__ import annotations

import shlex
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import urlsplit

from lakeload.machine.doctor.endpoint import endpoint_of
from lakeload.machine.doctor.fixes import export
from lakeload.machine.doctor.model import Finding, Patient, Status

_METADATA = "169.254.169.254"
_IDENTITY = ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE")


def proxies(patient: Patient) -> Iterator[Finding]:
    """Look at HTTP_PROXY, HTTPS_PROXY and NO_PROXY."""
    variables = patient.environment
    used = {name: _chosen(name, variables) for name in ("http_proxy", "https_proxy", "no_proxy")}
    troubles = [
        *_disagreements(variables),
        *_malformed(used),
        *_uncovered(used),
        *_local_endpoint(patient, used),
        *_metadata(patient, used),
    ]
    named = [f"{name.upper()} `{shown(used[name])}`" for name in used if used[name]]
    if not troubles:
        found = ", ".join(named) if named else "none is set"
        yield Finding("proxies", Status.OK, found)
    yield from troubles


def shown(value: str) -> str:
    """Return the address of a proxy without user and password."""
    scheme, slashes, rest = value.rpartition("://")
    return f"{scheme}{slashes}{rest.rpartition('@')[2]}"


def proxy_for(url: str, variables: Mapping[str, str]) -> str | None:
    """Return the proxy through which Python reaches `url`, None for none."""
    parts = urlsplit(url)
    proxy = _chosen(f"{parts.scheme}_proxy", variables)
    excepted = _chosen("no_proxy", variables)
    # What boto3's rule for NO_PROXY comes down to; the types of the standard library omit it.
    bypassed: Callable[[str, dict[str, str]], bool] = vars(urllib.request)[
        "proxy_bypass_environment"
    ]
    bypass = bypassed(parts.netloc.rpartition("@")[2], {"no": excepted})
    return None if not proxy or bypass else proxy


def _chosen(name: str, variables: Mapping[str, str]) -> str:
    """The value Python takes: lower case wins, also when it is empty."""
    return variables.get(name, variables.get(name.upper(), "")).strip()


def _disagreements(variables: Mapping[str, str]) -> Iterator[Finding]:
    for lower in ("http_proxy", "https_proxy", "no_proxy"):
        upper = lower.upper()
        both = variables.get(lower), variables.get(upper)
        if None in both or both[0] == both[1]:
            continue
        told = f"{lower} is `{shown(both[0] or '')}`, {upper} is `{shown(both[1] or '')}`"
        why = f"lakeload goes by {lower}, other programs by {upper}"
        yield Finding("proxies", Status.WARNING, told, why, f'export {upper}="${lower}"')


def _malformed(used: Mapping[str, str]) -> Iterator[Finding]:
    for name in ("http_proxy", "https_proxy"):
        value = used[name]
        if not value or _is_proxy(value):
            continue
        why = "it is not the address of a proxy"
        command = export(name.upper(), "http://proxy.example.com:3128")
        found = f"{name.upper()} is `{shown(value)}`"
        yield Finding("proxies", Status.PROBLEM, found, why, command)


def _is_proxy(value: str) -> bool:
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _uncovered(used: Mapping[str, str]) -> Iterator[Finding]:
    if used["http_proxy"] and not used["https_proxy"]:
        found = f"HTTP_PROXY is `{shown(used['http_proxy'])}`, and HTTPS_PROXY is not set"
        why = "AWS is reached over https, so without a proxy"
        command = 'export HTTPS_PROXY="${http_proxy-$HTTP_PROXY}"'
        yield Finding("proxies", Status.WARNING, found, why, command)


def _local_endpoint(patient: Patient, used: Mapping[str, str]) -> Iterator[Finding]:
    url = endpoint_of(patient)
    host = urlsplit(url).hostname or ""
    local = host == "localhost" or host.endswith(".localhost") or host.startswith("127.")
    if not (local or host == "::1") or proxy_for(url, patient.environment) is None:
        return
    found = f"the endpoint `{host}` is on this machine and would be reached through a proxy"
    yield Finding("proxies", Status.WARNING, found, "add it to NO_PROXY", _except(used, host))


def _metadata(patient: Patient, used: Mapping[str, str]) -> Iterator[Finding]:
    """An instance's credentials come from an address that no proxy can reach."""
    destination = patient.need.destination
    credentials = destination.credentials if destination else None
    own = credentials is not None and (credentials.profile or credentials.access_key_id)
    if own or any(patient.environment.get(name) for name in _IDENTITY):
        return
    if proxy_for(f"http://{_METADATA}/", patient.environment) is not None:
        found = f"`{_METADATA}` would be reached through a proxy"
        why = "on EC2 that is where the credentials of an instance come from"
        yield Finding("proxies", Status.WARNING, found, why, _except(used, _METADATA))


def _except(used: Mapping[str, str], host: str) -> str:
    value = ",".join(filter(None, [used["no_proxy"], host]))
    return f"export NO_PROXY={shlex.quote(value)} no_proxy={shlex.quote(value)}"
