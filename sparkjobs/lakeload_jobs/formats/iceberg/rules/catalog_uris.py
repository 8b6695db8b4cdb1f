"""What follows from a catalog's settings: where its interfaces are and where its tables lie."""

from __future__ import annotations

import re
from urllib.parse import quote, urljoin

from lakeload_jobs.contract.spec import CatalogSpec, DestinationSpec
from lakeload_jobs.contract.traits import catalog_traits

_NESSIE_INTERFACE = re.compile(r"/(api/v[12]|api|iceberg(/[^/]*)?)$")


def rest_uri(catalog: CatalogSpec) -> str:
    """Return the address of the REST interface, without `/v1` and without a final slash.

    Nessie's has the branch in it (F24), so that Spark and this process read the same one.
    """
    uri = _plain(catalog.uri or "")
    if catalog_traits(catalog).branched:
        return f"{_nessie_server(uri)}/iceberg/{quote(catalog.ref, safe='')}"
    return uri


def warehouse_location(destination: DestinationSpec) -> str:
    """Return where tables lie that the destination places itself: `s3://…`, no final slash."""
    own = "/".join(part for part in (destination.bucket, destination.prefix) if part)
    return destination.iceberg.warehouse_location or f"s3://{own}"


def own_location(destination: DestinationSpec) -> str | None:
    """Return where the destination places its tables; None where the catalog decides that."""
    located = catalog_traits(destination.iceberg.catalog).located
    return warehouse_location(destination) if located else None


def rest_warehouse(destination: DestinationSpec) -> str | None:
    """Return what a REST catalog is asked for: Nessie knows warehouses by their location."""
    catalog = destination.iceberg.catalog
    if catalog_traits(catalog).named_by_location:
        return destination.iceberg.warehouse_location
    return catalog.warehouse


def token_uri(catalog: CatalogSpec) -> str:
    """Return where the catalog's tokens come from: `oauth2_server_uri`, which may be relative to
    the catalog's address, else the catalog itself."""
    base = f"{rest_uri(catalog)}/"
    return urljoin(base, catalog.oauth2_server_uri or "v1/oauth/tokens")


def nessie_api_uri(uri: str) -> str:
    """Return the address of Nessie's native interface, from that of the server or any of its
    interfaces (`https://host:19120`, `…/api/v1`, `…/iceberg`)."""
    return f"{_nessie_server(_plain(uri))}/api/v2"


def _nessie_server(uri: str) -> str:
    return _NESSIE_INTERFACE.sub("", uri)


def _plain(uri: str) -> str:
    """A `/v1` at the end belongs to the calls, not to the address."""
    return uri.strip().rstrip("/").removesuffix("/v1").rstrip("/")
