"""Iceberg's Java API as Python sees it: names, and what an exception of it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

CATALOG = "lake"
"""The name of the catalog in Spark: `` lake.`schema`.`table` ``."""

Java: TypeAlias = Any
"""An object of the JVM: py4j types none of them."""

_MAX_CAUSES = 16


def jvm(spark: SparkSession) -> Java:
    """Return py4j's view of the JVM."""
    return spark._jvm


def active(spark: SparkSession) -> None:
    """Make this session the active one of the thread."""
    sessions = jvm(spark).org.apache.spark.sql.classic.SparkSession
    sessions.setActiveSession(spark._jsparkSession)


def java_catalog(spark: SparkSession) -> Java:
    """Return Iceberg's own catalog behind Spark's."""
    return jvm(spark).org.apache.iceberg.spark.Spark3Util.loadIcebergCatalog(
        spark._jsparkSession, CATALOG
    )


def namespace(spark: SparkSession, schema: str) -> Java:
    """Return a namespace of one level."""
    gateway: Java = spark.sparkContext._gateway
    levels = gateway.new_array(jvm(spark).java.lang.String, 1)
    levels[0] = schema
    return jvm(spark).org.apache.iceberg.catalog.Namespace.of(levels)


def identifier(spark: SparkSession, schema: str, table: str) -> Java:
    """Return the identifier of a table."""
    of = jvm(spark).org.apache.iceberg.catalog.TableIdentifier.of
    return of(namespace(spark, schema), table)


def spark_name(schema: str, table: str, branch: str | None = None) -> str:
    """Return how SQL calls a table, or one branch of it."""
    parts = [schema, table, *([f"branch_{branch}"] if branch else [])]
    return ".".join([CATALOG, *(f"`{part}`" for part in parts)])


def causes(error: BaseException) -> Iterator[tuple[str, str]]:
    """Yield class and text of each Java exception of a chain, the outermost first.

    Nothing when the JVM no longer answers or no Java exception is behind it.
    """
    java: Java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    try:
        for _ in range(_MAX_CAUSES):
            if java is None:
                return
            yield str(java.getClass().getSimpleName()), str(java.getMessage() or "").strip()
            java = java.getCause()
    except (Py4JError, OSError):
        return


def caused_by(error: BaseException, *classes: str) -> bool:
    """Return whether one of the Java exceptions behind `error` is of one of these classes."""
    return any(name in classes for name, _ in causes(error))


def sentence(error: BaseException) -> str:
    """Return what the innermost Java exception says, in one line of at most 300 characters."""
    found = list(causes(error))
    name, text = found[-1] if found else (type(error).__name__, str(error))
    flat = " ".join(f"{name}: {text}".split())
    return flat if len(flat) <= 300 else flat[:299] + "…"
