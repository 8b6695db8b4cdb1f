"""Commits to Iceberg tables: metadata as JSON, manifests as Avro, one request to the catalog."""
