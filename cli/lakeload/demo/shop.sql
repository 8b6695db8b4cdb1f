-- The demo's shop in PostgreSQL, each part by its name.

-- monday
create table customers (id int primary key, name text not null, since date not null);
create table orders (
  id bigint primary key,
  customer int not null references customers,
  amount numeric(12,2) not null,
  tags text[],
  details jsonb,
  changed_at timestamptz not null default clock_timestamp()
);
create index on orders (changed_at);
insert into customers select n, 'Customer ' || n, date '2020-01-01' + n from generate_series(1, 200) n;
insert into orders (id, customer, amount, tags, details)
  select n, 1 + n % 200, n * 1.25, array['☕', 'no. ' || n], jsonb_build_object('gift', n % 9 = 0)
  from generate_series(1, 5000) n;
grant select on customers, orders to loader;

-- tuesday
update orders set amount = amount + 1, changed_at = clock_timestamp() where id <= 300;
insert into orders (id, customer, amount)
  select n, 1 + n % 200, n * 1.25 from generate_series(5001, 6000) n;
delete from orders where id between 301 and 400;
