"""A table with changes that only this load sees, for Spark to write to.

Files are staged in it, and the publish makes the changes again together with the rows: columns
change in the commit that publishes, or not at all (docs/protocol-iceberg.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from lakeload_jobs.formats.base import RetryLoad
from lakeload_jobs.formats.iceberg.commits.metadata import Json, Metadata
from lakeload_jobs.formats.iceberg.load.tables import Java, active, identifier, jvm, load

CATALOG = "lakeload_uncommitted"
"""The catalog in Spark that has such tables while Spark writes them."""

_SETTING = f"spark.sql.catalog.{CATALOG}"
_SETTINGS = {
    "catalog-impl": "org.apache.iceberg.inmemory.InMemoryCatalog",
    "cache-enabled": "true",
    # For ever: a table that leaves the cache is nowhere.
    "cache.expiration-interval-ms": "-1",
    "use-nullable-query-schema": "false",
}


@dataclass(frozen=True)
class UncommittedTable:
    """A table of this name in the catalog `catalog` of Spark."""

    spark: SparkSession
    catalog: str
    java_table: Java

    def metadata(self) -> Json:
        """Return its metadata, with what Spark has committed to it."""
        to_json = jvm(self.spark).org.apache.iceberg.TableMetadataParser.toJson
        found: Json = json.loads(str(to_json(self.java_table.operations().current())))
        return found


@contextmanager
def in_catalog(
    spark: SparkSession, schema: str, name: str, metadata: Metadata
) -> Iterator[UncommittedTable]:
    """Have Spark find a table of this metadata in a catalog in memory.

    A catalog of Iceberg makes its tables itself. The cache before it takes any, and is private.
    Raises `RetryLoad` where the table is gone.
    """
    if spark.conf.get(_SETTING, None) is None:
        for setting, value in _SETTINGS.items():
            spark.conf.set(f"{_SETTING}.{setting}", value)
        spark.conf.set(_SETTING, "org.apache.iceberg.spark.SparkCatalog")
    # Spark reads a catalog's settings from the session that is active in the thread.
    active(spark)
    java_table = _with(spark, schema, name, metadata)
    load_catalog = jvm(spark).org.apache.iceberg.spark.Spark3Util.loadIcebergCatalog
    catalog = load_catalog(spark._jsparkSession, CATALOG)
    field = catalog.getClass().getDeclaredField("tableCache")
    field.setAccessible(True)
    tables, ident = field.get(catalog), identifier(spark, schema, name)
    tables.put(ident, java_table)
    try:
        yield UncommittedTable(spark, CATALOG, java_table)
    finally:
        tables.invalidate(ident)


def _with(spark: SparkSession, schema: str, name: str, metadata: Metadata) -> Java:
    """Return Iceberg's table with other metadata: that of a transaction which is never committed,
    and in which commits to it stay."""
    known = load(spark, schema, name)
    if known is None:
        raise RetryLoad(f"`{schema}.{name}` was dropped since this load began")
    table, iceberg = known.newTransaction().table(), jvm(spark).org.apache.iceberg
    operations = table.operations()
    changed = iceberg.TableMetadataParser.fromJson(json.dumps(metadata))
    operations.commit(operations.current(), changed)
    return iceberg.BaseTable(operations, table.name())
