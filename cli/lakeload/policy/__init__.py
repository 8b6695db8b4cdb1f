"""What to allow, written from a destination: IAM, KMS, Lake Formation, Snowflake and Athena. Pure."""
