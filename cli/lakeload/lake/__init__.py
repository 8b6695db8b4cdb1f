"""A lake on this machine: an S3 store and an Iceberg catalog that stay, for trying."""
