"""The session of a job."""

from __future__ import annotations

from pyspark.sql import SparkSession

from lakeload_jobs.formats.iceberg.load.tables import jvm
from lakeload_jobs.session import configure


def test_java_is_asked_for_the_packages_of_iceberg_once(spark: SparkSession) -> None:
    java = jvm(spark)
    delattr(java, "org")
    assert java.org.apache.iceberg.catalog is not java.org.apache.iceberg.catalog

    configure(spark)
    assert java.org.apache.iceberg.catalog is java.org.apache.iceberg.catalog
    assert java.org.apache.iceberg.catalog.Namespace.empty().isEmpty()
