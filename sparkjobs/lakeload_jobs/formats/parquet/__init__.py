"""Parquet tables: files in folders, committed by a log of records."""
