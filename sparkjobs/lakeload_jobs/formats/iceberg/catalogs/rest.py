"""REST catalogs: plain ones, Snowflake Open Catalog (Polaris), and Nessie's."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import requests

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import InvalidInput
from lakeload_jobs.contract.secrets import Secret, SecretReference
from lakeload_jobs.contract.spec import CatalogSpec, DestinationSpec
from lakeload_jobs.contract.traits import vends
from lakeload_jobs.formats.iceberg.catalogs.http import (
    DEFAULT_PATIENCE,
    AwsSignature,
    Client,
    FixedToken,
    HttpTimeouts,
    Identity,
    document_of,
    error_from,
    not_a_catalog,
    prepare,
    send,
    shown,
)
from lakeload_jobs.formats.iceberg.catalogs.rest_tables import RestTables
from lakeload_jobs.formats.iceberg.rules.catalogs import rest_uri, rest_warehouse, token_uri

DELEGATION_HEADER = "X-Iceberg-Access-Delegation"


@dataclass
class RestConnection:
    """One destination's REST catalog, step by step: reach it, get a token, open it.

    Raises `InvalidInput` for a missing secret, `CatalogError` and `AwsError` for what is refused.
    """

    destination: DestinationSpec
    session: AwsSession
    patience: HttpTimeouts = DEFAULT_PATIENCE
    hidden: list[Secret] = field(default_factory=list)
    """What no answer of the catalog may show; tokens join it as they come."""

    @property
    def spec(self) -> CatalogSpec:
        """The catalog's settings."""
        return self.destination.iceberg.catalog

    @property
    def uri(self) -> str:
        """Where its REST interface is, without `/v1`."""
        return rest_uri(self.spec)

    @property
    def warehouse(self) -> str | None:
        """What it is asked for by."""
        return rest_warehouse(self.destination)

    @cached_property
    def identity(self) -> Identity:
        """Who we are to it."""
        spec = self.spec
        if spec.sigv4:
            region = spec.sigv4.region or self.destination.region
            return AwsSignature(self.session, spec.sigv4.signing_name, region)
        if spec.token:
            return FixedToken(self._secret(spec.token))
        if spec.credential:
            client_id, colon, secret = self._secret(spec.credential).reveal().partition(":")
            if not colon or not secret:
                raise InvalidInput(
                    f"the secret {spec.credential} does not have the form "
                    "`client-id:client-secret`",
                    hint="store both in one secret, separated by a colon",
                )
            pair = Secret(client_id), Secret(secret)
            self.hidden.extend(pair)
            return self._client(*pair)
        if spec.client_id and spec.client_secret:
            return self._client(self._secret(spec.client_id), self._secret(spec.client_secret))
        return Identity()

    @cached_property
    def headers(self) -> dict[str, str]:
        """What every request carries besides."""
        given = self.spec.headers or {}
        headers = {name: self._secret(reference).reveal() for name, reference in given.items()}
        if self.vended:
            headers[DELEGATION_HEADER] = "vended-credentials"
        return headers

    @property
    def vended(self) -> bool:
        """Whether tables are written with keys of the catalog's making."""
        return vends(self.spec)

    def reach(self) -> None:
        """Make sure that a catalog answers at the URI; a refusal is an answer too."""
        # No warehouse yet: that is for opening it.
        doing = f"reading `{shown(self.uri)}/v1/config`"
        response = send("GET", f"{self.uri}/v1/config", doing, Identity(), self.patience)
        if response.ok:
            if not {"defaults", "overrides"} & set(document_of(response, doing)):
                raise not_a_catalog(doing, response.status_code)
            return
        error = error_from(doing, response)
        if response.status_code in (401, 403):
            return
        # Nobody asked who we are yet, so a catalog that names its errors has been reached.
        if error.said and response.status_code < 500:
            return
        raise error

    def token(self) -> None:
        """Make sure that the OAuth2 client gets a token."""
        if isinstance(self.identity, Client):
            self.identity.token()

    def tables(self, *, advises: bool = False) -> RestTables:
        """Return its tables, read and committed to by requests of our own; nothing is asked yet.
        With `advises` errors say what to do."""
        session = prepare(requests.Session(), self.patience)
        session.headers.update(self.headers)
        return RestTables(
            session,
            self.identity,
            self.uri,
            self.warehouse,
            self.hidden,
            vended=self.vended,
            advises=advises,
        )

    def _client(self, client_id: Secret, client_secret: Secret) -> Client:
        return Client(
            uri=token_uri(self.spec),
            client_id=client_id,
            client_secret=client_secret,
            # What Iceberg's own client sends when nothing is configured.
            scope=self.spec.scope or "catalog",
            patience=self.patience,
            hidden=self.hidden,
        )

    def _secret(self, reference: SecretReference) -> Secret:
        value = self.session.resolve(reference)
        self.hidden.append(value)
        return value
