"""The shared Spark session, with what tests of expressions ask for beyond it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession


@pytest.fixture(scope="package")
def spark(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, which also knows times of day."""
    spark.conf.set("spark.sql.timeType.enabled", "true")
    yield spark
    spark.conf.unset("spark.sql.timeType.enabled")
