"""What of this machine a launch uses, found for the commands that start Spark."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from lakeload.launch.command import Installation
from lakeload.machine.appcds import archive_key, find_archive
from lakeload.machine.local.java import find_java
from lakeload.machine.local.job_zip import cache_directory, entry_script, jobs_package
from lakeload.machine.local.spark import find_spark
from lakeload.runtimes import runtime_of

logger = logging.getLogger(__name__)


def find_installation(environment: Mapping[str, str]) -> Installation:
    """Find Java, Spark and the job's package. Raises `MachineLacks`."""
    java, spark = find_java(environment), find_spark(environment)
    logger.info("Java %s (%s) in %s", java.version, java.vendor, java.home)
    logger.info("Spark %s in %s", spark.version, spark.home)
    return Installation(
        spark_home=spark.home,
        java_home=java.home,
        python=Path(sys.executable),
        package=jobs_package(cache_directory(environment)),
        entry=entry_script(),
        load_spark_defaults=not spark.ours,
    )


def class_data_of(
    installation: Installation, jars: Sequence[Path], master: str, environment: Mapping[str, str]
) -> Path | None:
    """Return the class-data archive for a driver with these jars, if one is there and fits."""
    if not runtime_of(master).traits.tasks_share_driver:
        return None
    key = archive_key(installation.java_home, installation.spark_home, jars, environment)
    return find_archive(cache_directory(environment), key)
