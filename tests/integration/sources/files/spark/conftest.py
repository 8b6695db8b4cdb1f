"""The shared Spark session in UTC: what its readers of ORC and Avro return depends on Java's zone
of time, which is that of the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession


@pytest.fixture(scope="package")
def java_zone(spark: SparkSession) -> Iterator[Callable[[str], None]]:
    """Sets the zone of time of Spark's Java; it is UTC before."""
    java: Any = spark._jvm
    zones = java.java.util.TimeZone
    before = zones.getDefault()

    def change(name: str) -> None:
        zones.setDefault(zones.getTimeZone(name))

    change("UTC")
    yield change
    zones.setDefault(before)
