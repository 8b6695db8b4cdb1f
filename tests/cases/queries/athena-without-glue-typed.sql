-- Shop.orders: a database for Athena
-- This destination does not keep AWS Glue up to date (`update_glue_catalog`),
-- so the table has to be made by hand, and again when its columns change.
CREATE DATABASE IF NOT EXISTS `shop`;

-- Shop.orders: a table for Athena
-- The columns are those of `columns.include`, with the types of
-- `columns.types`.
-- Each query has to name its jobs: `WHERE lakeload_partition IN (…)`.
CREATE EXTERNAL TABLE IF NOT EXISTS `shop`.`orders` (
  `order_id` bigint,
  `grosse` decimal(9,2),
  `tags` string,
  `_supa_synced` timestamp,
  `_supa_deleted` boolean,
  `_supa_index` bigint,
  `_supa_id` string,
  `_supa_job_id` string
)
PARTITIONED BY (`lakeload_partition` string)
STORED AS PARQUET
LOCATION 's3://my-data-lake/Shop/orders/'
TBLPROPERTIES (
  'classification' = 'parquet',
  'projection.enabled' = 'true',
  'storage.location.template' = 's3://my-data-lake/Shop/orders/${lakeload_partition}/',
  'projection.lakeload_partition.type' = 'injected'
);

-- shop.orders: how many rows each job brought
-- A job that brought no row has none here.
-- Name every job that is to be looked at.
SELECT _supa_job_id, count(*) AS row_count, min(_supa_synced) AS synced
FROM "shop"."orders"
WHERE lakeload_partition IN ('<JOB_ID>')
GROUP BY _supa_job_id
ORDER BY synced DESC;

-- shop.orders: the newest version of each row
-- `_supa_id` stands for the primary key (id): one row for each key, and none
-- for a key whose newest row is deleted.
-- Name every job that is to be looked at.
SELECT *
FROM (
  SELECT *, row_number() OVER (
    PARTITION BY _supa_id ORDER BY _supa_synced DESC, _supa_index DESC
  ) AS age
  FROM "shop"."orders"
  WHERE lakeload_partition IN ('<JOB_ID>')
) AS versions
WHERE age = 1
  AND NOT _supa_deleted;

-- shop.orders: the rows of one job
-- The partition key `lakeload_partition` is the job's id: no other files are
-- read. `lakeload runs` lists the ids.
SELECT *
FROM "shop"."orders"
WHERE lakeload_partition = '<JOB_ID>';
