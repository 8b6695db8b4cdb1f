"""Which Glue table a table of a destination is."""

from __future__ import annotations

from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.core.names import PARTITION_KEY
from lakeload_jobs.formats.parquet.log.records import GlueTarget


def glue_target(destination: DestinationSpec, location: TableLocation) -> GlueTarget | None:
    """Return the table's name in Glue, None when the destination does not use Glue.

    The database is the schema: it holds the prefix already, and both are in lower case (F53).
    """
    parquet = destination.parquet
    if not parquet.update_glue_catalog:
        return None
    partitioned = parquet.partition_strategy != "NONE"
    return GlueTarget(
        database=location.schema,
        table=location.table,
        partition_key=PARTITION_KEY if partitioned else None,
        projection=partitioned and parquet.partition_projection,
    )
