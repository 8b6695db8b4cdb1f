"""AWS Glue's Data Catalog as a table's catalog: step 6 of DESIGN section 5 (docs/glue.md)."""

from lakeload_jobs.formats.parquet.glue.catalog import CatalogChange, GlueCatalog
from lakeload_jobs.formats.parquet.glue.conflicts import CatalogConflict
from lakeload_jobs.formats.parquet.log.glue_target import glue_target

__all__ = ["CatalogChange", "CatalogConflict", "GlueCatalog", "glue_target"]
