"""AWS Glue's Data Catalog as a table's catalog: step 6 of the protocol (docs/glue.md)."""

from lakeload_jobs.formats.parquet.glue.catalog import GlueCatalog
from lakeload_jobs.formats.parquet.glue.tables import CatalogConflict
from lakeload_jobs.formats.parquet.log.admission import glue_target

__all__ = ["CatalogConflict", "GlueCatalog", "glue_target"]
