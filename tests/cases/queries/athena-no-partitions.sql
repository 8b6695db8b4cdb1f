-- select.order: the rows of the latest sync
-- The next query lists the job ids; write one there to see an earlier sync.
SELECT *
FROM "select"."order"
WHERE _supa_job_id = (
  SELECT max_by(_supa_job_id, _supa_synced)
  FROM "select"."order"
);

-- select.order: how many rows each job brought
-- A job that brought no row has none here.
SELECT _supa_job_id, count(*) AS row_count, min(_supa_synced) AS synced
FROM "select"."order"
GROUP BY _supa_job_id
ORDER BY synced DESC;

-- select.order: the newest version of each row
-- `_supa_id` stands for the primary key (id): one row for each key, and none
-- for a key whose newest row is deleted.
SELECT *
FROM (
  SELECT *, row_number() OVER (
    PARTITION BY _supa_id ORDER BY _supa_synced DESC, _supa_index DESC
  ) AS age
  FROM "select"."order"
) AS versions
WHERE age = 1
  AND NOT _supa_deleted;

-- select.order: the loads since a time
-- `_supa_synced` is UTC. The table has no partitions.
SELECT *
FROM "select"."order"
WHERE _supa_synced >= TIMESTAMP '2026-11-20 14:30:00';
