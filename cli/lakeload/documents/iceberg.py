"""The `iceberg:` block of destination.yml: the catalog of Iceberg tables, and how they are made.

What holds between its settings is in `iceberg_rules`: it depends on the catalog's type.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from lakeload.config.model import Called, Finding, Model, refusal
from lakeload.config.scalars import Region, Text, TextValues, check_url, matching
from lakeload.config.secret_names import shown
from lakeload.config.secret_setting import Secret, SecretHeaders
from lakeload.documents.table_properties import property_problem
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import AccessDelegation, CatalogType
from lakeload_jobs.core.layout import prefix_problem

_SECRETS = ("credential", "token", "client_id", "client_secret")


def _catalog_url(value: str) -> str:
    what, secrets = "the URL of a catalog", "the catalog's secrets have settings of their own"
    parts = check_url(value, secrets, _URL_HINT, what)
    if parts.query or parts.fragment or re.search(r"\s", value):
        raise refusal(f"`{shown(value)}` is not {what}", _URL_HINT)
    return value.rstrip("/")


_URL_HINT = "write it with scheme, host and path: `https://catalog.example.com/api/catalog`"


def _location(value: str) -> str:
    if not value.startswith("s3://"):
        raise refusal(
            f"`{shown(value)}` is not a location in S3",
            "write it as `s3://BUCKET/PATH`, with the scheme",
        )
    _, _, path = value.removeprefix("s3://").rstrip("/").partition("/")
    if problem := prefix_problem(path):
        raise refusal(f"`{shown(value)}` cannot hold tables: {problem}")
    return value.rstrip("/")


def _property_finding(name: str, value: str) -> Finding | None:
    problem = property_problem(name, value)
    if problem is None:
        return None
    message, hint = problem
    return Finding(shown(message, 200), hint, (name,), "table-property")


CatalogUrl = Annotated[Text, AfterValidator(_catalog_url), Called("URL")]
AccountId = Annotated[
    str,
    matching(
        re.compile("[0-9]{12}"),
        "the id of an AWS account",
        "it has 12 digits, in quotes: `'123456789012'`",
    ),
]
Location = Annotated[Text, AfterValidator(_location), Called("`s3://` location")]
TableProperties = Annotated[dict[Text, str], TextValues(_property_finding)]


class SigV4(Model):
    """Signatures (AWS SigV4) of requests to a REST catalog, with the destination's credentials."""

    signing_name: Text = "glue"
    """The service that the signature names: `glue`, `s3tables`, `execute-api`."""
    region: Region | None = None
    """The region that the signature names. Default: the destination's."""


class Catalog(Model):
    """Where tables are registered. Each type accepts only its own settings."""

    type: CatalogType = "GLUE"
    """The kind of catalog."""
    glue_id: AccountId | None = None
    """GLUE: the account whose catalog it is. Default: the role's own."""
    uri: CatalogUrl | None = None
    """REST, NESSIE, SNOWFLAKE_OPEN_CATALOG: URL of the catalog. Required there."""
    warehouse: Text | None = None
    """REST: the server's name for its warehouse, if it has several."""
    credential: Secret = None
    """REST: `CLIENT_ID:CLIENT_SECRET` in one, for OAuth2. Secret."""
    token: Secret = None
    """REST, NESSIE: a bearer token. Secret."""
    sigv4: SigV4 | None = None
    """REST: sign requests with AWS SigV4, in place of `credential` or `token`."""
    scope: Text | None = None
    """REST: the OAuth2 scope, such as `PRINCIPAL_ROLE:ALL`."""
    oauth2_server_uri: CatalogUrl | None = None
    """REST: where tokens are issued. Default: the catalog itself."""
    access_delegation: AccessDelegation = "VENDED_CREDENTIALS"
    """REST: the catalog vends credentials for the files, or (`NONE`) the destination's are used."""
    headers: Annotated[dict[str, SecretReference] | None, SecretHeaders()] = None
    """REST: further headers of each request; their values are secret references."""
    ref: Text = "main"
    """NESSIE: the branch of the catalog."""
    api: Literal["NATIVE", "REST"] = "NATIVE"
    """NESSIE: its own interface, or its Iceberg REST one, which no pipeline can load through."""
    catalog_name: Text | None = None
    """SNOWFLAKE_OPEN_CATALOG: the catalog's name. Required there."""
    client_id: Secret = None
    """SNOWFLAKE_OPEN_CATALOG: the id of the service connection. Secret; required there."""
    client_secret: Secret = None
    """SNOWFLAKE_OPEN_CATALOG: the secret of the service connection. Secret; required there."""
    principal_role: Text = "ALL"
    """SNOWFLAKE_OPEN_CATALOG: the principal role to act in; `ALL` is every one it has."""
    catalog_region: Region | None = None
    """SNOWFLAKE_OPEN_CATALOG: region of the catalog; it must be the bucket's region."""

    @property
    def references(self) -> dict[str, SecretReference]:
        """Return the secret settings that are given, by name; headers as `headers.NAME`."""
        given = {name: getattr(self, name) for name in _SECRETS}
        headers = {f"headers.{name}": value for name, value in (self.headers or {}).items()}
        return {name: value for name, value in (given | headers).items() if value is not None}


class Iceberg(Model):
    """The catalog of Iceberg tables and how they are made; with `table_format: ICEBERG` only."""

    catalog: Catalog = Catalog()
    warehouse_location: Location | None = None
    """GLUE, NESSIE: location of tables, inside bucket and prefix. Default: bucket and prefix."""
    branch: Text = "main"
    """The branch of each table that is loaded into."""
    format_version: Literal[2, 3] = 2
    """The version of Iceberg's table format."""
    table_properties: TableProperties = Field(default_factory=dict)
    """Properties of new tables; those that begin with `lakeload.` are rejected."""
