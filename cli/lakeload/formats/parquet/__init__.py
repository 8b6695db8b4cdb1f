"""Tables of Parquet files, in the command line: inspection, plan and table operations."""
