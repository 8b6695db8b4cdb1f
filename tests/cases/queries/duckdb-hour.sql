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

-- supaflow_shop.orders: a view of its files
-- Files become visible when their load is committed, so the view shows whole
-- loads, but for the moment in which the files of one load appear one after
-- the other.
CREATE SCHEMA IF NOT EXISTS "supaflow_shop";
CREATE OR REPLACE VIEW "supaflow_shop"."orders" AS
SELECT *
FROM read_parquet(
  's3://my-data-lake/data/production/supaflow_shop/orders/**/*.gzip.parquet',
  union_by_name = true
);

-- supaflow_shop.orders: its columns
-- Names and types as they are in the files; a column that a file lacks is null
-- there.
DESCRIBE "supaflow_shop"."orders";

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

-- supaflow_shop.orders: the files of one partition
-- The folder is the UTC time of the load. No others are listed.
SELECT *
FROM read_parquet(
  's3://my-data-lake/data/production/supaflow_shop/orders/2026/11/21/14/*.gzip.parquet',
  union_by_name = true
);
