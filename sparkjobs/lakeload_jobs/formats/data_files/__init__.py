"""Data files: rows encoded as Parquet by tasks, and uploaded without being visible yet."""
