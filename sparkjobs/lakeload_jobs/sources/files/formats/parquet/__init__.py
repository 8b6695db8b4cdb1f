"""Parquet files."""
