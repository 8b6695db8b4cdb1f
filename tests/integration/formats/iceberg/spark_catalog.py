"""The catalog in Spark, for tests that write with SQL what somebody else would."""

from __future__ import annotations

from pyspark.sql import SparkSession

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.formats.iceberg.load.catalog_settings import SparkCatalog


def open_in_spark(spark: SparkSession, destination: DestinationSpec) -> None:
    """Open the catalog `lake` in a session: loads open it only where Spark writes for them."""
    catalog = SparkCatalog(destination, AwsSession(destination), has_jars=True)
    catalog.open_in(spark, "a table", "somebody else writes")
