"""Parquet files: the columns that their footers name, and the rows as Arrow reads them."""
