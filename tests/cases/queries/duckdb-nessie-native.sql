-- access to the bucket
-- The credentials are those the AWS command line would use here; no secret is
-- written.
INSTALL httpfs;
LOAD httpfs;
INSTALL aws;
LOAD aws;
CREATE OR REPLACE SECRET lakeload (
  TYPE s3,
  PROVIDER credential_chain,
  REGION 'eu-central-1',
  ENDPOINT 'store.example.com',
  URL_STYLE 'vhost',
  USE_SSL true,
  SCOPE 's3://my-data-lake'
);

-- supaflow_shop.orders: a view of its current metadata file
-- DuckDB does not speak Nessie's own interface. After each load, replace
-- <METADATA_LOCATION> again by what `SELECT file FROM
-- lake.SCHEMA.TABLE.metadata_log_entries ORDER BY timestamp DESC LIMIT 1`
-- shows it in Spark.
CREATE SCHEMA IF NOT EXISTS "supaflow_shop";
CREATE OR REPLACE VIEW "supaflow_shop"."orders" AS
SELECT *
FROM iceberg_scan('<METADATA_LOCATION>');

-- supaflow_shop.orders: the rows of the latest sync
-- The next query lists the job ids; write one there to see an earlier sync.
SELECT *
FROM "supaflow_shop"."orders"
WHERE _supa_job_id = (
  SELECT max_by(_supa_job_id, _supa_synced)
  FROM "supaflow_shop"."orders"
);

-- supaflow_shop.orders: how many rows each job brought
-- A job that brought no row has none here.
SELECT _supa_job_id, count(*) AS row_count, min(_supa_synced) AS synced
FROM "supaflow_shop"."orders"
GROUP BY _supa_job_id
ORDER BY synced DESC;

-- supaflow_shop.orders: the rows of one job
-- `lakeload runs` and the query above list the ids.
SELECT *
FROM "supaflow_shop"."orders"
WHERE _supa_job_id = '<JOB_ID>';

-- supaflow_shop.orders: the newest version of each row
-- `_supa_id` stands for the primary key (id): one row for each key, and none
-- for a key whose newest row is deleted.
SELECT *
FROM (
  SELECT *, row_number() OVER (
    PARTITION BY _supa_id ORDER BY _supa_synced DESC, _supa_index DESC
  ) AS age
  FROM "supaflow_shop"."orders"
) AS versions
WHERE age = 1
  AND NOT _supa_deleted;

-- supaflow_shop.orders: the loads since a time
-- Iceberg stores the least and greatest value of each file and reads only the
-- files it needs.
SELECT *
FROM "supaflow_shop"."orders"
WHERE _supa_synced >= TIMESTAMPTZ '2026-11-20 14:30:00+00';
