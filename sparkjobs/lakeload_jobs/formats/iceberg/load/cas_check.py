"""Whether the catalog compares a commit with the branches it sets, asked in the job.

Of a table that exists the command asks before Spark starts; of a new one nobody could
(docs/decisions/0107).
"""

from __future__ import annotations

import logging

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import CatalogSpec
from lakeload_jobs.contract.traits import Compares, catalog_traits
from lakeload_jobs.formats.iceberg.load.branches import LOST
from lakeload_jobs.formats.iceberg.load.java import Java, caused_by, jvm
from lakeload_jobs.formats.iceberg.rules.catalogs import took_false_commit

logger = logging.getLogger(__name__)


def check_compares(
    spark: SparkSession, java_table: Java, catalog: CatalogSpec, target: str, branch: str
) -> None:
    """Raise `LoadFailed` when a REST catalog takes a commit that it has to refuse.

    The commit sets `branch` to where it is, and asserts that there is no such branch: taken, it
    changes nothing. Any other answer says nothing; the commits of the load will be told more.
    """
    if catalog_traits(catalog).compares is not Compares.REFERENCES:
        return
    operations = java_table.operations()
    now = operations.current()
    reference = now.ref(branch)
    if reference is None:
        return
    build = jvm(spark).org.apache.iceberg.TableMetadata.buildFrom
    without = build(now).removeRef(branch).discardChanges().build()
    again = build(without).setRef(branch, reference).build()
    try:
        operations.commit(without, again)
    except Py4JJavaError as error:
        if not caused_by(error, *LOST):
            logger.warning("whether commits to %s are compared is not known", target, exc_info=True)
        return
    message, hint = took_false_commit(target, branch)
    raise LoadFailed(f"nothing is loaded through this catalog: {message}", hint=hint)
