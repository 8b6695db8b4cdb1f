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
  SCOPE 's3://my-data-lake'
);

-- the catalog
-- For DuckDB 1.4 and later; `SHOW ALL TABLES` lists them. DuckDB calls its
-- support of AWS Glue experimental.
INSTALL iceberg;
LOAD iceberg;
ATTACH '123456789012' AS "lake" (
  TYPE iceberg,
  ENDPOINT 'glue.eu-central-1.amazonaws.com/iceberg',
  AUTHORIZATION_TYPE 'sigv4',
  SECRET lakeload
);

-- supaflow_shop.orders: the rows of the latest sync
-- The next query lists the job ids; write one there to see an earlier sync.
SELECT *
FROM "lake"."supaflow_shop"."orders"
WHERE _supa_job_id = (
  SELECT max_by(_supa_job_id, _supa_synced)
  FROM "lake"."supaflow_shop"."orders"
);

-- supaflow_shop.orders: how many rows each job brought
-- A job that brought no row has none here.
SELECT _supa_job_id, count(*) AS row_count, min(_supa_synced) AS synced
FROM "lake"."supaflow_shop"."orders"
GROUP BY _supa_job_id
ORDER BY synced DESC;

-- supaflow_shop.orders: the rows of one job
-- `lakeload runs` and the query above list the ids.
SELECT *
FROM "lake"."supaflow_shop"."orders"
WHERE _supa_job_id = '<JOB_ID>';

-- supaflow_shop.orders: the newest version of each row
-- `_supa_id` stands for the primary key (id): one row for each key, and none
-- for a key whose newest row is deleted.
SELECT *
FROM (
  SELECT *, row_number() OVER (
    PARTITION BY _supa_id ORDER BY _supa_synced DESC, _supa_index DESC
  ) AS age
  FROM "lake"."supaflow_shop"."orders"
) AS versions
WHERE age = 1
  AND NOT _supa_deleted;

-- supaflow_shop.orders: the loads since a time
-- Iceberg stores the least and greatest value of each file and reads only the
-- files it needs.
SELECT *
FROM "lake"."supaflow_shop"."orders"
WHERE _supa_synced >= TIMESTAMPTZ '2026-11-20 14:30:00+00';

-- supaflow_shop.orders: its snapshots
-- Each load is one snapshot, for as long as snapshots are kept. `lakeload runs
-- -v` shows which job made one. Some may be of loads that are staged or
-- abandoned before they were published.
SELECT snapshot_id, timestamp_ms
FROM iceberg_snapshots("lake"."supaflow_shop"."orders")
ORDER BY timestamp_ms DESC;

-- supaflow_shop.orders: as it was at a time
-- A time before the first snapshot, or before the oldest that is kept, is an
-- error.
SELECT *
FROM "lake"."supaflow_shop"."orders" AT (TIMESTAMP => TIMESTAMP '2026-11-20 14:30:00');

-- supaflow_shop.orders: as one snapshot left it
-- Replace the number by a `snapshot_id` of the query above.
SELECT *
FROM "lake"."supaflow_shop"."orders" AT (VERSION => 1234567890123456789);
