-- an external volume
-- Replace <VOLUME_EXTERNAL_ID> by a secret of your choice, and
-- <READER_ROLE_ARN> by a role that reads: `lakeload policy --read-only` writes
-- its policies. The volume and Snowflake's account should be in
-- `eu-central-1`, as the bucket is.
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
-- Replace <TOKEN> by the value of {env: NESSIE_TOKEN}.
CREATE CATALOG INTEGRATION IF NOT EXISTS lakeload_my_data_lake_catalog
  CATALOG_SOURCE = ICEBERG_REST
  TABLE_FORMAT = ICEBERG
  REST_CONFIG = (
    CATALOG_URI = 'https://nessie.example.com/iceberg/main'
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

-- supaflow_shop.orders: the table in Snowflake
-- The table is read only; without quotes the names may be written in any case.
CREATE SCHEMA IF NOT EXISTS "SUPAFLOW_SHOP";
CREATE ICEBERG TABLE IF NOT EXISTS "SUPAFLOW_SHOP"."ORDERS"
  EXTERNAL_VOLUME = 'lakeload_my_data_lake_volume'
  CATALOG = 'lakeload_my_data_lake_catalog'
  CATALOG_NAMESPACE = 'supaflow_shop'
  CATALOG_TABLE_NAME = 'orders'
  AUTO_REFRESH = TRUE;

-- supaflow_shop.orders: see the latest load now
-- AUTO_REFRESH polls the catalog every 30 seconds or as
-- REFRESH_INTERVAL_SECONDS of the integration says. `ALTER ICEBERG TABLE … SET
-- AUTO_REFRESH = FALSE` leaves it to this.
ALTER ICEBERG TABLE "SUPAFLOW_SHOP"."ORDERS" REFRESH;

-- supaflow_shop.orders: the rows of the latest sync
-- The next query lists the job ids; write one there to see an earlier sync.
SELECT *
FROM "SUPAFLOW_SHOP"."ORDERS"
WHERE _supa_job_id = (
  SELECT max_by(_supa_job_id, _supa_synced)
  FROM "SUPAFLOW_SHOP"."ORDERS"
);

-- supaflow_shop.orders: how many rows each job brought
-- A job that brought no row has none here.
SELECT _supa_job_id, count(*) AS row_count, min(_supa_synced) AS synced
FROM "SUPAFLOW_SHOP"."ORDERS"
GROUP BY _supa_job_id
ORDER BY synced DESC;

-- supaflow_shop.orders: the rows of one job
-- `lakeload runs` and the query above list the ids.
SELECT *
FROM "SUPAFLOW_SHOP"."ORDERS"
WHERE _supa_job_id = '<JOB_ID>';

-- supaflow_shop.orders: the newest version of each row
-- `_supa_id` stands for the primary key (id): one row for each key, and none
-- for a key whose newest row is deleted.
SELECT *
FROM (
  SELECT *, row_number() OVER (
    PARTITION BY _supa_id ORDER BY _supa_synced DESC, _supa_index DESC
  ) AS age
  FROM "SUPAFLOW_SHOP"."ORDERS"
) AS versions
WHERE age = 1
  AND NOT _supa_deleted;

-- supaflow_shop.orders: the loads since a time
-- Iceberg stores the least and greatest value of each file and reads only the
-- files it needs.
SELECT *
FROM "SUPAFLOW_SHOP"."ORDERS"
WHERE _supa_synced >= '2026-11-20 14:30:00 +0000'::TIMESTAMP_TZ;

-- supaflow_shop.orders: as it was at a time
-- A time before the first snapshot, or before the oldest that is kept, is an
-- error.
SELECT *
FROM "SUPAFLOW_SHOP"."ORDERS" AT (TIMESTAMP => '2026-11-20 14:30:00 +0000'::TIMESTAMP_TZ);

-- supaflow_shop.orders: as one snapshot left it
-- Replace the number by a `snapshot_id` that `lakeload sync` and `lakeload
-- runs -v` show.
SELECT *
FROM "SUPAFLOW_SHOP"."ORDERS" AT (VERSION => 1234567890123456789);
