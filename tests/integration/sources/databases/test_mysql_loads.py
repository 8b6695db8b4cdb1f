"""Tables of MariaDB loaded into both formats."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from pyiceberg.exceptions import NoSuchTableError

from lakeload_jobs.contract.spec import ColumnsSpec
from tests.integration.formats.worlds import World, load
from tests.integration.sources.databases.conftest import Database, MariaDatabase

ORDERS = """
CREATE TABLE `or``ders "x" %s` (
  id bigint unsigned PRIMARY KEY, `Amo``unt` decimal(12,2), note text, at timestamp(6) NULL,
  local datetime, day date NOT NULL, flag tinyint(1), raw blob, ratio float, free decimal(65,30),
  twice decimal(14,2) AS (`Amo``unt` * 2) VIRTUAL, hidden int INVISIBLE DEFAULT 5
)
"""
ROWS = """
INSERT INTO `or``ders "x" %s` (id, `Amo``unt`, note, at, local, day, flag, raw, ratio, free)
SELECT seq, seq / 100, IF(seq % 3 = 0, NULL, CONCAT('note ', seq)),
       '2024-02-29 12:00:00.000001' + INTERVAL seq SECOND, '2024-02-29 12:00:00',
       '2024-02-29', seq % 4, 0x00FF, 1.1, 1
  FROM seq_1_to_1000
"""
NAME = 'or`ders "x" %s'


def has_nothing(world: World) -> bool:
    """Return whether no row is visible, and nothing is left open."""
    try:
        return not world.rows() and not world.left()
    except NoSuchTableError:
        return True


def test_a_table_is_loaded_exactly_and_its_rows_are_numbered(
    world: World, maria: MariaDatabase
) -> None:
    maria.run(ORDERS, ROWS)

    result = load(world, maria.table(world, NAME, primary_key=("id",)))

    assert result.error is None, result.error
    assert (result.status, result.rows, result.warnings) == ("LOADED", 1000, ())
    assert result.index == "dense"
    rows = sorted(world.rows(), key=lambda row: row["id"])
    assert len({row["_supa_id"] for row in rows}) == 1000
    assert sorted(row["_supa_index"] for row in rows) == list(range(1, 1001))
    own = {name: value for name, value in rows[6].items() if not name.startswith("_supa")}
    assert own == {
        "id": Decimal(7),
        "Amo_unt": Decimal("0.07"),
        "note": "note 7",
        "at": datetime(2024, 2, 29, 12, 0, 7, 1, UTC),
        "local": datetime(2024, 2, 29, 12),
        "day": date(2024, 2, 29),
        "flag": 3,
        "raw": b"\x00\xff",
        "ratio": pytest.approx(1.1, rel=1e-7),
        "free": "1.000000000000000000000000000000",
        "twice": Decimal("0.14"),
        "hidden": 5,
    }


def test_a_session_that_is_killed_during_the_read_fails_the_load_for_another_attempt(
    world: World, maria: MariaDatabase
) -> None:
    # The read waits for longer than a busy machine needs to kill its session.
    maria.run(
        "CREATE VIEW t AS SELECT seq AS id,"
        " CONCAT(REPEAT('x', 1000), IF(seq = 20000, SLEEP(5), '')) AS text FROM seq_1_to_30000"
    )
    killed: list[str] = []

    def kill() -> None:
        deadline = time.monotonic() + 60
        with closing(maria.server.connect()) as admin, admin.cursor() as cursor:
            while not killed and time.monotonic() < deadline:
                cursor.execute(
                    "SELECT id FROM information_schema.processlist"
                    f" WHERE db = '{maria.input.name}' AND info LIKE 'SELECT `id`%'"
                )
                for (number,) in cursor.fetchall():
                    cursor.execute(f"KILL {number}")
                    killed.append(number)

    killer = threading.Thread(target=kill)
    killer.start()
    result = load(world, maria.table(world, "t"))
    killer.join()

    assert killed
    assert result.error is not None
    assert (result.status, result.error.retryable) == ("FAILED", True)
    assert "the connection to MySQL was lost" in result.error.message
    assert has_nothing(world)


# What follows is the source's: one table format shows it.
@pytest.mark.parametrize("world", ["parquet"], indirect=True)
def test_conditions_casts_and_columns_are_those_of_every_source(
    world: World, maria: MariaDatabase
) -> None:
    maria.run(ORDERS, ROWS)
    columns = ColumnsSpec(include=("id", "free"), types={"id": "int"}, rename={"id": "number"})

    table = maria.table(
        world, NAME, columns=columns, where="`Amo``unt` > 9.98", deleted_when="flag = 0"
    )
    result = load(world, table)

    assert result.error is None, result.error
    found = sorted((row["number"], row["_supa_deleted"]) for row in world.rows())
    assert found == [(999, False), (1000, True)]


@pytest.mark.parametrize("world", ["parquet"], indirect=True)
def test_values_that_columns_types_does_not_take_are_one_table(
    world: World, maria: MariaDatabase, database: Database
) -> None:
    fill = "INSERT INTO {0} SELECT {1}, CASE WHEN {1} = 2 THEN '5' ELSE 'x' END FROM {2}"
    maria.run("CREATE TABLE t (n int, v varchar(9))", fill.format("t", "seq", "seq_1_to_13"))
    database.run("CREATE TABLE p (n int, v text)")
    database.run(fill.format("p", "n", "generate_series(1, 13) n"))
    types = ColumnsSpec(types={"v": "int"})

    for table, name in (
        (maria.table(world, "t", columns=types), f"{maria.input.schema}.t"),
        (database.table(world, "p", columns=types), "public.p"),
    ):
        error = load(world, table).error

        assert error is not None
        lines = error.message.splitlines()
        assert lines[:2] == ["12 values or records cannot be loaded:", f"  reading `{name}`:"]
        assert lines[2].startswith("    column `v`: "), lines[2]
        assert (len(lines), lines[-1]) == (13, "  and 2 more")
        assert error.hint == "set `on_bad_value: 'NULL'`"
    assert has_nothing(world)


@pytest.mark.parametrize("world", ["parquet"], indirect=True)
def test_bad_values_fail_with_column_key_and_value_or_become_null(
    world: World, maria: MariaDatabase
) -> None:
    maria.run(
        "CREATE TABLE t (a int, b varchar(9), day date, at datetime NOT NULL, PRIMARY KEY (b, a))",
        "INSERT INTO t SELECT seq, 'x', IF(seq % 2 = 0, '2024-00-15', '2024-01-01'),"
        " IF(seq = 3, '0000-00-00', '2024-01-01') FROM seq_1_to_24",
    )

    failed = load(world, maria.table(world, "t"))

    assert failed.error is not None
    name = f"{maria.input.schema}.t"
    assert (
        f"  reading `{name}`:\n    row with b = x, a = 2: column `day`: the value `2024-00-15` "
        "cannot be loaded: it is not a date of the years 1 to 9999\n"
    ) in failed.error.message
    assert failed.error.message.endswith("\n  and 3 more")
    assert has_nothing(world)

    result = load(world, maria.table(world, "t", on_bad_value="NULL"))

    assert (result.status, result.rows) == ("LOADED", 24), result.error
    assert any("13 values" in warning for warning in result.warnings), result.warnings
    rows = {row["a"]: row for row in world.rows()}
    assert [rows[n]["day"] for n in (1, 2)] == [date(2024, 1, 1), None]
    assert [rows[n]["at"] for n in (2, 3)] == [datetime(2024, 1, 1), None]
