"""What each catalog enforces of the publish transaction.

Iceberg's public Java API is driven here by itself, without Spark and without the product: it proves
the catalogs. The same questions are then asked by the product's own requests, beside writers of
both kinds. docs/protocol-iceberg.md has the tables.
"""
