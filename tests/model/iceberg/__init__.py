"""Explicit-state model of the Iceberg protocol (docs/protocol-iceberg.md).

The steps follow the write path of Iceberg tables. Decisions call the product's own rules, so the
search covers the code and not a copy of it.
"""
