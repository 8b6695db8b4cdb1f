"""What follows from a catalog's settings: where its interfaces are, and whose keys write data."""

from __future__ import annotations

import re
from urllib.parse import quote, urljoin

from lakeload_jobs.contract.spec import CatalogSpec

_NESSIE_INTERFACE = re.compile(r"/(api/v[12]|api|iceberg(/[^/]*)?)$")


def rest_uri(catalog: CatalogSpec) -> str:
    """Return the address of the REST interface, without `/v1` and without a final slash.

    Nessie's has the branch in it (F24), so that Spark and this process read the same one.
    """
    uri = _plain(catalog.uri or "")
    if catalog.type == "NESSIE":
        return f"{_nessie_server(uri)}/iceberg/{quote(catalog.ref, safe='')}"
    return uri


def token_uri(catalog: CatalogSpec) -> str:
    """Return where the catalog's tokens come from: `oauth2_server_uri`, which may be relative to
    the catalog's address, else the catalog itself."""
    base = f"{rest_uri(catalog)}/"
    return urljoin(base, catalog.oauth2_server_uri or "v1/oauth/tokens")


def vends(catalog: CatalogSpec) -> bool:
    """Whether the catalog is asked for credentials. Nessie and Glue are not: their tables lie where
    the destination says, so the destination's own credentials write them."""
    lends = catalog.type in ("REST", "SNOWFLAKE_OPEN_CATALOG")
    return lends and catalog.access_delegation == "VENDED_CREDENTIALS"


def native_nessie(catalog: CatalogSpec) -> bool:
    """Whether only Spark has a client for the catalog: Nessie's native interface."""
    return catalog.type == "NESSIE" and catalog.api == "NATIVE"


def nessie_api_uri(uri: str) -> str:
    """Return the address of Nessie's native interface, from that of the server or any of its
    interfaces (`https://host:19120`, `…/api/v1`, `…/iceberg`)."""
    return f"{_nessie_server(_plain(uri))}/api/v2"


def _nessie_server(uri: str) -> str:
    return _NESSIE_INTERFACE.sub("", uri)


def _plain(uri: str) -> str:
    """A `/v1` at the end belongs to the calls, not to the address."""
    return uri.strip().rstrip("/").removesuffix("/v1").rstrip("/")
