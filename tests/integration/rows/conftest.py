"""A Spark session for expressions: one core, no user interface."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from lakeload_jobs.session import configure


@pytest.fixture(scope="package")
def spark() -> Iterator[SparkSession]:
    """Return the process's session, or start one; a session that was there is left running."""
    running = SparkSession.getActiveSession()
    session = running or (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
    configure(session)
    session.conf.set("spark.sql.timeType.enabled", "true")
    yield session
    session.conf.unset("spark.sql.timeType.enabled")
    if running is None:
        session.stop()
