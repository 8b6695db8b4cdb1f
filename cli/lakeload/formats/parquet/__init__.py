"""Tables of Parquet files, as the command line sees them: inspected, planned, looked after."""
