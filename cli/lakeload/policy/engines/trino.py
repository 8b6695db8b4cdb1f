"""The catalog file of Trino for the Iceberg tables of a destination. Pure.

https://trino.io/docs/current/object-storage/metastores.html and …/file-system-s3.html; Trino
fills `${ENV:NAME}` from the environment of its servers (…/security/secrets.html).
"""

from __future__ import annotations

from collections.abc import Sequence

from lakeload.policy.engines.iceberg_words import LAKE
from lakeload.policy.engines.lake_files import aws_identity, login_variables, needs_aws, path_style
from lakeload.policy.text.secret_variables import catalog_variables, credential, headers, token
from lakeload.policy.text.snippets import Snippet, properties_text
from lakeload_jobs.contract.spec import DestinationSpec, TableSpec
from lakeload_jobs.contract.traits import vends
from lakeload_jobs.formats.iceberg.rules.catalog_uris import (
    nessie_api_uri,
    rest_uri,
    rest_warehouse,
    token_uri,
    warehouse_location,
)

FILE = f"etc/catalog/{LAKE}.properties"


def trino_access(destination: DestinationSpec, tables: Sequence[TableSpec]) -> Snippet:
    """Return the properties file of the catalog `lake`, which only reads."""
    found = {
        "connector.name": "iceberg",
        **_catalog(destination),
        **_names(destination, tables),
        "iceberg.security": "read_only",
        **_files(destination),
    }
    variables = catalog_variables(destination.iceberg.catalog, destination.region)
    return Snippet(
        f"{FILE}: Trino's catalog",
        properties_text(found),
        _why(destination, [one.name for one in variables]),
        "properties",
        tuple(one.reading for one in variables if one.reading),
    )


def _catalog(destination: DestinationSpec) -> dict[str, str]:
    catalog = destination.iceberg.catalog
    if catalog.type == "GLUE":
        found = {
            "iceberg.catalog.type": "glue",
            "hive.metastore.glue.region": destination.region,
        }
        if catalog.glue_id:
            found["hive.metastore.glue.catalogid"] = catalog.glue_id
        if destination.endpoints.glue:
            found["hive.metastore.glue.endpoint-url"] = destination.endpoints.glue
        return found
    if catalog.type == "NESSIE" and catalog.api == "NATIVE":
        return _nessie(destination)
    return {"iceberg.catalog.type": "rest", **_rest(destination)}


def _nessie(destination: DestinationSpec) -> dict[str, str]:
    catalog = destination.iceberg.catalog
    start = "iceberg.nessie-catalog"
    found = {
        "iceberg.catalog.type": "nessie",
        f"{start}.uri": nessie_api_uri(catalog.uri or ""),
        f"{start}.ref": catalog.ref,
        f"{start}.default-warehouse-dir": warehouse_location(destination),
    }
    if bearer := token(catalog, destination.region):
        found[f"{start}.authentication.type"] = "BEARER"
        found[f"{start}.authentication.token"] = f"${{ENV:{bearer.name}}}"
    return found


def _rest(destination: DestinationSpec) -> dict[str, str]:
    catalog, region = destination.iceberg.catalog, destination.region
    start = "iceberg.rest-catalog"
    found = {f"{start}.uri": rest_uri(catalog)}
    if asked := rest_warehouse(destination):
        found[f"{start}.warehouse"] = asked
    if catalog.sigv4 is not None:
        found[f"{start}.security"] = "SIGV4"
        found[f"{start}.signing-name"] = catalog.sigv4.signing_name
    elif client := credential(catalog, region):
        found[f"{start}.security"] = "OAUTH2"
        found[f"{start}.oauth2.credential"] = f"${{ENV:{client.name}}}"
        found[f"{start}.oauth2.server-uri"] = token_uri(catalog)
        if catalog.scope:
            found[f"{start}.oauth2.scope"] = catalog.scope
    elif bearer := token(catalog, region):
        found[f"{start}.security"] = "OAUTH2"
        found[f"{start}.oauth2.token"] = f"${{ENV:{bearer.name}}}"
    if given := headers(catalog, region):
        listed = (f"{header}: ${{ENV:{variable.name}}}" for header, variable in given.items())
        found[f"{start}.http-headers"] = ", ".join(listed)
    if vends(catalog):
        found[f"{start}.vended-credentials-enabled"] = "true"
    return found


def _names(destination: DestinationSpec, tables: Sequence[TableSpec]) -> dict[str, str]:
    """Trino folds names to lower case; a REST catalog compares them by the letter."""
    found = _catalog(destination)
    mixed = any(table.target != table.target.lower() for table in tables)
    if found["iceberg.catalog.type"] != "rest" or not mixed:
        return {}
    return {"iceberg.rest-catalog.case-insensitive-name-matching": "true"}


def _files(destination: DestinationSpec) -> dict[str, str]:
    found = {"fs.s3.enabled": "true", "s3.region": destination.region}
    if destination.endpoints.s3:
        found["s3.endpoint"] = destination.endpoints.s3
        found["s3.path-style-access"] = "true" if path_style(destination) else "false"
    return found


def _why(destination: DestinationSpec, variables: list[str]) -> str:
    catalog = destination.iceberg.catalog
    told = [
        "For Trino 481 and later, as a file of this name on every server; before 481, "
        "`fs.s3.enabled` was `fs.native-s3.enabled`. No secret is in it."
    ]
    told += login_variables(variables, "Each server needs {} in its environment.")
    if needs_aws(destination):
        told.append(aws_identity("of the servers"))
    signed = catalog.sigv4
    if signed is not None and signed.region not in (None, destination.region):
        told.append(
            f"Trino signs for the region of `s3.region`, and this catalog is in `{signed.region}`: "
            "requests are refused unless both are the same."
        )
    return "\n".join(told)
