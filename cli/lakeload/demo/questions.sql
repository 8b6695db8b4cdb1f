-- What the demo asks DuckDB, each by its name.

-- best_sellers
select Artikel, Grosse as size, count(*) as orders, sum(Prix_) as revenue
from orders
group by all order by revenue desc limit 4

-- cities
select address.city as city, count(*) as visits, max(seen) as last_seen
from visits where list_contains(tags, '☕')
group by all order by visits desc limit 3

-- rows_of_each_job
with loaded as (
  select 'orders' as "table", _supa_job_id, _supa_index from orders
  union all select 'visits', _supa_job_id, _supa_index from visits
  union all select 'payments', _supa_job_id, _supa_index from payments
)
select _supa_job_id as job, "table", count(*) as rows,
       max(_supa_index) as last_index
from loaded group by all order by all

-- orders_of_each_job
select _supa_job_id as job, count(*) as orders, sum(prix_) as revenue,
       count(*) filter (notiz = 'changed on Tuesday') as changed,
       count(gutschein) as coupons
from orders group by all order by all

-- now_and_monday
select 'now' as "as of", count(*) as orders,
       count(*) filter (notiz = 'changed on Tuesday') as changed
from orders
union all
select 'monday', count(*), count(*) filter (notiz = 'changed on Tuesday')
from orders_at_mondays_snapshot

-- payments_of_each_job
select _supa_job_id as job, count(*) as rows, max(_supa_index) as last_index,
       typeof(any_value(amount)) as amount
from payments group by all order by all

-- database_orders_of_each_job
select _supa_job_id as job, count(*) as orders, sum(amount) as revenue,
       count(*) filter (json_extract(details, '$.gift') = 'true') as gifts
from orders group by all order by all
