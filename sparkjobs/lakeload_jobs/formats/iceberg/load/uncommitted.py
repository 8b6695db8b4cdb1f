"""A table with changes that only this load sees: a transaction that is never committed.

Files are staged in it, and the publish makes the changes again together with the rows: columns
change in the transaction that publishes, or not at all (docs/protocol-iceberg.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from lakeload_jobs.formats.iceberg.load.tables import Java, active, identifier, jvm

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


def uncommitted(spark: SparkSession, transaction: Java) -> Java:
    """Return the table of a transaction. Commits to it stay in the transaction."""
    table = transaction.table()
    return jvm(spark).org.apache.iceberg.BaseTable(table.operations(), table.name())


@contextmanager
def in_catalog(spark: SparkSession, schema: str, name: str, java_table: Java) -> Iterator[str]:
    """Have Spark find the table in a catalog in memory, and yield the name of that catalog.

    A catalog of Iceberg makes its tables itself. The cache before it takes any, and is private.
    """
    if spark.conf.get(_SETTING, None) is None:
        for setting, value in _SETTINGS.items():
            spark.conf.set(f"{_SETTING}.{setting}", value)
        spark.conf.set(_SETTING, "org.apache.iceberg.spark.SparkCatalog")
    # Spark reads a catalog's settings from the session that is active in the thread.
    active(spark)
    load = jvm(spark).org.apache.iceberg.spark.Spark3Util.loadIcebergCatalog
    catalog = load(spark._jsparkSession, CATALOG)
    field = catalog.getClass().getDeclaredField("tableCache")
    field.setAccessible(True)
    tables, ident = field.get(catalog), identifier(spark, schema, name)
    tables.put(ident, java_table)
    try:
        yield CATALOG
    finally:
        tables.invalidate(ident)
