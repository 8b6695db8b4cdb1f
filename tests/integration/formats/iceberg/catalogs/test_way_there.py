"""What lies between here and a catalog: proxies and certificates, each with a cause of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import trustme

from lakeload.checks import CheckStatus
from lakeload.probes.connection import ConnectionOptions, ConnectionTest
from lakeload.probes.iceberg import catalog_causes
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import CatalogSpec, DestinationSpec, EndpointsSpec, IcebergSpec
from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError
from lakeload_jobs.formats.iceberg.catalogs.http import HttpTimeouts
from lakeload_jobs.formats.iceberg.catalogs.rest import RestConnection
from tests.servers.local_sockets import (
    LONG_AGO,
    answering,
    authority_file,
    http_answer,
    over_tls,
    silent,
)

Bend = Callable[[ExitStack, pytest.MonkeyPatch, Path], str]
"""Makes a way there and returns the address of the catalog."""


@pytest.fixture
def cleanup() -> Iterator[ExitStack]:
    """What the servers of a test are closed by."""
    with ExitStack() as stack:
        yield stack


def _tls(name: str = "127.0.0.1", *, trusted: bool = True, expired: bool = False) -> Bend:
    def bend(cleanup: ExitStack, environment: pytest.MonkeyPatch, folder: Path) -> str:
        authority = trustme.CA()
        if trusted:
            environment.setenv("REQUESTS_CA_BUNDLE", str(authority_file(authority, folder)))
        port = over_tls(cleanup, authority, name, LONG_AGO if expired else None)
        return f"https://127.0.0.1:{port}"

    return bend


def _proxy(status: str) -> Bend:
    def bend(cleanup: ExitStack, environment: pytest.MonkeyPatch, folder: Path) -> str:
        port = answering(cleanup, http_answer(status))
        environment.setenv("HTTPS_PROXY", f"http://me:hunter2@127.0.0.1:{port}")
        return "https://catalog.example.com"

    return bend


def _no_proxy_there(cleanup: ExitStack, environment: pytest.MonkeyPatch, folder: Path) -> str:
    environment.setenv("HTTPS_PROXY", "http://me:hunter2@127.0.0.1:9")
    return "https://catalog.example.com"


def _bundle(text: str | None) -> Bend:
    def bend(cleanup: ExitStack, environment: pytest.MonkeyPatch, folder: Path) -> str:
        path = folder / "bundle.pem"
        if text is not None:
            path.write_text(text)
        environment.setenv("REQUESTS_CA_BUNDLE", str(path))
        return f"https://127.0.0.1:{over_tls(cleanup, trustme.CA(), '127.0.0.1')}"

    return bend


@pytest.mark.parametrize(
    ("bend", "code", "cause"),
    [
        (_tls(trusted=False), "CertificateUntrusted", "name that in REQUESTS_CA_BUNDLE"),
        (_tls("catalog.example.com"), "CertificateForAnotherHost", "the host in `uri`"),
        (_tls(expired=True), "CertificateExpired", "has to be renewed"),
        (_bundle(None), "FileUnreadable", "the path in REQUESTS_CA_BUNDLE"),
        (_bundle(""), "FileUnreadable", "the path in REQUESTS_CA_BUNDLE"),
        (_proxy("407 Wanted"), "ProxyAuthenticationRequired", "requires a user name and password"),
        (_proxy("403 Forbidden"), "ProxyRefused", "the proxy blocks this host"),
        (_no_proxy_there, "ProxyConnectionError", "a proxy that does not respond"),
    ],
    ids=[
        *("authority that is not trusted", "certificate for another host", "certificate expired"),
        *("file of authorities that is not there", "file of authorities that holds none"),
        *("proxy that wants a password", "proxy that refuses", "proxy that is down"),
    ],
)
def test_unreachable_catalog_error_names_the_cause(
    bend: Bend,
    code: str,
    cause: str,
    cleanup: ExitStack,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    spec = CatalogSpec(type="REST", uri=bend(cleanup, monkeypatch, tmp_path))
    wanted = DestinationSpec(
        "lake", "us-east-1", table_format="ICEBERG", iceberg=IcebergSpec(catalog=spec)
    )
    with pytest.raises(CatalogError) as caught:
        RestConnection(wanted, AwsSession(wanted), HttpTimeouts(1, 1, 1)).reach()
    assert caught.value.code == code, caught.value.message
    assert cause in catalog_causes(caught.value, spec)[0]
    assert "hunter2" not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize(
    "catalog",
    [{"type": "REST", "access_delegation": "NONE"}, {"type": "NESSIE", "api": "NATIVE"}],
    ids=["rest", "native"],
)
def test_connection_test_without_responses_ends_at_its_timeout(
    catalog: dict[str, Any], cleanup: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "example")
    place = f"http://127.0.0.1:{silent(cleanup)}"
    wanted = DestinationSpec(
        "lake",
        "us-east-1",
        endpoints=EndpointsSpec(s3=place, sts=place),
        table_format="ICEBERG",
        iceberg=IcebergSpec(catalog=CatalogSpec(uri=place, **catalog)),
    )
    test = ConnectionTest(wanted, ConnectionOptions(timeout=2))
    failed = [result.probe.name for result in test.run() if result.status is CheckStatus.FAILED]
    assert "catalog" in failed
    assert test.verdict().seconds < 2 + 1
