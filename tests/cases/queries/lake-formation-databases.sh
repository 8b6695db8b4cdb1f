# register the location
# Query engines then get their credentials for this location from Lake
# Formation. With hybrid access, everything that IAM allows today keeps working
# for principals that are not opted in. Leave this out if the location or one
# above it is registered already. Run it, and the grants, as a data lake
# administrator.
aws lakeformation register-resource \
  --region eu-central-1 \
  --resource-arn arn:aws:s3:::my-data-lake/data/production \
  --use-service-linked-role \
  --hybrid-access-enabled

# grant DATA_LOCATION_ACCESS
# For arn:aws:iam::123456789012:role/lake: to make databases and tables that
# lie there.
aws lakeformation grant-permissions \
  --region eu-central-1 \
  --principal DataLakePrincipalIdentifier=arn:aws:iam::123456789012:role/lake \
  --resource '{"DataLocation":{"ResourceArn":"arn:aws:s3:::my-data-lake/data/production"}}' \
  --permissions DATA_LOCATION_ACCESS

# grant CREATE_TABLE, DESCRIBE
# For arn:aws:iam::123456789012:role/lake: to find the database `supaflow_shop`
# and make tables in it.
aws lakeformation grant-permissions \
  --region eu-central-1 \
  --principal DataLakePrincipalIdentifier=arn:aws:iam::123456789012:role/lake \
  --resource '{"Database":{"Name":"supaflow_shop"}}' \
  --permissions CREATE_TABLE DESCRIBE

# grant ALTER, DESCRIBE, DROP, INSERT, SELECT
# For arn:aws:iam::123456789012:role/lake: to add columns and partitions to
# tables of `supaflow_shop` that others made, and to drop them with `reset`.
aws lakeformation grant-permissions \
  --region eu-central-1 \
  --principal DataLakePrincipalIdentifier=arn:aws:iam::123456789012:role/lake \
  --resource '{"Table":{"DatabaseName":"supaflow_shop","TableWildcard":{}}}' \
  --permissions ALTER DESCRIBE DROP INSERT SELECT
