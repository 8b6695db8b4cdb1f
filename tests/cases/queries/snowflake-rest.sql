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
-- lakeload policy DESTINATION --only trust \
--   --principal '<STORAGE_AWS_IAM_USER_ARN>,external-id=env:VOLUME_EXTERNAL_ID'
DESC EXTERNAL VOLUME lakeload_my_data_lake_volume;

-- a catalog integration
-- <CLIENT_ID> and <CLIENT_SECRET> are the two halves of {file:
-- /run/secrets/rest}.
-- Snowflake cannot send the headers that `headers` sets.
CREATE CATALOG INTEGRATION IF NOT EXISTS lakeload_my_data_lake_catalog
  CATALOG_SOURCE = ICEBERG_REST
  TABLE_FORMAT = ICEBERG
  REST_CONFIG = (
    CATALOG_URI = 'https://catalog.example.com/iceberg'
    CATALOG_NAME = 'ware''house'
  )
  REST_AUTHENTICATION = (
    TYPE = OAUTH
    OAUTH_TOKEN_URI = 'https://login.example.com/token'
    OAUTH_CLIENT_ID = '<CLIENT_ID>'
    OAUTH_CLIENT_SECRET = '<CLIENT_SECRET>'
    OAUTH_ALLOWED_SCOPES = ('catalog')
  )
  ENABLED = TRUE;

-- check both
-- The last one lists the tables. For Open Catalog,
-- SYSTEM$LIST_NAMESPACES_FROM_CATALOG may be empty although there are
-- namespaces.
SELECT SYSTEM$VERIFY_EXTERNAL_VOLUME('lakeload_my_data_lake_volume');
SELECT SYSTEM$VERIFY_CATALOG_INTEGRATION('lakeload_my_data_lake_catalog');
SELECT SYSTEM$LIST_ICEBERG_TABLES_FROM_CATALOG('lakeload_my_data_lake_catalog');
