"""Iceberg catalogs: opening, requests and errors.

The only package that imports pyiceberg and requests. Both are heavy: import `opening` where a
catalog is opened, not where a module loads.
"""

from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError

__all__ = ["CatalogError"]
