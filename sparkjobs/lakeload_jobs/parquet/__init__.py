"""The Parquet write path."""
