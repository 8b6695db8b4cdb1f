"""Supported catalogs and settings for loads."""

from __future__ import annotations

import re
from urllib.parse import quote, urljoin

from lakeload_jobs.contract.spec import CatalogSpec, DestinationSpec
from lakeload_jobs.contract.traits import Compares, catalog_traits

_NESSIE_INTERFACE = re.compile(r"/(api/v[12]|api|iceberg(/[^/]*)?)$")


def rest_uri(catalog: CatalogSpec) -> str:
    """Return the address of the REST interface, without `/v1` and without a final slash.

    Nessie's has the branch in it, so that Spark and this process read the same one.
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


NOT_COMPARED = "CommitNotCompared"
"""The code of a catalog that took a commit it has to refuse."""


def took_false_commit(target: str, branch: str) -> tuple[str, str]:
    """Return message and hint of a catalog that compares nothing, though its kind does.

    It was sent a commit that asserts what is not so of a branch (docs/decisions/0107).
    """
    return (
        f"it accepted a commit to `{target}` whose requirement on the branch `{branch}` "
        "(`assert-ref-snapshot-id`) was not met: concurrent commits could lose or duplicate "
        "rows without an error",
        "use a catalog, or a version of it, that validates the `requirements` of a commit "
        "as Iceberg's REST protocol demands; check for a proxy that changes requests",
    )


def loading_problem(catalog: CatalogSpec) -> str | None:
    """Return why no table of a catalog can be loaded, for people; None when they can be."""
    if catalog_traits(catalog).compares is not Compares.NOTHING:
        return None
    return (
        "Nessie's REST interface does not keep branches of a table: rows that are "
        "written to a branch are in `main` at once, so no job could be loaded exactly once"
    )
