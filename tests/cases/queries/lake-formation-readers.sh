# grant DESCRIBE
# For arn:aws:iam::123456789012:user/ana: to see the database `supaflow_shop`.
# The reader's IAM policy needs lakeformation:GetDataAccess as well, and no
# right on S3.
aws lakeformation grant-permissions \
  --region eu-central-1 \
  --principal DataLakePrincipalIdentifier=arn:aws:iam::123456789012:user/ana \
  --resource '{"Database":{"Name":"supaflow_shop"}}' \
  --permissions DESCRIBE

# grant DESCRIBE, SELECT
# For arn:aws:iam::123456789012:user/ana: to read all tables of
# `supaflow_shop`, those of later loads as well.
# The reader's IAM policy needs lakeformation:GetDataAccess as well, and no
# right on S3.
aws lakeformation grant-permissions \
  --region eu-central-1 \
  --principal DataLakePrincipalIdentifier=arn:aws:iam::123456789012:user/ana \
  --resource '{"Table":{"DatabaseName":"supaflow_shop","TableWildcard":{}}}' \
  --permissions DESCRIBE SELECT
