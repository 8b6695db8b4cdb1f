"""What each catalog enforces of the publish transaction.

Iceberg's public Java API is driven here by itself, without Spark and without the product: it proves
the catalogs. docs/protocol-iceberg.md has the table.
"""
