-- The exports of a small shop, for DuckDB: made up, and as messy as exports are.
set threads = 1;

create macro pick(choices) as choices[1 + floor(random() * len(choices))::int];

create macro amount() as ((1 + floor(random() * 9999998)) / 100)::decimal(12, 2);

create macro instant(day) as day::timestamp + to_microseconds(floor(random() * 86400000000)::bigint);

create macro first_order(day) as strftime(day, '%y%m%d')::bigint * 10000;

create macro customer() as
  pick(['Zoë', 'José', 'Łukasz', 'Anaïs', 'Bjørn', 'Ngọc', 'O''Neil', 'Ольга', '美咲', 'Ada']);

-- `Größe` and `Grosse` become the same name once accents are spelled out, and so do the two first
-- names; `Prix €` and `Bestellt am` hold characters that no catalog takes.
create macro orders(day, rows) as table
with made as materialized (
  select
    first_order(day) + number as id,
    customer() as name,
    pick(['S', 'M', 'L', 'XL']) as size,
    pick(['yes', 'no']) as large,
    pick(['Café crème', 'Sign 12" × 8"', 'Söckchen, bunt', 'Piñata', 'Maßband 2 m', 'Tea']) as article,
    if(random() > 0.02, amount(), null) as price,
    instant(day) as ordered,
    pick([0, 120, 330]) as minutes_east,
    pick([
      null, null, null, 'ring twice 🔔', 'gift 🎁, no invoice', 'says: "it''s fine"',
      'call' || chr(9) || 'first', 'très urgent'
    ]) as note
  from range(rows) numbers(number)
)
select
  id,
  name as "Prénom",
  lower(name) as "prenom",
  size as "Größe",
  large as "Grosse",
  article as "Artikel",
  price as "Prix €",
  strftime(ordered + to_minutes(minutes_east), '%Y-%m-%dT%H:%M:%S.%f')
    || format('+{:02d}:{:02d}', minutes_east // 60, minutes_east % 60) as "Bestellt am",
  note as "Notiz"
from made;

-- `seen` is local time, as many applications write it: no zone.
create macro visits(day, rows) as table
select
  number as visit,
  if(random() > 0.05, customer(), null) as "naïve name",
  {
    city: pick(['Zürich', 'Malmö', 'São Paulo', 'Kraków', 'Reykjavík', '東京']),
    geo: {lat: round(random() * 120 - 60, 4), lon: null::double}
  } as address,
  list_filter(['vip', 'b2b', '☕', 'returns'], lambda tag: random() > 0.6) as tags,
  instant(day)::varchar as seen
from range(rows) numbers(number);

create macro payments(day, rows) as table
with made as materialized (
  select first_order(day) + number as id, amount() as amount, instant(day) as paid
  from range(rows) numbers(number)
)
select
  id as "order id",
  amount,
  paid at time zone 'UTC' as "paid at",
  paid as booked,
  paid::date as "value date",
  pick([true, false, null]) as refunded,
  unhex(left(md5(random()::varchar), 16)) as receipt
from made;

-- The first export of orders that change: none is cancelled.
create macro first_orders(day, rows) as table
select *, false as storniert from orders(day, rows);

create macro larger_payments(day, rows) as table
select * replace (amount::decimal(14, 2) as amount) from payments(day, rows);

-- What has changed in the export `file` of the day before: changed, cancelled and new orders.
create macro changed_orders(file, day, changed, cancelled, added, note) as table
with before as materialized (
  select *, row_number() over () as number from read_csv(file, all_varchar = true)
)
select
  * exclude (number) replace (
    if(number <= changed, note, "Notiz") as "Notiz",
    if(number <= changed, 'false', 'true') as storniert
  ),
  null as "Gutschein"
from before
where number <= changed + cancelled
union all
select columns(*)::varchar, 'false', pick([null, null, 'FRÜHLING', '🎁-10'])
from orders(day, added);
