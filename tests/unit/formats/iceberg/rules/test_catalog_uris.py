"""Where a catalog's interfaces are, from what people write down."""

from __future__ import annotations

import pytest

from lakeload_jobs.contract.spec import CatalogSpec
from lakeload_jobs.formats.iceberg.rules.catalogs import nessie_api_uri, rest_uri, token_uri

NESSIE = "https://nessie.example.com:19120"


@pytest.mark.parametrize(
    "written",
    [
        NESSIE,
        f"{NESSIE}/",
        f"{NESSIE}/iceberg",
        f"{NESSIE}/iceberg/",
        f"{NESSIE}/iceberg/main",
        f"{NESSIE}/iceberg/v1",
        f"{NESSIE}/api/v1",
        f"{NESSIE}/api/v2/",
    ],
)
def test_any_address_of_a_nessie_leads_to_both_its_interfaces(written: str) -> None:
    spec = CatalogSpec(type="NESSIE", uri=written, api="REST", ref="etl/daily")
    assert rest_uri(spec) == f"{NESSIE}/iceberg/etl%2Fdaily"
    assert nessie_api_uri(written) == f"{NESSIE}/api/v2"


def test_a_path_before_nessies_interfaces_stays() -> None:
    assert (
        nessie_api_uri("https://example.com/nessie/api/v1") == "https://example.com/nessie/api/v2"
    )


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("https://example.com/catalog", "https://example.com/catalog"),
        ("https://example.com/catalog/", "https://example.com/catalog"),
        (" https://example.com/catalog/v1/ ", "https://example.com/catalog"),
        ("https://example.com", "https://example.com"),
    ],
)
def test_a_rest_catalogs_address_ends_before_its_version(written: str, means: str) -> None:
    assert rest_uri(CatalogSpec(type="REST", uri=written)) == means


@pytest.mark.parametrize(
    ("server", "means"),
    [
        (None, "https://example.com/catalog/v1/oauth/tokens"),
        ("https://login.example.com/token", "https://login.example.com/token"),
        ("/oauth2/token", "https://example.com/oauth2/token"),
        ("v1/tokens", "https://example.com/catalog/v1/tokens"),
    ],
)
def test_the_token_server_is_the_catalog_unless_it_is_named(server: str | None, means: str) -> None:
    spec = CatalogSpec(type="REST", uri="https://example.com/catalog", oauth2_server_uri=server)
    assert token_uri(spec) == means
