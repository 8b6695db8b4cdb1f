"""What DuckDB needs to read the Iceberg tables of a destination. Pure.

https://duckdb.org/docs/current/core_extensions/iceberg/iceberg_rest_catalogs, …/iceberg_options
and …/amazon_sagemaker_lakehouse. `ENDPOINT` is what DuckDB 1.4 and 2.0 both read.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from lakeload.policy.engines.duckdb import BUCKET_ACCESS, duckdb_access
from lakeload.policy.engines.iceberg_queries import iceberg_queries, iceberg_rows
from lakeload.policy.engines.iceberg_words import LAKE, duckdb_words
from lakeload.policy.engines.lake_files import METADATA_LOCATION, needs_aws
from lakeload.policy.iam.arns import place
from lakeload.policy.text.snippets import Snippet, name, text, words
from lakeload_jobs.contract.spec import CatalogSpec, DestinationSpec, TableSpec
from lakeload_jobs.contract.traits import vends
from lakeload_jobs.core.aws_partitions import domain
from lakeload_jobs.formats.iceberg.rules.catalog_uris import rest_uri, rest_warehouse, token_uri

_LOGIN = "lakeload_catalog"
_HEADERS = "The values of `headers` go where their names stand."


def duckdb_catalog(destination: DestinationSpec) -> tuple[Snippet, ...]:
    """Return access to the files, and the catalog attached as `lake`, where DuckDB speaks to it."""
    catalog = destination.iceberg.catalog
    files = (duckdb_access(destination),) if needs_aws(destination) else ()
    if catalog.type == "NESSIE" and catalog.api == "NATIVE":
        return files
    secret = _secret(catalog)
    return (*files, *((secret,) if secret else ()), _attach(destination, secret is not None))


def duckdb_iceberg_queries(
    destination: DestinationSpec, table: TableSpec, tracking: Sequence[str], then: datetime
) -> tuple[Snippet, ...]:
    """Return the queries of one table; a table that no catalog shows is read by its metadata."""
    catalog = destination.iceberg.catalog
    if catalog.type == "NESSIE" and catalog.api == "NATIVE":
        relation = name(table.schema, table.table)
        view = Snippet(
            f"{table.target}: a view of its current metadata file",
            f"CREATE SCHEMA IF NOT EXISTS {name(table.schema)};\n"
            f"CREATE OR REPLACE VIEW {relation} AS\n"
            "SELECT *\nFROM iceberg_scan('<METADATA_LOCATION>');",
            "DuckDB does not speak Nessie's own interface. After each load, replace "
            f"<METADATA_LOCATION> anew by what {METADATA_LOCATION}",
        )
        return (view, *iceberg_rows(table, duckdb_words(relation, then), tracking))
    found = duckdb_words(name(LAKE, table.schema, table.table), then)
    return iceberg_queries(table, found, tracking)


def _secret(catalog: CatalogSpec) -> Snippet | None:
    """Return the login; None where requests are signed, or nobody logs in."""
    if catalog.type == "GLUE" or catalog.sigv4 is not None:
        return None
    settings, why = ["TYPE iceberg"], ""
    if catalog.token is not None:
        settings.append("TOKEN '<TOKEN>'")
        why = f"Replace <TOKEN> by the value of {catalog.token}."
    elif catalog.credential is not None or catalog.client_id is not None:
        settings += ["CLIENT_ID '<CLIENT_ID>'", "CLIENT_SECRET '<CLIENT_SECRET>'"]
        settings.append(f"OAUTH2_SERVER_URI {text(token_uri(catalog))}")
        settings.append(f"OAUTH2_SCOPE {text(catalog.scope or 'catalog')}")
        why = _halves(catalog)
    else:
        return None
    if given := _headers(catalog):
        settings.append(given)
        why += f" {_HEADERS}"
    inner = ",\n".join(f"  {setting}" for setting in settings)
    return Snippet(
        "the login to the catalog",
        f"INSTALL httpfs;\nLOAD httpfs;\nINSTALL iceberg;\nLOAD iceberg;\n"
        f"CREATE OR REPLACE SECRET {_LOGIN} (\n{inner}\n);",
        f"{why} The secret lives in this session's memory. Give readers a login of their own where "
        "this one may write.",
    )


def _headers(catalog: CatalogSpec) -> str:
    pairs = (
        f"{text(header)}: {text(f'<{words(header).upper()}>')}" for header in catalog.headers or {}
    )
    inner = ", ".join(pairs)
    return f"EXTRA_HTTP_HEADERS MAP {{{inner}}}" if inner else ""


def _halves(catalog: CatalogSpec) -> str:
    if catalog.credential is not None:
        return f"<CLIENT_ID> and <CLIENT_SECRET> are the two halves of {catalog.credential}."
    return (
        f"Replace <CLIENT_ID> by the value of {catalog.client_id} and <CLIENT_SECRET> by the value "
        f"of {catalog.client_secret}."
    )


def _attach(destination: DestinationSpec, secret: bool) -> Snippet:
    catalog = destination.iceberg.catalog
    whole, settings, why = rest_warehouse(destination) or "", ["TYPE iceberg"], []
    if catalog.type == "GLUE":
        where = place(destination)
        whole = catalog.glue_id or where.account.replace("*", "<ACCOUNT_ID>")
        settings.append(f"ENDPOINT {text(f'glue.{where.region}.{domain(where.region)}/iceberg')}")
        settings += _signed()
        why.append("DuckDB calls its support of AWS Glue experimental.")
    else:
        settings.append(f"ENDPOINT {text(rest_uri(catalog))}")
        if catalog.sigv4 is not None:
            settings += _signed()
            settings.append(f"SIGV4_SERVICE {text(catalog.sigv4.signing_name)}")
            settings.append(f"SIGV4_REGION {text(catalog.sigv4.region or destination.region)}")
        elif secret:
            settings.append(f"SECRET {_LOGIN}")
        else:
            settings.append("AUTHORIZATION_TYPE 'none'")
        if not vends(catalog):
            settings.append("ACCESS_DELEGATION_MODE 'none'")
        if not secret and (given := _headers(catalog)):
            settings.append(given)
            why.append(_HEADERS)
    inner = ",\n".join(f"  {setting}" for setting in settings)
    return Snippet(
        "the catalog",
        f"INSTALL iceberg;\nLOAD iceberg;\nATTACH {text(whole)} AS {name(LAKE)} (\n{inner}\n);",
        " ".join([f"For DuckDB {_since(catalog)} and later; `SHOW ALL TABLES` lists them.", *why]),
    )


def _signed() -> tuple[str, str]:
    """The secret for the bucket is named: its scope does not hold the catalog's address."""
    return "AUTHORIZATION_TYPE 'sigv4'", f"SECRET {BUCKET_ACCESS}"


def _since(catalog: CatalogSpec) -> str:
    """Which service and region are signed for can be said since 1.5."""
    return "1.5" if catalog.sigv4 is not None else "1.4"
