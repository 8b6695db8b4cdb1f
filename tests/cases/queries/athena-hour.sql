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

-- supaflow_shop.orders: the loads of one day
-- `lakeload_partition` is text, the UTC time of the load. Name it whenever you
-- can: Athena bills what it reads, and `_supa_synced` alone makes it read
-- every file.
SELECT *
FROM "supaflow_shop"."orders"
WHERE lakeload_partition BETWEEN '2026/11/21/00' AND '2026/11/21/23';

-- supaflow_shop.visits: the rows of the latest sync
-- The next query lists the job ids; write one there to see an earlier sync.
SELECT *
FROM "supaflow_shop"."visits"
WHERE _supa_job_id = (
  SELECT max_by(_supa_job_id, _supa_synced)
  FROM "supaflow_shop"."visits"
);

-- supaflow_shop.visits: how many rows each job brought
-- A job that brought no row has none here.
SELECT _supa_job_id, count(*) AS row_count, min(_supa_synced) AS synced
FROM "supaflow_shop"."visits"
GROUP BY _supa_job_id
ORDER BY synced DESC;

-- supaflow_shop.visits: the newest version of each row
-- The table has no `primary_key`, so `_supa_id` stands for the whole row: this
-- takes away rows that were loaded twice, and cannot distinguish a new version
-- of a row from a new row.
SELECT *
FROM (
  SELECT *, row_number() OVER (
    PARTITION BY _supa_id ORDER BY _supa_synced DESC, _supa_index DESC
  ) AS age
  FROM "supaflow_shop"."visits"
) AS versions
WHERE age = 1
  AND NOT _supa_deleted;

-- supaflow_shop.visits: the loads of one day
-- `lakeload_partition` is text, the UTC time of the load. Name it whenever you
-- can: Athena bills what it reads, and `_supa_synced` alone makes it read
-- every file.
SELECT *
FROM "supaflow_shop"."visits"
WHERE lakeload_partition BETWEEN '2026/11/21/00' AND '2026/11/21/23';
