"""What each catalog enforces of the publish transaction (DESIGN section 6, step 5).

Iceberg's public Java API is driven here by itself, without Spark and without the product: it proves
the catalogs. docs/protocol-iceberg.md has the table.
"""
