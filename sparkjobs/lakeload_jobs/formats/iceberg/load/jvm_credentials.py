"""The base identity and the endpoints of the JVM's AWS clients, as system properties.

Iceberg's role factory takes neither: it asks the SDK's own chain and knows no endpoint but S3's
(docs/decisions/0081). System properties are this process's memory: they are in no file, no argument
and no task; Spark shows them redacted. Executors of other JVMs have an identity of their own.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.aws.credentials import Keys
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.contract.traits import needs_aws_identity
from lakeload_jobs.formats.iceberg.load.java import jvm

_KEYS = ("aws.accessKeyId", "aws.secretAccessKey", "aws.sessionToken")
_EARLY_SECONDS = 600.0
_LEAST_SECONDS = 30.0


def set_base_identity(
    spark: SparkSession, destination: DestinationSpec, session: AwsSession
) -> None:
    """Give the driver's JVM the endpoints, the region and the keys of the base identity, so that
    both sides of the process are one identity; keys that expire are renewed while it lives.

    A catalog that lends keys needs none, unless requests to it are signed. Raises `AwsError` and
    `InvalidInput` as `AwsSession` does.
    """
    endpoints = destination.endpoints
    _set(spark, "aws.endpointUrlSts", endpoints.sts)
    _set(spark, "aws.endpointUrlGlue", endpoints.glue)
    _set(spark, "aws.region", destination.region)
    catalog = destination.iceberg.catalog
    if not needs_aws_identity(catalog):
        for name in _KEYS:
            _set(spark, name, None)
        return
    keys = session.base_keys()
    _set_keys(spark, keys)
    if keys.expires is not None:
        threading.Thread(target=_renew, args=(spark, session, keys), daemon=True).start()


def _set_keys(spark: SparkSession, keys: Keys) -> None:
    token = keys.session_token.reveal() if keys.session_token else None
    values = (keys.access_key_id, keys.secret_access_key.reveal(), token)
    for name, value in zip(_KEYS, values, strict=True):
        _set(spark, name, value)


def _set(spark: SparkSession, name: str, value: str | None) -> None:
    system = jvm(spark).java.lang.System
    if value is None:
        system.clearProperty(name)
    else:
        system.setProperty(name, value)


def _renew(spark: SparkSession, session: AwsSession, keys: Keys) -> None:
    """Replace keys before they expire, until the process ends or they cannot be renewed."""
    wait = threading.Event()
    while keys.expires is not None:
        left = (keys.expires - datetime.now(UTC)).total_seconds() - _EARLY_SECONDS
        wait.wait(max(left, _LEAST_SECONDS))
        try:
            keys = session.base_keys()
            _set_keys(spark, keys)
        except (AwsError, OSError):
            # The next call that needs them says what is wrong, in its own words.
            return
