"""The write path of Parquet tables: encode, stage, commit."""
