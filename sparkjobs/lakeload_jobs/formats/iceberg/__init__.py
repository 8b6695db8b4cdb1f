"""Iceberg tables: staged on a branch, published in one commit."""
