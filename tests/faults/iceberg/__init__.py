"""The product under faults where its tables are Iceberg's: real syncs into Glue and into a REST
catalog, killed and disturbed, then compared with an oracle that knows the tables by pyiceberg
alone.

`python -m tests.faults.iceberg` runs the campaign."""
