"""The catalog integration of Snowflake for each kind of Iceberg catalog (F75). Pure.

https://docs.snowflake.com/en/sql-reference/sql/create-catalog-integration-open-catalog and
…/create-catalog-integration-rest. Glue is reached through its Iceberg REST endpoint, as
Snowflake recommends (decision 0064).
"""

from __future__ import annotations

from lakeload.policy.iam.arns import place
from lakeload.policy.text.snippets import Snippet, snowflake_text
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import CatalogSpec, DestinationSpec
from lakeload_jobs.core.aws_partitions import domain

READER_ROLE = "<READER_ROLE_ARN>"
"""The role that Snowflake assumes: one that reads, not the one that loads."""

_EXTERNAL_ID = "<CATALOG_EXTERNAL_ID>"
_API_TYPES = {"glue": "AWS_GLUE", "execute-api": "AWS_API_GATEWAY"}
_REST_SCOPE = "catalog"
"""The scope that clients of Iceberg send when none is set."""


def check_catalog(catalog: CatalogSpec) -> None:
    """Raise `InvalidInput` for a catalog that Snowflake cannot use as it is set up here."""
    if catalog.type == "NESSIE" and catalog.api == "NATIVE":
        raise InvalidInput(
            "writing statements for Snowflake: it speaks Iceberg's REST protocol, and this catalog "
            "is used through Nessie's own",
            hint="where the server offers its tables over REST too, give a copy of the destination "
            "with `api: REST`; loads go on through `api: NATIVE`",
        )
    if catalog.sigv4 is not None and catalog.sigv4.signing_name not in _API_TYPES:
        raise InvalidInput(
            f"writing statements for Snowflake: it signs requests for `glue` and `execute-api`, "
            f"and this catalog's `signing_name` is `{catalog.sigv4.signing_name}`",
            hint="reach the tables through Glue's Iceberg endpoint, with `signing_name: glue`",
        )
    if catalog.type in ("REST", "NESSIE") and _without_login(catalog):
        raise InvalidInput(
            f"writing statements for Snowflake: the catalog `{catalog.uri}` is used without a "
            "login, and Snowflake connects with OAuth, a token or SigV4 only",
            hint="set `credential`, `token` or `sigv4` in `iceberg.catalog`",
        )


def catalog_integration(destination: DestinationSpec, integration: str) -> Snippet:
    """Return CREATE CATALOG INTEGRATION; `check_catalog` has passed."""
    catalog = destination.iceberg.catalog
    source = "POLARIS" if catalog.type == "SNOWFLAKE_OPEN_CATALOG" else "ICEBERG_REST"
    parts = [
        f"CREATE CATALOG INTEGRATION IF NOT EXISTS {integration}",
        f"  CATALOG_SOURCE = {source}",
        "  TABLE_FORMAT = ICEBERG",
        *_block("REST_CONFIG", _config(destination)),
        *_block("REST_AUTHENTICATION", _authentication(destination)),
        "  ENABLED = TRUE;",
    ]
    return Snippet("a catalog integration", "\n".join(parts), _why(catalog))


def _config(destination: DestinationSpec) -> list[str]:
    catalog = destination.iceberg.catalog
    if catalog.type == "GLUE":
        where = place(destination)
        account = catalog.glue_id or where.account.replace("*", "<ACCOUNT_ID>")
        return [
            f"CATALOG_URI = {snowflake_text(f'https://glue.{where.region}.{domain(where.region)}/iceberg')}",
            "CATALOG_API_TYPE = AWS_GLUE",
            f"CATALOG_NAME = {snowflake_text(account)}",
        ]
    found = [f"CATALOG_URI = {snowflake_text(catalog.uri or '<CATALOG_URI>')}"]
    if catalog.sigv4 is not None:
        found.append(f"CATALOG_API_TYPE = {_API_TYPES[catalog.sigv4.signing_name]}")
    if catalog.warehouse:
        found.append(f"CATALOG_NAME = {snowflake_text(catalog.warehouse)}")
    return found


def _authentication(destination: DestinationSpec) -> list[str]:
    catalog = destination.iceberg.catalog
    if catalog.type == "GLUE" or catalog.sigv4 is not None:
        region = (catalog.sigv4.region if catalog.sigv4 else None) or destination.region
        return [
            "TYPE = SIGV4",
            f"SIGV4_IAM_ROLE = {snowflake_text(READER_ROLE)}",
            f"SIGV4_SIGNING_REGION = {snowflake_text(region)}",
            f"SIGV4_EXTERNAL_ID = {snowflake_text(_EXTERNAL_ID)}",
        ]
    if catalog.token is not None:
        return ["TYPE = BEARER", "BEARER_TOKEN = '<TOKEN>'"]
    scopes = (catalog.scope or _REST_SCOPE).split()
    found = ["TYPE = OAUTH"]
    if catalog.oauth2_server_uri:
        found.append(f"OAUTH_TOKEN_URI = {snowflake_text(catalog.oauth2_server_uri)}")
    return [
        *found,
        "OAUTH_CLIENT_ID = '<CLIENT_ID>'",
        "OAUTH_CLIENT_SECRET = '<CLIENT_SECRET>'",
        f"OAUTH_ALLOWED_SCOPES = ({', '.join(snowflake_text(scope) for scope in scopes)})",
    ]


def _block(name: str, lines: list[str]) -> list[str]:
    return [f"  {name} = (", *(f"    {line}" for line in lines), "  )"]


def _why(catalog: CatalogSpec) -> str:
    """Say where the value of each placeholder is, and what Snowflake cannot take over."""
    told = []
    if catalog.type == "GLUE" or catalog.sigv4 is not None:
        told.append(f"Replace {_EXTERNAL_ID} by a secret of your choice.")
        if catalog.sigv4 is None or catalog.sigv4.signing_name == "glue":
            told.append("The role needs the Glue policy of `lakeload policy --read-only`.")
    elif catalog.token is not None:
        told.append(f"Replace <TOKEN> by the value of {catalog.token}.")
    elif catalog.credential is not None:
        told.append(f"<CLIENT_ID> and <CLIENT_SECRET> are the two halves of {catalog.credential}.")
    else:
        told.append(_both(catalog.client_id, catalog.client_secret))
    if catalog.type == "SNOWFLAKE_OPEN_CATALOG":
        told.append("The catalog, the bucket and Snowflake's account have to be in one region.")
    if catalog.headers:
        told.append("Snowflake cannot send the headers that `headers` sets.")
    return "\n".join(told)


def _both(client_id: SecretReference | None, client_secret: SecretReference | None) -> str:
    return (
        f"Replace <CLIENT_ID> by the value of {client_id} "
        f"and <CLIENT_SECRET> by the value of {client_secret}."
    )


def _without_login(catalog: CatalogSpec) -> bool:
    client = catalog.client_id is not None and catalog.client_secret is not None
    return not (client or catalog.credential or catalog.token or catalog.sigv4)
