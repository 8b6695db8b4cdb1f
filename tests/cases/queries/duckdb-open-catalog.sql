-- the login to the catalog
-- Replace <CLIENT_ID> by the value of {env: OPEN_CATALOG_ID} and
-- <CLIENT_SECRET> by the value of {aws_secret: open-catalog}. The secret lives
-- in this session's memory. Give readers a login of their own where this one
-- may write.
INSTALL httpfs;
LOAD httpfs;
INSTALL iceberg;
LOAD iceberg;
CREATE OR REPLACE SECRET lakeload_catalog (
  TYPE iceberg,
  CLIENT_ID '<CLIENT_ID>',
  CLIENT_SECRET '<CLIENT_SECRET>',
  OAUTH2_SERVER_URI 'https://org-account.snowflakecomputing.com/polaris/api/catalog/v1/oauth/tokens',
  OAUTH2_SCOPE 'PRINCIPAL_ROLE:ALL'
);

-- the catalog
-- For DuckDB 1.4 and later; `SHOW ALL TABLES` lists them.
INSTALL iceberg;
LOAD iceberg;
ATTACH 'lake' AS "lake" (
  TYPE iceberg,
  ENDPOINT 'https://org-account.snowflakecomputing.com/polaris/api/catalog',
  SECRET lakeload_catalog
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
-- `lakeload runs` and the query above list the ids. Rows that a later job
-- replaced are that job's.
SELECT *
FROM "lake"."supaflow_shop"."orders"
WHERE _supa_job_id = '<JOB_ID>';

-- supaflow_shop.orders: the rows that are not deleted
-- `deleted_when` marks rows and the table keeps them.
SELECT *
FROM "lake"."supaflow_shop"."orders"
WHERE NOT _supa_deleted;

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

-- Shop.visits: the rows that are not deleted
-- `deleted_when` marks rows and the table keeps them.
SELECT *
FROM "lake"."Shop"."visits"
WHERE NOT _supa_deleted;

-- Shop.visits: its snapshots
-- Each load is one snapshot, for as long as snapshots are kept. `lakeload runs
-- -v` shows which job made one. Some may be of loads that are staged or
-- abandoned before they were published.
SELECT snapshot_id, timestamp_ms
FROM iceberg_snapshots("lake"."Shop"."visits")
ORDER BY timestamp_ms DESC;

-- Shop.visits: as it was at a time
-- A time before the first snapshot, or before the oldest that is kept, is an
-- error.
SELECT *
FROM "lake"."Shop"."visits" AT (TIMESTAMP => TIMESTAMP '2026-11-20 14:30:00');

-- Shop.visits: as one snapshot left it
-- Replace the number by a `snapshot_id` of the query above.
SELECT *
FROM "lake"."Shop"."visits" AT (VERSION => 1234567890123456789);
