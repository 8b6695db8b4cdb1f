"""The oracle of these tests: the answers of Spark's readers, recorded or live, in UTC.

What Spark returns for ORC and Avro depends on Java's zone of time, which is that of the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.integration.sources.files.spark.recorded import SparkOracle


@pytest.fixture
def oracle(request: pytest.FixtureRequest) -> Iterator[SparkOracle]:
    """Spark's answers; its Java has the zone of before when the test ends."""
    zones: list[Any] = []

    def session() -> SparkSession:
        spark: SparkSession = request.getfixturevalue("spark")
        java: Any = spark._jvm
        if not zones:
            zones.extend((java.java.util.TimeZone, java.java.util.TimeZone.getDefault()))
            set_zone("UTC")
        return spark

    def set_zone(name: str) -> None:
        zones[0].setDefault(zones[0].getTimeZone(name))

    yield SparkOracle(session, set_zone)
    if zones:
        zones[0].setDefault(zones[1])
