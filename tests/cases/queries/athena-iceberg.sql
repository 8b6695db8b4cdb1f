-- what to set up
-- Nothing: Athena (engine version 3) reads the tables of AWS Glue as they are.
-- Who queries needs the policies of `lakeload policy --read-only` and, where
-- Lake Formation guards the catalog, the grants of `--for lake-formation
-- --read-only`.

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
