"""The `iceberg:` block → the job's contract: each catalog's settings under one set of names."""

from __future__ import annotations

from pathlib import Path

from lakeload.config.secret_names import absolute_reference
from lakeload.documents.iceberg import Catalog, Iceberg, SigV4
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import CatalogSpec, IcebergSpec, SigV4Spec
from lakeload_jobs.contract.traits import CATALOGS


def iceberg_spec(model: Iceberg, folder: Path) -> IcebergSpec:
    """Return the contract's form; paths of secret files are relative to `folder`."""
    return IcebergSpec(
        catalog=_catalog(model.catalog, folder),
        warehouse_location=model.warehouse_location,
        branch=model.branch,
        format_version=model.format_version,
        table_properties=dict(model.table_properties) or None,
    )


def _catalog(model: Catalog, folder: Path) -> CatalogSpec:
    def reference(given: SecretReference | None) -> SecretReference | None:
        return absolute_reference(given, folder)

    polaris = CATALOGS[model.type].polaris
    return CatalogSpec(
        type=model.type,
        glue_id=model.glue_id,
        uri=model.uri,
        warehouse=model.catalog_name if polaris else model.warehouse,
        client_id=reference(model.client_id),
        client_secret=reference(model.client_secret),
        credential=reference(model.credential),
        token=reference(model.token),
        scope=f"PRINCIPAL_ROLE:{model.principal_role}" if polaris else model.scope,
        oauth2_server_uri=model.oauth2_server_uri,
        access_delegation=model.access_delegation,
        sigv4=_sigv4(model.sigv4),
        headers=_headers(model.headers, folder),
        ref=model.ref,
        api=model.api,
        catalog_region=model.catalog_region,
    )


def _sigv4(model: SigV4 | None) -> SigV4Spec | None:
    return None if model is None else SigV4Spec(model.signing_name, model.region)


def _headers(
    headers: dict[str, SecretReference] | None, folder: Path
) -> dict[str, SecretReference] | None:
    found = {name: absolute_reference(value, folder) for name, value in (headers or {}).items()}
    return {name: value for name, value in found.items() if value is not None} or None
