"""The destination's catalog as Spark's settings, and its secrets in the running session.

Properties: https://iceberg.apache.org/docs/latest/spark-configuration/ and `/docs/latest/aws/`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack

from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.sql import SparkSession

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import InvalidInput, JavaNeeded
from lakeload_jobs.contract.secrets import Secret
from lakeload_jobs.contract.spec import CatalogSpec, DestinationSpec
from lakeload_jobs.contract.traits import Interface, catalog_traits, vends
from lakeload_jobs.formats.iceberg.load.jvm_credentials import JvmCredentials
from lakeload_jobs.formats.iceberg.load.tables import (
    CATALOG,
    CONNECTION_LOST,
    active,
    caused_by,
    java_catalog,
    opening_refused,
)
from lakeload_jobs.formats.iceberg.rules.catalogs import (
    nessie_api_uri,
    rest_uri,
    rest_warehouse,
    token_uri,
    warehouse_location,
)
from lakeload_jobs.formats.iceberg.rules.file_io import file_properties
from lakeload_jobs.storage.backoff import pause

logger = logging.getLogger(__name__)

SETTING = f"spark.sql.catalog.{CATALOG}"

_DELEGATION = "header.X-Iceberg-Access-Delegation"
_TIMEOUT_MS = "60000"
_OPENINGS = 4
"""How often a catalog is opened whose connection is lost."""
_SHUFFLES = 8
_TOKENS = {Interface.REST: "token", Interface.NESSIE: "authentication.token"}


def catalog_settings(destination: DestinationSpec) -> dict[str, str]:
    """Return every setting of the catalog `lake` that is no secret, as Spark names them."""
    named = {f"{SETTING}.{name}": value for name, value in catalog_properties(destination).items()}
    return {SETTING: "org.apache.iceberg.spark.SparkCatalog", **named}


def catalog_properties(destination: DestinationSpec) -> dict[str, str]:
    """Return every property of the catalog `lake` that is no secret, as Iceberg names them."""
    spec = destination.iceberg.catalog
    settings = _SETTINGS[catalog_traits(spec).interface](destination) | file_properties(destination)
    # Most commits are made without Java: a cached table would be behind them.
    return settings | {"cache-enabled": "false", "use-nullable-query-schema": "false"}


class SparkCatalog:
    """The catalog `lake` in Spark, which is opened in each session that needs it. There is one for
    a run: its sessions share the JVM's credentials."""

    def __init__(self, destination: DestinationSpec, aws: AwsSession, *, has_jars: bool) -> None:
        self._destination = destination
        self._aws = aws
        self._has_jars = has_jars
        self._lock = threading.Lock()
        self._credentials: JvmCredentials | None = None
        self._opened: list[SparkSession] = []

    def open_in(self, spark: SparkSession, target: str, reason: str) -> None:
        """Open the catalog in a session, once. `reason` says what the table `target` needs it for,
        as a clause.

        Secrets are resolved now, and leave the settings again once the catalog has taken them.
        Raises `JavaNeeded` where Spark has no jars for it, `AwsError`, `InvalidInput` for a missing
        secret, and `Refused` for what the catalog refuses.
        """
        if not self._has_jars:
            raise JavaNeeded(target, reason)
        with self._lock:
            if any(spark is one for one in self._opened):
                return
            logger.info("Spark opens the catalog for %s: %s", target, reason)
            secrets = _secrets(self._destination, self._aws)
            if self._credentials is None:
                self._credentials = JvmCredentials(spark, self._destination, self._aws)
            _open(spark, self._destination, secrets)
            self._opened.append(spark)

    def close(self, *, jvm_stays: bool) -> None:
        """End the renewal of credentials; close the catalog in each session where the JVM stays."""
        with ExitStack() as stack:
            if self._credentials is not None:
                stack.callback(self._credentials.close)
            if jvm_stays:
                for spark in self._opened:
                    stack.callback(close_catalog, spark)
            self._opened.clear()


def close_catalog(spark: SparkSession) -> None:
    """Close the catalog `lake` of a session that has it open.

    Iceberg's client of a REST catalog has a thread for metrics and one that renews tokens, and
    keeps connections. Java's collector ends none of them, and a driver that stays opens catalogs
    again and again.
    """
    try:
        java_catalog(spark).close()
        spark._jsparkSession.sessionState().catalogManager().reset()
    except (Py4JNetworkError, OSError):
        # The JVM has ended, and the catalog with it.
        return


def _open(spark: SparkSession, destination: DestinationSpec, secrets: dict[str, Secret]) -> None:
    # Spark looks catalogs up in the settings of the thread's session, whichever is asked.
    active(spark)
    spark._jsparkSession.sessionState().catalogManager().reset()
    for name in spark.conf.getAll:
        if name == SETTING or name.startswith(f"{SETTING}."):
            spark.conf.unset(name)
    try:
        for name, value in catalog_settings(destination).items():
            spark.conf.set(name, value)
        for name, secret in secrets.items():
            spark.conf.set(f"{SETTING}.{name}", secret.reveal())
        # A MERGE joins and sorts: Spark makes fewer partitions of few rows by itself.
        partitions = _SHUFFLES * spark.sparkContext.defaultParallelism
        spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
        _load_catalog(spark)
    except Py4JJavaError as error:
        raise opening_refused(error, destination, list(secrets.values())) from None
    finally:
        for name in secrets:
            spark.conf.unset(f"{SETTING}.{name}")


def _load_catalog(spark: SparkSession) -> None:
    """Open the catalog, again where a connection was lost: Iceberg's client does not repeat the
    POST that asks for a token, and opening changes nothing."""
    for tries in range(_OPENINGS):
        try:
            java_catalog(spark)
            return
        except Py4JJavaError as error:
            if tries + 1 == _OPENINGS or not caused_by(error, *CONNECTION_LOST):
                raise
        pause(tries, first=0.25)


def _glue(destination: DestinationSpec) -> dict[str, str]:
    spec = destination.iceberg.catalog
    settings = {"type": "glue", "warehouse": warehouse_location(destination)}
    if spec.glue_id:
        settings["glue.id"] = spec.glue_id
    if destination.endpoints.glue:
        settings["glue.endpoint"] = destination.endpoints.glue
    return settings


def _nessie(destination: DestinationSpec) -> dict[str, str]:
    spec = destination.iceberg.catalog
    settings = {
        "type": "nessie",
        "uri": nessie_api_uri(spec.uri or ""),
        "client-api-version": "2",
        "ref": spec.ref,
        "warehouse": warehouse_location(destination),
    }
    if spec.token:
        settings["authentication.type"] = "BEARER"
    return settings


def _rest(destination: DestinationSpec) -> dict[str, str]:
    spec = destination.iceberg.catalog
    settings = {
        "type": "rest",
        "uri": rest_uri(spec),
        "rest.client.connection-timeout-ms": _TIMEOUT_MS,
        "rest.client.socket-timeout-ms": _TIMEOUT_MS,
    }
    if warehouse := rest_warehouse(destination):
        settings["warehouse"] = warehouse
    if spec.sigv4:
        settings |= {
            "rest.auth.type": "sigv4",
            "rest.signing-name": spec.sigv4.signing_name,
            "rest.signing-region": spec.sigv4.region or destination.region,
        }
    elif _oauth2(spec):
        settings |= {
            "rest.auth.type": "oauth2",
            "oauth2-server-uri": token_uri(spec),
            # What Iceberg's own client sends when nothing is configured.
            "scope": spec.scope or "catalog",
        }
    else:
        settings["rest.auth.type"] = "none"
    if vends(spec):
        settings[_DELEGATION] = "vended-credentials"
    return settings


_SETTINGS: Mapping[Interface, Callable[[DestinationSpec], dict[str, str]]] = {
    Interface.GLUE: _glue,
    Interface.REST: _rest,
    Interface.NESSIE: _nessie,
}


def _oauth2(spec: CatalogSpec) -> bool:
    return bool(spec.token or spec.credential or (spec.client_id and spec.client_secret))


def _secrets(destination: DestinationSpec, session: AwsSession) -> dict[str, Secret]:
    """Return the settings that are secrets, resolved."""
    spec = destination.iceberg.catalog
    found = {}
    for name, reference in (spec.headers or {}).items():
        found[f"header.{name}"] = session.resolve(reference)
    if spec.token:
        found[_TOKENS[catalog_traits(spec).interface]] = session.resolve(spec.token)
    elif spec.credential:
        found["credential"] = _credential(session.resolve(spec.credential), str(spec.credential))
    elif spec.client_id and spec.client_secret:
        client, secret = session.resolve(spec.client_id), session.resolve(spec.client_secret)
        found["credential"] = Secret(f"{client.reveal()}:{secret.reveal()}")
    credentials = destination.credentials
    if credentials.role_arn and credentials.external_id and (spec.sigv4 or not vends(spec)):
        found["client.assume-role.external-id"] = session.resolve(credentials.external_id)
    return found


def _credential(pair: Secret, reference: str) -> Secret:
    client, colon, secret = pair.reveal().partition(":")
    if not client or not colon or not secret:
        raise InvalidInput(
            f"the secret {reference} does not have the form `client-id:client-secret`",
            hint="store both in one secret, separated by a colon",
        )
    return pair
