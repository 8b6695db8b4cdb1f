-- an external volume
-- Replace <ACCESS_KEY_ID> and <SECRET_ACCESS_KEY> by keys that may read the
-- bucket. Snowflake has to reach the store over TLS.
CREATE EXTERNAL VOLUME IF NOT EXISTS lakeload_my_data_lake_volume
  STORAGE_LOCATIONS = (
    (
      NAME = 'my_data_lake'
      STORAGE_PROVIDER = 'S3COMPAT'
      STORAGE_BASE_URL = 's3compat://my-data-lake/data/production/'
      STORAGE_ENDPOINT = 'store.example.com:9443'
      CREDENTIALS = (
        AWS_KEY_ID = '<ACCESS_KEY_ID>'
        AWS_SECRET_KEY = '<SECRET_ACCESS_KEY>'
      )
    )
  )
  ALLOW_WRITES = FALSE;

-- a catalog integration
-- Replace <TOKEN> by the value of {env: T}.
CREATE CATALOG INTEGRATION IF NOT EXISTS lakeload_my_data_lake_catalog
  CATALOG_SOURCE = ICEBERG_REST
  TABLE_FORMAT = ICEBERG
  REST_CONFIG = (
    CATALOG_URI = 'https://n'
  )
  REST_AUTHENTICATION = (
    TYPE = BEARER
    BEARER_TOKEN = '<TOKEN>'
  )
  ENABLED = TRUE;

-- check both
-- The last one lists the tables. For Open Catalog,
-- SYSTEM$LIST_NAMESPACES_FROM_CATALOG may be empty although there are
-- namespaces.
SELECT SYSTEM$VERIFY_EXTERNAL_VOLUME('lakeload_my_data_lake_volume');
SELECT SYSTEM$VERIFY_CATALOG_INTEGRATION('lakeload_my_data_lake_catalog');
SELECT SYSTEM$LIST_ICEBERG_TABLES_FROM_CATALOG('lakeload_my_data_lake_catalog');
