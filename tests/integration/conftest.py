"""The Spark session that all tests of one process share: a JVM takes one class path in its life."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeload.launch.jvm import collector, compiler
from lakeload_jobs.session import ICEBERG_SETTINGS, configure


@pytest.fixture(scope="session")
def spark(
    tmp_path_factory: pytest.TempPathFactory, jars: tuple[Path, ...]
) -> Iterator[SparkSession]:
    """A session on two cores, as `sync` would start it for small input, with the jars of every
    feature."""
    folder = tmp_path_factory.mktemp("spark")
    before = dict(os.environ)
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder = SparkSession.builder.master("local[2]")
    for name, value in ICEBERG_SETTINGS.items():
        builder = builder.config(name, value)
    session = (
        builder.appName("lakeload-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.scheduler.mode", "FAIR")
        .config("spark.driver.extraClassPath", ":".join(map(str, jars)))
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", f"{collector(2, '')} {compiler(0, '')}")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.local.dir", str(folder / "local"))
        .getOrCreate()
    )
    os.environ.clear()
    os.environ.update(before)
    session.sparkContext.setLogLevel("OFF")
    configure(session)
    yield session
    session.stop()
