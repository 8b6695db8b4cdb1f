"""Maintenance of Iceberg tables, one module a step."""
