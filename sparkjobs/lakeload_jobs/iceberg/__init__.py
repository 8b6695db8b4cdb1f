"""The Iceberg write path: stage on a branch, publish with one transaction (DESIGN section 6)."""
