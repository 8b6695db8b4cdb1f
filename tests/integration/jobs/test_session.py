"""The session of a job."""

from __future__ import annotations

import pytest
from pyspark import SparkConf
from pyspark.sql import SparkSession

from lakeload_jobs.formats.iceberg.load.tables import jvm
from lakeload_jobs.session import _SPARKS_OWN, configure, setting


def test_iceberg_java_packages_are_resolved_once(spark: SparkSession) -> None:
    java = jvm(spark)
    delattr(java, "org")
    assert java.org.apache.iceberg.catalog is not java.org.apache.iceberg.catalog

    configure(spark)
    assert java.org.apache.iceberg.catalog is java.org.apache.iceberg.catalog
    assert java.org.apache.iceberg.catalog.Namespace.empty().isEmpty()


@pytest.mark.parametrize("name", _SPARKS_OWN)
def test_spark_setting_absent_is_the_default_of_spark(spark: SparkSession, name: str) -> None:
    default = jvm(spark).org.apache.spark.sql.internal.SQLConf().getConfString(name)
    if name.endswith("Bytes"):
        default = f"{int(default.removesuffix('b')) >> 20}MB"
    assert setting(spark, name) == default


@pytest.mark.parametrize("key", ["spark.sql.parquet", "spark.sql.legacy.parquet"])
def test_spark_setting_under_its_older_name_is_respected(
    spark: SparkSession, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = SparkConf(loadDefaults=False).set(f"{key}.int96RebaseModeInRead", "LEGACY")
    monkeypatch.setattr(spark.sparkContext, "_conf", given)
    assert setting(spark, "spark.sql.parquet.int96RebaseModeInRead") == "LEGACY"
