"""Iceberg catalogs: opening them, speaking to them, and what they answer when they refuse.

The only package that imports pyiceberg and requests. Both are heavy: import `opening` where a
catalog is opened, not where a module loads.
"""

from lakeload_jobs.formats.iceberg.catalogs.errors import CatalogError

__all__ = ["CatalogError"]
