-- supaflow_shop.orders: a database for Athena
-- This destination does not keep AWS Glue up to date (`update_glue_catalog`),
-- so the table has to be made by hand, and again when its columns change.
CREATE DATABASE IF NOT EXISTS `supaflow_shop`;

-- supaflow_shop.orders: a table for Athena
-- Write the columns of the source for `<COLUMN>` first: only those with a type
-- in `columns.types` of `orders` are known here. The DESCRIBE statement of
-- `--for duckdb` lists those of the files; Athena reads them by name, in lower
-- case.
-- The range holds three years; begin it with the first load for quicker
-- planning.
CREATE EXTERNAL TABLE IF NOT EXISTS `supaflow_shop`.`orders` (
  `<COLUMN>` string,
  `_supa_synced` timestamp,
  `_supa_deleted` boolean,
  `_supa_index` bigint,
  `_supa_id` string,
  `_supa_job_id` string
)
PARTITIONED BY (`lakeload_partition` string)
STORED AS PARQUET
LOCATION 's3://my-data-lake/data/production/supaflow_shop/orders/'
TBLPROPERTIES (
  'classification' = 'parquet',
  'projection.enabled' = 'true',
  'storage.location.template' = 's3://my-data-lake/data/production/supaflow_shop/orders/${lakeload_partition}/',
  'projection.lakeload_partition.type' = 'date',
  'projection.lakeload_partition.format' = 'yyyy/MM/dd/HH',
  'projection.lakeload_partition.interval' = '1',
  'projection.lakeload_partition.interval.unit' = 'HOURS',
  'projection.lakeload_partition.range' = 'NOW-3YEARS,NOW'
);

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
