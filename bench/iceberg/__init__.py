"""`python -m bench.iceberg`: Iceberg tables by lakeload, Spark alone, pyiceberg and dlt."""
