"""Tables of PostgreSQL loaded into both formats."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lakeload_jobs.contract.spec import ColumnsSpec
from lakeload_jobs.sources.databases.engines.postgres import snapshot as product_snapshot
from lakeload_jobs.sources.databases.engines.postgres.snapshot import ExportedSnapshot
from tests.integration.formats.worlds import World, load
from tests.integration.sources.databases.conftest import Database, input_of
from tests.servers.postgres import PASSWORD, Postgres, start_postgres
from tests.servers.sharing import OwnServers

ORDERS = """
CREATE TABLE orders (
  id bigint PRIMARY KEY, "Amount" numeric(12,2), note text, at timestamptz, local timestamp,
  day date, tags text[], doc jsonb, raw bytea, ok boolean, ratio real, free numeric
);
INSERT INTO orders
SELECT n, n / 100.0, CASE WHEN n % 3 = 0 THEN NULL ELSE 'note ' || n END,
       '2024-02-29 12:00:00.000001+02'::timestamptz + n * interval '1 s', '2024-02-29 12:00:00',
       '2024-02-29', ARRAY['a', n::text], jsonb_build_object('n', n), decode('00ff', 'hex'),
       n % 2 = 0, 0.5, 'NaN'
  FROM generate_series(1, 1000) n;
"""


@pytest.fixture
def small_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of some pages are split."""
    monkeypatch.setattr(product_snapshot, "_PART_BYTES", 8192)


@pytest.mark.usefixtures("small_splits")
def test_a_table_is_loaded_exactly_and_its_rows_are_numbered(
    world: World, database: Database
) -> None:
    database.run(ORDERS)

    result = load(world, database.table(world, primary_key=("id",)))

    assert result.error is None, result.error
    assert (result.status, result.rows, result.index) == ("LOADED", 1000, "dense")
    assert result.reader == "direct"
    rows = sorted(world.rows(), key=lambda row: row["id"])
    assert sorted(row["_supa_index"] for row in rows) == list(range(1, 1001))
    assert len({row["_supa_id"] for row in rows}) == 1000
    own = {name: value for name, value in rows[6].items() if not name.startswith("_supa")}
    assert own == {
        "id": 7,
        "Amount": Decimal("0.07"),
        "note": "note 7",
        "at": datetime(2024, 2, 29, 10, 0, 7, 1, UTC),
        "local": datetime(2024, 2, 29, 12),
        "day": date(2024, 2, 29),
        "tags": '["a","7"]',
        "doc": '{"n": 7}',
        "raw": b"\x00\xff",
        "ok": False,
        "ratio": 0.5,
        "free": "NaN",
    }


def test_conditions_casts_and_columns_are_those_of_every_source(
    world: World, database: Database
) -> None:
    database.run(ORDERS)
    columns = ColumnsSpec(include=("id", "free"), types={"id": "int"}, rename={"id": "number"})

    table = database.table(world, columns=columns, where="`Amount` > 9.98", deleted_when="ok")
    result = load(world, table)

    assert result.error is None, result.error
    found = sorted((row["number"], row["_supa_deleted"]) for row in world.rows())
    assert found == [(999, False), (1000, True)]


def test_bad_values_fail_with_column_key_and_value_or_become_null(
    world: World, database: Database
) -> None:
    database.run(
        "CREATE TABLE orders (a int, b text, day date, n numeric(5,2), PRIMARY KEY (b, a));"
        "INSERT INTO orders SELECT n, 'x', CASE WHEN n % 2 = 0 THEN 'infinity'::date"
        "  ELSE '2024-01-01' END, CASE WHEN n = 3 THEN 'NaN' ELSE 1.5 END"
        "  FROM generate_series(1, 24) n"
    )

    failed = load(world, database.table(world))

    assert failed.error is not None
    assert (
        "  reading `public.orders`:\n    row with b = x, a = 2: column `day`: the value `infinity` "
        "cannot be loaded: it is not within the years 1 to 9999\n"
    ) in failed.error.message
    assert failed.error.message.endswith("\n  and 3 more")

    result = load(world, database.table(world), on_bad_value="NULL")

    assert (result.status, result.rows) == ("LOADED", 24)
    assert any("13 values" in warning for warning in result.warnings), result.warnings
    rows = {row["a"]: row for row in world.rows()}
    assert [rows[n]["day"] for n in (1, 2)] == [date(2024, 1, 1), None]
    assert [rows[n]["n"] for n in (2, 3)] == [Decimal("1.50"), None]


@pytest.mark.usefixtures("small_splits")
def test_all_tasks_read_the_rows_of_one_snapshot(
    world: World, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.run(ORDERS)
    split = ExportedSnapshot.parts

    def then_change(self: ExportedSnapshot, *about: Any) -> Any:
        parts = split(self, *about)
        assert len(parts) > 1
        database.run("DELETE FROM orders WHERE id <= 500")
        database.run("UPDATE orders SET note = 'changed'")
        database.run("INSERT INTO orders (id) SELECT n FROM generate_series(2000, 5000) n")
        return parts

    monkeypatch.setattr(ExportedSnapshot, "parts", then_change)

    result = load(world, database.table(world))

    assert result.rows == 1000, result.error
    rows = world.rows()
    assert sorted(row["id"] for row in rows) == list(range(1, 1001))
    assert not [row for row in rows if row["note"] == "changed"]


@pytest.mark.parametrize("wrong", [1, -1])
def test_rows_that_are_not_those_that_were_counted_are_not_committed(
    world: World, database: Database, monkeypatch: pytest.MonkeyPatch, wrong: int
) -> None:
    database.run(ORDERS)
    split = ExportedSnapshot.parts

    def miscounted(self: ExportedSnapshot, *about: Any) -> Any:
        (part,) = split(self, *about)
        return (replace(part, rows=part.rows + wrong),)

    monkeypatch.setattr(ExportedSnapshot, "parts", miscounted)

    result = load(world, database.table(world))

    assert result.status == "FAILED"
    assert result.error is not None
    assert f"{1000 + wrong:,} rows were counted in the snapshot" in result.error.message
    assert result.error.retryable
    assert (world.rows(), world.left()) == ([], [])


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Postgres]:
    """A server that the test may kill."""
    with closing(OwnServers()) as servers:
        yield servers.get(start_postgres)


def test_a_server_that_is_killed_during_the_read_fails_the_load_for_another_attempt(
    world: World, own_server: Postgres, password_file: Path
) -> None:
    with closing(own_server.connect()) as admin:
        database = Database(admin, input_of(own_server, "postgres", password_file))
        # The read waits for longer than a busy machine needs to kill the server.
        database.run(
            "CREATE VIEW orders AS SELECT n AS id, repeat(md5(n::text), 40)"
            " || CASE n WHEN 30000 THEN pg_sleep(5)::text ELSE '' END AS text"
            " FROM generate_series(1, 40000) n"
        )

        def kill() -> None:
            while not database.run(
                "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'COPY%'"
            ).fetchall():
                time.sleep(0.02)
            os.kill(own_server.pid, signal.SIGSTOP)
            for child in (own_server.pid, *_children(own_server.pid)):
                os.kill(child, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        result = load(world, database.table(world))
        killer.join()

    assert result.status == "FAILED"
    assert result.error is not None
    assert "the connection to PostgreSQL was lost" in result.error.message
    assert result.error.retryable
    assert PASSWORD not in repr(result)
    assert (world.rows(), world.left()) == ([], [])


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(child) for child in text.split()]
