-- what to set up
-- Nothing: Athena (engine version 3) reads the tables of AWS Glue as they are.
-- Who queries needs the policies of `lakeload policy --read-only` and, where
-- Lake Formation guards the catalog, the grants of `--for lake-formation
-- --read-only`.
-- Athena documents format version 2 alone, and this destination makes tables
-- of version 3: try it before relying on it.

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
-- `lakeload runs` and the query above list the ids. Rows that a later job
-- replaced are that job's.
SELECT *
FROM "supaflow_shop"."orders"
WHERE _supa_job_id = '<JOB_ID>';

-- supaflow_shop.orders: the rows that are not deleted
-- `deleted_when` marks rows and the table keeps them.
SELECT *
FROM "supaflow_shop"."orders"
WHERE NOT _supa_deleted;

-- supaflow_shop.orders: the loads since a time
-- Iceberg stores the least and greatest value of each file and reads only the
-- files it needs.
SELECT *
FROM "supaflow_shop"."orders"
WHERE _supa_synced >= TIMESTAMP '2026-11-20 14:30:00 UTC';

-- supaflow_shop.orders: its snapshots, and the jobs that made them
-- Each load is one snapshot, for as long as snapshots are kept. Those without
-- a job are not of lakeload's loads: maintenance, or another writer.
SELECT snapshot_id, made_current_at, operation,
  element_at(summary, 'lakeload.job-id') AS job_id,
  element_at(summary, 'lakeload.rows') AS row_count
FROM "supaflow_shop"."orders$history"
JOIN "supaflow_shop"."orders$snapshots" USING (snapshot_id)
WHERE is_current_ancestor
ORDER BY made_current_at DESC;

-- supaflow_shop.orders: as it was at a time
-- A time before the first snapshot, or before the oldest that is kept, is an
-- error.
SELECT *
FROM "supaflow_shop"."orders" FOR TIMESTAMP AS OF TIMESTAMP '2026-11-20 14:30:00 UTC';

-- supaflow_shop.orders: as one snapshot left it
-- Replace the number by a `snapshot_id` of the query above.
SELECT *
FROM "supaflow_shop"."orders" FOR VERSION AS OF 1234567890123456789;

-- Shop.visits: the rows that are not deleted
-- `deleted_when` marks rows and the table keeps them.
SELECT *
FROM "Shop"."visits"
WHERE NOT _supa_deleted;

-- Shop.visits: its snapshots, and the jobs that made them
-- Each load is one snapshot, for as long as snapshots are kept. Those without
-- a job are not of lakeload's loads: maintenance, or another writer.
SELECT snapshot_id, made_current_at, operation,
  element_at(summary, 'lakeload.job-id') AS job_id,
  element_at(summary, 'lakeload.rows') AS row_count
FROM "Shop"."visits$history"
JOIN "Shop"."visits$snapshots" USING (snapshot_id)
WHERE is_current_ancestor
ORDER BY made_current_at DESC;

-- Shop.visits: as it was at a time
-- A time before the first snapshot, or before the oldest that is kept, is an
-- error.
SELECT *
FROM "Shop"."visits" FOR TIMESTAMP AS OF TIMESTAMP '2026-11-20 14:30:00 UTC';

-- Shop.visits: as one snapshot left it
-- Replace the number by a `snapshot_id` of the query above.
SELECT *
FROM "Shop"."visits" FOR VERSION AS OF 1234567890123456789;
