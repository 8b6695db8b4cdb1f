"""AWS Glue's Data Catalog as a table's catalog: step 6 of DESIGN section 5 (docs/glue.md)."""

from lakeload_jobs.lake.glue.catalog import CatalogChange, GlueCatalog
from lakeload_jobs.lake.glue.conflicts import CatalogConflict
from lakeload_jobs.lake.glue.targets import glue_target

__all__ = ["CatalogChange", "CatalogConflict", "GlueCatalog", "glue_target"]
