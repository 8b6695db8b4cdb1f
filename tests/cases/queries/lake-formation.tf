# register the location
# Query engines then get their credentials for this location from Lake
# Formation. With hybrid access, everything that IAM allows today keeps working
# for principals that are not opted in. Leave this out if the location or one
# above it is registered already. Run it, and the grants, as a data lake
# administrator.
# The bucket is encrypted with KMS: the service-linked role has to be a user of
# the key, or register with a role of your own (`--role-arn`).
resource "aws_lakeformation_resource" "lakeload" {
  arn                     = "arn:aws:s3:::my-data-lake/data/production"
  use_service_linked_role = true
  hybrid_access_enabled   = true
}

# grant DATA_LOCATION_ACCESS
# For arn:aws:iam::123456789012:role/lake: to make databases and tables that
# lie there.
resource "aws_lakeformation_permissions" "lake_location" {
  principal   = "arn:aws:iam::123456789012:role/lake"
  permissions = ["DATA_LOCATION_ACCESS"]

  data_location {
    arn = "arn:aws:s3:::my-data-lake/data/production"
  }
}

# grant CREATE_TABLE, DESCRIBE
# For arn:aws:iam::123456789012:role/lake: to find the database `supaflow_shop`
# and make tables in it.
resource "aws_lakeformation_permissions" "lake_database_supaflow_shop" {
  principal   = "arn:aws:iam::123456789012:role/lake"
  permissions = ["CREATE_TABLE", "DESCRIBE"]

  database {
    name = "supaflow_shop"
  }
}

# grant ALTER, DESCRIBE, INSERT, SELECT
# For arn:aws:iam::123456789012:role/lake: to add columns and partitions to
# tables of `supaflow_shop` that others made.
resource "aws_lakeformation_permissions" "lake_tables_supaflow_shop" {
  principal   = "arn:aws:iam::123456789012:role/lake"
  permissions = ["ALTER", "DESCRIBE", "INSERT", "SELECT"]

  table {
    database_name = "supaflow_shop"
    wildcard      = true
  }
}
