"""Permissions and queries of a destination: IAM, Lake Formation, Snowflake, Athena. Pure."""
