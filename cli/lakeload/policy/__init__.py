"""What to allow and to ask, from a destination: IAM, Lake Formation, Snowflake, Athena. Pure."""
