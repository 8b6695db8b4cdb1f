-- supaflow_shop.orders: the newest version of each row
-- `_supa_id` stands for the primary key (id): one row for each key.
SELECT *
FROM (
  SELECT *, row_number() OVER (
    PARTITION BY _supa_id ORDER BY _supa_synced DESC
  ) AS age
  FROM "supaflow_shop"."orders"
) AS versions
WHERE age = 1;

-- supaflow_shop.orders: the loads of one day
-- `lakeload_partition` is text, the UTC time of the load. Name it whenever you
-- can: Athena bills what it reads, and `_supa_synced` alone makes it read
-- every file.
SELECT *
FROM "supaflow_shop"."orders"
WHERE lakeload_partition BETWEEN '2026/11/21/00' AND '2026/11/21/23';
