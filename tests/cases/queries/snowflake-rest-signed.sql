-- an external volume
-- Replace <VOLUME_EXTERNAL_ID> by a secret of your choice, and
-- <READER_ROLE_ARN> by a role that reads: `lakeload policy --read-only` writes
-- its policies. The volume and Snowflake's account should be in
-- `eu-central-1`, as the bucket is.
-- The catalog decides where its tables lie: if that is elsewhere in the
-- bucket, write that place as STORAGE_BASE_URL.
CREATE EXTERNAL VOLUME IF NOT EXISTS lakeload_my_data_lake_volume
  STORAGE_LOCATIONS = (
    (
      NAME = 'my_data_lake'
      STORAGE_PROVIDER = 'S3'
      STORAGE_BASE_URL = 's3://my-data-lake/data/production/'
      STORAGE_AWS_ROLE_ARN = '<READER_ROLE_ARN>'
      STORAGE_AWS_EXTERNAL_ID = '<VOLUME_EXTERNAL_ID>'
    )
  )
  ALLOW_WRITES = FALSE;

-- the principal that reads the bucket
-- STORAGE_AWS_IAM_USER_ARN and STORAGE_AWS_EXTERNAL_ID in its output name a
-- principal of Snowflake's compute. The trust policy of the role that reads
-- has to name it:
-- {
--   "Version": "2012-10-17",
--   "Statement": [
--     {
--       "Sid": "AssumeRole",
--       "Effect": "Allow",
--       "Principal": {
--         "AWS": "<STORAGE_AWS_IAM_USER_ARN>"
--       },
--       "Action": "sts:AssumeRole",
--       "Condition": {
--         "StringEquals": {
--           "sts:ExternalId": "<VOLUME_EXTERNAL_ID>"
--         }
--       }
--     }
--   ]
-- }
DESC EXTERNAL VOLUME lakeload_my_data_lake_volume;

-- a catalog integration
-- Replace <CATALOG_EXTERNAL_ID> by a secret of your choice.
CREATE CATALOG INTEGRATION IF NOT EXISTS lakeload_my_data_lake_catalog
  CATALOG_SOURCE = ICEBERG_REST
  TABLE_FORMAT = ICEBERG
  REST_CONFIG = (
    CATALOG_URI = 'https://x.execute-api.eu-central-1.amazonaws.com/prod'
    CATALOG_API_TYPE = AWS_API_GATEWAY
  )
  REST_AUTHENTICATION = (
    TYPE = SIGV4
    SIGV4_IAM_ROLE = '<READER_ROLE_ARN>'
    SIGV4_SIGNING_REGION = 'eu-west-1'
    SIGV4_EXTERNAL_ID = '<CATALOG_EXTERNAL_ID>'
  )
  ENABLED = TRUE;

-- the principal that calls the catalog
-- API_AWS_IAM_USER_ARN and API_AWS_EXTERNAL_ID in its output name the
-- principal that calls the catalog. A role has one trust policy, so name both
-- principals in it:
-- {
--   "Version": "2012-10-17",
--   "Statement": [
--     {
--       "Sid": "AssumeRole",
--       "Effect": "Allow",
--       "Principal": {
--         "AWS": "<STORAGE_AWS_IAM_USER_ARN>"
--       },
--       "Action": "sts:AssumeRole",
--       "Condition": {
--         "StringEquals": {
--           "sts:ExternalId": "<VOLUME_EXTERNAL_ID>"
--         }
--       }
--     },
--     {
--       "Sid": "AssumeRole2",
--       "Effect": "Allow",
--       "Principal": {
--         "AWS": "<API_AWS_IAM_USER_ARN>"
--       },
--       "Action": "sts:AssumeRole",
--       "Condition": {
--         "StringEquals": {
--           "sts:ExternalId": "<CATALOG_EXTERNAL_ID>"
--         }
--       }
--     }
--   ]
-- }
DESC CATALOG INTEGRATION lakeload_my_data_lake_catalog;

-- check both
-- The last one lists the tables. For Open Catalog,
-- SYSTEM$LIST_NAMESPACES_FROM_CATALOG may be empty although there are
-- namespaces.
SELECT SYSTEM$VERIFY_EXTERNAL_VOLUME('lakeload_my_data_lake_volume');
SELECT SYSTEM$VERIFY_CATALOG_INTEGRATION('lakeload_my_data_lake_catalog');
SELECT SYSTEM$LIST_ICEBERG_TABLES_FROM_CATALOG('lakeload_my_data_lake_catalog');
