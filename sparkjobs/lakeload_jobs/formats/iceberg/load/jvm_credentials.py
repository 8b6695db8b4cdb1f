"""The base identity and the endpoints of the JVM's AWS clients, as system properties.

Iceberg's role factory takes neither: it asks the SDK's own chain and knows no endpoint but S3's
(docs/design-notes.md). System properties are this process's memory: they are in no file, no
argument and no task; Spark shows them redacted. Executors of other JVMs have an identity of their
own.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.aws.credentials import Keys
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.contract.traits import needs_aws_identity
from lakeload_jobs.formats.iceberg.load.tables import jvm

_KEYS = ("aws.accessKeyId", "aws.secretAccessKey", "aws.sessionToken")
_EARLY_SECONDS = 600.0
_LEAST_SECONDS = 30.0
_THREAD = "renew-jvm-credentials"


class JvmCredentials:
    """The endpoints, the region and the keys of the base identity in the driver's JVM, so that both
    sides of the process are one identity. There is one for a run: all its tables share it.

    Keys that expire are renewed by one thread until `close`.
    """

    def __init__(self, spark: SparkSession, destination: DestinationSpec, aws: AwsSession) -> None:
        """Set them. A catalog that lends keys needs none, unless requests to it are signed.

        Raises `AwsError` and `InvalidInput` as `AwsSession` does.
        """
        self._spark = spark
        self._aws = aws
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        endpoints, catalog = destination.endpoints, destination.iceberg.catalog
        properties = {
            "aws.endpointUrlSts": endpoints.sts,
            "aws.endpointUrlGlue": endpoints.glue,
            "aws.region": destination.region,
        }
        if not needs_aws_identity(catalog):
            self._set({**properties, **dict.fromkeys(_KEYS)})
            return
        keys = aws.base_keys()
        self._set({**properties, **_properties(keys)})
        if keys.expires is not None:
            self._thread = threading.Thread(
                target=self._renew, args=(keys.expires,), name=_THREAD, daemon=True
            )
            self._thread.start()

    def close(self) -> None:
        """End the renewal. What is set stays: catalogs that are open go on using it."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def _set(self, properties: Mapping[str, str | None]) -> None:
        """Set all properties in one call, under the lock of Java's own table: who copies the table
        sees keys of one identity, and no reader waits for Python between two of them."""
        java = jvm(self._spark).java
        values = java.util.HashMap()
        for name, value in properties.items():
            if value is not None:
                values.put(name, value)
        table = java.lang.System.getProperties()
        for name, value in properties.items():
            if value is None:
                table.remove(name)
        table.putAll(values)

    def _renew(self, expires: datetime) -> None:
        """Replace keys before they expire, until the run ends or they cannot be renewed."""
        until: datetime | None = expires
        while until is not None:
            left = (until - datetime.now(UTC)).total_seconds() - _EARLY_SECONDS
            if self._closed.wait(max(left, _LEAST_SECONDS)):
                return
            try:
                keys = self._aws.base_keys()
                self._set(_properties(keys))
            except (AwsError, OSError):
                # The next call that needs them says what is wrong, in its own words.
                return
            until = keys.expires


def _properties(keys: Keys) -> dict[str, str | None]:
    token = keys.session_token.reveal() if keys.session_token else None
    values = (keys.access_key_id, keys.secret_access_key.reveal(), token)
    return dict(zip(_KEYS, values, strict=True))
