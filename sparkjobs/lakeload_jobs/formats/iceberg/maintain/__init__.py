"""Maintenance of Iceberg tables, one module a step (DESIGN section 6, docs/maintain.md)."""
