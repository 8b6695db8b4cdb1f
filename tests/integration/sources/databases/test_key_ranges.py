"""Views and queries of PostgreSQL in ranges of a key. No Spark: rows come as splits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from lakeload_jobs.contract.spec import JdbcInput
from lakeload_jobs.sources.databases.engines.postgres import catalog as product
from lakeload_jobs.sources.databases.engines.postgres import snapshot as product_snapshot
from lakeload_jobs.sources.databases.engines.postgres.snapshot import ByKey
from lakeload_jobs.sources.databases.engines.postgres.sql import literal
from tests.integration.sources.databases.conftest import Database
from tests.integration.sources.databases.test_postgres_relations import opened, snapshot_of
from tests.servers.postgres import PASSWORD, USER

_ROWS = 3000


@pytest.fixture(autouse=True)
def small_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Views of some kilobytes are split."""
    monkeypatch.setattr(product_snapshot, "_PART_BYTES", 8192)


def counts_and_rows(given: JdbcInput, *key: str, **changes: Any) -> tuple[tuple[int, ...], Any]:
    """Return how many rows each split has, and the column `n` of all rows."""
    with opened(given, key, on_bad_value="NULL", **changes) as rows:
        assert rows.splits is not None
        batches = [batch for part in rows.splits.parts for batch in rows.splits.read(part)]
        return rows.splits.counts or (), [n for batch in batches for n in batch["n"].to_pylist()]


_KEYS = {
    "int2": ("n % 100 - 50", ["-32768", "32767", "NULL"]),
    "int4": ("-n * 3", ["-2147483648", "2147483647", "0"]),
    "int8": ("n::int8 * 1000000007", ["-9223372036854775808", "9223372036854775807", "NULL"]),
    "numeric": ("n / 7.0", ["'NaN'", "'Infinity'", "'-Infinity'", "1e30", "-1e30", "NULL"]),
    "date": ("date '2024-01-01' + n", ["'infinity'", "'-infinity'", "'4000-01-01 BC'", "NULL"]),
    "timestamp": (
        "'1970-01-01'::timestamp + n * interval '1 h'",
        ["'infinity'", "'-infinity'", "'9999-12-31 23:59:59.999999'", "'20000-01-01'", "NULL"],
    ),
    "timestamptz": (
        "'2024-01-01 00:00+02'::timestamptz + n * interval '1 h'",
        ["'infinity'", "'-infinity'", "'0001-01-01 00:00+14'", "NULL"],
    ),
    "uuid": ("md5(n::text)::uuid", ["repeat('0', 32)::uuid", "repeat('f', 32)::uuid", "NULL"]),
    "a_domain": ("n", ["0", "NULL"]),
}
"""Types of keys: the values of most rows, and those of rows at an end."""


def test_ranges_of_each_kind_of_key_have_every_row_once(database: Database) -> None:
    database.run("CREATE DOMAIN a_domain AS int")
    found = {}
    for kind, (value, ends) in _KEYS.items():
        extremes = ", ".join(f"({-n}, {end})" for n, end in enumerate(ends, 1))
        database.run(
            f'CREATE TABLE of_{kind} (n int, "the key" {kind}, more text DEFAULT'
            " repeat('x', 99));"
            f"INSERT INTO of_{kind} SELECT n, {value} FROM generate_series(1, {_ROWS}) n;"
            f"INSERT INTO of_{kind} VALUES {extremes};"
            f'CREATE INDEX i_{kind} ON of_{kind} ("the key"); CLUSTER of_{kind} USING i_{kind};'
            f"ANALYZE of_{kind}; CREATE VIEW {kind}_view AS SELECT * FROM of_{kind}"
        )
        counts, rows = counts_and_rows(replace(database.input, table=f"{kind}_view"), "the key")
        found[kind] = len(counts)
        assert sorted(rows) == [*range(-len(ends), 0), *range(1, _ROWS + 1)], kind
        assert max(counts) < _ROWS / 2, (kind, counts)
    assert found == dict.fromkeys(_KEYS, 3)


@pytest.mark.parametrize(
    ("values", "parts"),
    [("7", 1), ("NULL::int", 1), ("CASE WHEN n % 2 = 0 THEN 1 END", 1), ("n % 2", 2)],
)
def test_keys_of_few_values_are_ranges_of_few_rows_or_one(
    database: Database, values: str, parts: int
) -> None:
    database.run(
        "CREATE TABLE t (n int, key int, more text DEFAULT repeat('x', 99));"
        f"INSERT INTO t SELECT n, {values} FROM generate_series(1, {_ROWS}) n;"
        "CREATE INDEX i ON t (key); CLUSTER t USING i; ANALYZE t; CREATE VIEW v AS SELECT * FROM t"
    )

    counts, rows = counts_and_rows(replace(database.input, table="v"), "key")

    assert len(counts) == parts
    assert sorted(rows) == list(range(1, _ROWS + 1))


_TABLES = f"""
CREATE TABLE t (n int PRIMARY KEY, b int, more text DEFAULT repeat('x', 99));
INSERT INTO t SELECT n, n % 10 FROM generate_series(1, {_ROWS}) n;
CREATE TABLE names (b int PRIMARY KEY, name text);
INSERT INTO names SELECT b, 'n' || b FROM generate_series(0, 9) b;
CREATE EXTENSION postgres_fdw;
CREATE FUNCTION numbers() RETURNS SETOF t LANGUAGE sql AS 'SELECT * FROM t';
ANALYZE;
"""
_QUERIES = {
    "SELECT * FROM t": 3,
    "SELECT t.n, t.more, name FROM t JOIN names USING (b) WHERE name <> 'n3'": 3,
    "SELECT n, more FROM t WHERE n <= 1500 UNION ALL SELECT n, more FROM t WHERE n > 1500": 3,
    "SELECT n, more, count(*) FROM t GROUP BY n": 3,
    "SELECT n::numeric::int AS n, more FROM t": 1,
    "SELECT row_number() OVER () AS n, more FROM t": 1,
    "SELECT n, more, row_number() OVER (PARTITION BY n) FROM t": 1,
    "SELECT * FROM t LIMIT 2900": 1,
    "SELECT DISTINCT ON (n) * FROM t": 1,
    "SELECT n, more FROM t UNION ALL SELECT row_number() OVER () + 3000, more FROM names, t": 1,
    "SELECT * FROM far": 1,
    "SELECT * FROM t UNION ALL SELECT * FROM far": 1,
    "SELECT * FROM numbers()": 1,
    "SELECT * FROM t TABLESAMPLE SYSTEM (100)": 1,
    "WITH c AS MATERIALIZED (SELECT * FROM t) SELECT * FROM c": 1,
}
"""In how many ranges of `n` queries are read."""


def test_what_may_differ_between_sessions_or_costs_more_in_ranges_is_read_by_one(
    database: Database,
) -> None:
    database.run(
        f"{_TABLES} CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw OPTIONS ("
        f"host '127.0.0.1', port '{database.input.port}', dbname '{database.input.name}');"
        f" CREATE USER MAPPING FOR {USER} SERVER other OPTIONS (user '{USER}', password"
        f" {literal(PASSWORD)}); CREATE FOREIGN TABLE far (n int, b int, more text)"
        " SERVER other OPTIONS (table_name 't')"
    )

    found = {}
    for query in _QUERIES:
        given = replace(database.input, schema="", table="", query=query)
        found[query] = len(counts_and_rows(given, "n")[0])

    assert found == _QUERIES


def test_without_a_key_without_rights_on_it_and_for_few_rows_one_session_reads(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.run(f"{_TABLES} CREATE VIEW v AS SELECT * FROM t")
    given = replace(database.input, table="v")

    assert len(counts_and_rows(given)[0]) == 1
    assert len(counts_and_rows(given, "more")[0]) == 1
    assert len(counts_and_rows(replace(given, max_connections=2), "n")[0]) == 1
    assert len(counts_and_rows(replace(given, max_connections=3), "n")[0]) == 2
    # Servers before PostgreSQL 14 do not read ranges of pages.
    monkeypatch.setattr(product_snapshot, "_TID_RANGES", 10**9)
    assert len(counts_and_rows(replace(given, table="t"), "n")[0]) == 3
    monkeypatch.setattr(product_snapshot, "_PART_BYTES", 1 << 20)
    assert len(counts_and_rows(given, "n")[0]) == 1


def test_ranges_of_an_incremental_load_have_the_rows_of_its_window(database: Database) -> None:
    database.run(f"{_TABLES} CREATE VIEW v AS SELECT * FROM t")
    given = replace(database.input, table="v")

    with opened(given, ("n",)) as rows:
        snapshot, read = snapshot_of(rows), cast("Any", rows.splits.read)
        by_key = ByKey(
            product.columns(snapshot.connection, read.relation, given)[:1], read.selected
        )
        parts = snapshot.parts(read.relation, 3, '"n" > 1000 AND "n" <= 2500', by_key)
        found = [n for part in parts for batch in read(part) for n in batch["n"].to_pylist()]

    assert len(parts) == 3
    assert sorted(found) == list(range(1001, 2501))
