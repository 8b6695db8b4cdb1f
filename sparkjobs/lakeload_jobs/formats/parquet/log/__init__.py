"""The commit log of a Parquet table."""
