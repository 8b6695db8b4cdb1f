"""The write path of Iceberg tables: stage on a branch, publish."""
