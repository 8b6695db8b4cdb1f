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

-- supaflow_shop.orders: the rows of one job
-- The partition key `lakeload_partition` is the job's id: no other files are
-- read. `lakeload runs` lists the ids.
SELECT *
FROM "supaflow_shop"."orders"
WHERE lakeload_partition = '<JOB_ID>';
