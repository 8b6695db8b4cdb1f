# register the location
# Query engines then get their credentials for this location from Lake
# Formation. With hybrid access, everything that IAM allows today keeps working
# for principals that are not opted in. Leave this out if the location or one
# above it is registered already. Run it, and the grants, as a data lake
# administrator.
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

# grant CREATE_DATABASE
# For arn:aws:iam::123456789012:role/lake: to make the databases; it has every
# right on the databases and tables it makes.
resource "aws_lakeformation_permissions" "lake_catalog" {
  principal   = "arn:aws:iam::123456789012:role/lake"
  permissions = ["CREATE_DATABASE"]

  catalog_resource = true
}
