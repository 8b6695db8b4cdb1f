"""Tables of MariaDB that several tasks read, in ranges of the primary key."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import pytest

from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.contract.spec import Consistency, DestinationSpec, TableSpec
from lakeload_jobs.sources.databases.engines.mysql import catalog as product
from lakeload_jobs.sources.databases.engines.mysql import connection as product_connection
from lakeload_jobs.sources.databases.engines.mysql import read as product_read
from lakeload_jobs.sources.databases.engines.mysql import types as product_types
from lakeload_jobs.sources.databases.engines.mysql.read import MysqlPart, ReadTable
from lakeload_jobs.sources.databases.identity import TaskIdentity
from tests.integration.formats.worlds import World, load
from tests.integration.sources.databases.conftest import MariaDatabase
from tests.servers.mariadb import PASSWORD

_ROWS = 2000


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of some pages have ranges."""
    monkeypatch.setattr(product, "_PART_BYTES", 8192)


_KEYS = {
    "tinyint": ("CAST(seq AS INT) % 256 - 128", ""),
    "smallint unsigned": ("seq * 20", "(0), (65535)"),
    "int": ("CAST(seq AS INT) * -1000", "(-2147483648), (2147483647), (0)"),
    "bigint": ("seq * 1000000007", "(-9223372036854775808), (9223372036854775807)"),
    "bigint unsigned": ("seq * 1000000007", "(0), (18446744073709551615)"),
    "date": ("'2001-01-01' + INTERVAL seq DAY", "(0), ('2024-00-15'), ('9999-12-31')"),
    "binary(16)": ("UNHEX(MD5(seq))", "(X''), (UNHEX(REPEAT('f', 32)))"),
}
"""Types of keys: the values of most rows, and those of rows at an end."""


def test_ranges_of_each_kind_of_key_have_every_row_once(maria: MariaDatabase) -> None:
    identity = TaskIdentity(DestinationSpec("bucket", "us-east-1"), "test", False)
    found = {}
    with closing(
        product_connection.connect(maria.input, identity.password(maria.input))
    ) as connection:
        for number, (kind, (value, ends)) in enumerate(_KEYS.items()):
            maria.run(
                f"CREATE TABLE t{number} (`the ``key` {kind}, n int AUTO_INCREMENT, more text"
                " DEFAULT REPEAT('x', 99), UNIQUE (n), PRIMARY KEY (`the ``key`, n))",
                f"INSERT INTO t{number} (`the ``key`) SELECT {value} FROM seq_1_to_{_ROWS}",
                *((f"INSERT INTO t{number} (`the ``key`) VALUES {ends}",) if ends else ()),
                f"ANALYZE TABLE t{number}",
            )
            given = replace(maria.input, table=f"t{number}")
            relation = product.find_relation(connection, given)
            columns = product.columns(connection, relation, given)
            ranges = product.find_ranges(connection, relation, columns, 3)
            assert ranges is not None
            reader = ReadTable(given, identity, relation, product_types.select(columns[1:]), "FAIL")
            counts = []
            rows: list[Any] = []
            for condition in ranges.conditions:
                batches = list(reader(MysqlPart(condition)))
                counts.append(sum(batch.num_rows for batch in batches))
                rows += [n for batch in batches for n in batch["n"].to_pylist()]
            found[kind] = len(counts)
            ((whole,),) = product_connection.fetch(connection, f"SELECT COUNT(*) FROM t{number}")
            assert len(rows) == int(whole)
            assert len(set(rows)) == int(whole), kind
            assert max(counts) < _ROWS * 0.7, (kind, counts)
    assert found == dict.fromkeys(_KEYS, 3)


def _table(
    world: World, maria: MariaDatabase, consistency: Consistency, **changes: Any
) -> TableSpec:
    """Return the table of accounts."""
    table = maria.table(world, "accounts", primary_key=("id",), mode="OVERWRITE")
    given = replace(maria.input, table="accounts", consistency=consistency, **changes)
    return replace(table, input=given)


_ACCOUNTS = (
    "CREATE TABLE accounts (id int PRIMARY KEY, amount int, more text DEFAULT REPEAT('x', 99))",
    f"INSERT INTO accounts (id, amount) SELECT seq, 100 FROM seq_1_to_{_ROWS}",
    "ANALYZE TABLE accounts",
)


@contextmanager
def _transfers(maria: MariaDatabase) -> Iterator[list[int]]:
    """Move amounts between the first and the last account, a row from the first range to the last
    and back, and give how often that was done."""
    done: list[int] = []
    ended = threading.Event()

    def work() -> None:
        with closing(maria.server.connect(maria.input.name)) as writer, writer.cursor() as cursor:
            while not ended.is_set():
                cursor.execute("BEGIN")
                cursor.execute("UPDATE accounts SET amount = amount - 1 WHERE id = 1")
                moved = (2, 9000) if len(done) % 2 == 0 else (9000, 2)
                cursor.execute("UPDATE accounts SET id = %s WHERE id = %s", moved[::-1])
                cursor.execute(f"UPDATE accounts SET amount = amount + 1 WHERE id = {_ROWS}")
                cursor.execute("COMMIT")
                done.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield done
    finally:
        ended.set()
        thread.join()


def _checked(result: TableResult) -> TableResult:
    assert result.error is None, result.error
    assert result.status == "LOADED"
    return result


class _Tasks:
    """Threads in the place of Spark's barrier tasks."""

    def __init__(self, count: int) -> None:
        self._barrier = threading.Barrier(count)
        self._own = threading.local()

    def get(self) -> _Tasks:
        """Return what the task of this thread asks."""
        return self

    def barrier(self) -> None:
        """Wait for the other threads."""
        self._barrier.wait(30)

    def partitionId(self) -> int:
        """Return the number of this thread's task."""
        number: int = self._own.number
        return number

    def run(self, number: int, reader: ReadTable, part: MysqlPart) -> list[Any]:
        """Read a part as a task does."""
        self._own.number = number
        return [row for batch in reader(part) for row in batch.to_pylist()]


def test_tasks_that_begin_under_a_lock_see_one_moment_while_others_write(
    maria: MariaDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    maria.run(*_ACCOUNTS)
    tasks = _Tasks(2)
    monkeypatch.setattr("lakeload_jobs.rows.batches.BarrierTaskContext", tasks)
    fetch = product_connection.fetch

    def slowly(connection: Any, statement: str, *values: str) -> Any:
        if statement == product_read._BEGIN:
            time.sleep(0.5 * tasks.partitionId())
        return fetch(connection, statement, *values)

    monkeypatch.setattr(product_read, "fetch", slowly)
    identity = TaskIdentity(DestinationSpec("bucket", "us-east-1"), "test", False)
    given = replace(maria.input, table="accounts", consistency="LOCK")
    with closing(product_connection.connect(given, identity.password(given))) as connection:
        relation = product.find_relation(connection, given)
        columns = product.columns(connection, relation, given)
        ranges = product.find_ranges(connection, relation, columns, 2)
    assert ranges is not None
    reader = ReadTable(given, identity, relation, product_types.select(columns), "FAIL")

    with _transfers(maria) as done, ThreadPoolExecutor(2) as pool:
        parts = [MysqlPart(condition, locked=True) for condition in ranges.conditions]
        read = [pool.submit(tasks.run, n, reader, part) for n, part in enumerate(parts)]
        rows = [row for one in read for row in one.result()]
        before = len(done)
        while len(done) == before:
            time.sleep(0.01)

    assert len(rows) == len({row["id"] for row in rows}) == _ROWS
    assert sum(row["amount"] for row in rows) == 100 * _ROWS


@pytest.mark.parametrize("world", ["parquet"], indirect=True)
def test_ranges_under_a_lock_are_loaded(world: World, maria: MariaDatabase) -> None:
    maria.run(*_ACCOUNTS)

    result = _checked(load(world, _table(world, maria, "LOCK")))

    assert result.notes == ("2 ranges of `id`, all as of one moment (`consistency: LOCK`)",)
    assert sorted(row["id"] for row in world.rows()) == list(range(1, _ROWS + 1))


@pytest.mark.parametrize("world", ["parquet"], indirect=True)
def test_a_lock_waits_for_open_transactions_and_fails_after_lock_timeout(
    world: World, maria: MariaDatabase
) -> None:
    maria.run(*_ACCOUNTS)

    with closing(maria.server.connect(maria.input.name)) as writer, writer.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("UPDATE accounts SET amount = 0 WHERE id = 1")
        failed = load(world, _table(world, maria, "LOCK", lock_timeout=1))

        assert failed.error is not None
        name = f"{maria.input.name}.accounts"
        assert f"locking `{name}` (`consistency: LOCK`): Lock wait timeout" in failed.error.message
        assert failed.error.hint == "another session holds a lock on the table: run again later"
        assert failed.error.retryable

        def commit() -> None:
            time.sleep(4)
            cursor.execute("COMMIT")

        thread = threading.Thread(target=commit)
        thread.start()
        _checked(load(world, _table(world, maria, "LOCK")))
        thread.join()

    (first,) = (row for row in world.rows() if row["id"] == 1)
    assert first["amount"] == 0
    # Nothing holds the table.
    maria.run("SET lock_wait_timeout = 1", "ALTER TABLE accounts ADD COLUMN added int")


@pytest.mark.parametrize("world", ["parquet"], indirect=True)
def test_a_lock_needs_a_right_which_is_named(world: World, maria: MariaDatabase) -> None:
    user, password = f"reader_{maria.input.name}", PASSWORD.replace("'", "''")
    maria.run(
        *_ACCOUNTS,
        f"CREATE USER {user} IDENTIFIED BY '{password}'",
        f"GRANT SELECT ON accounts TO {user}",
    )

    failed = load(world, _table(world, maria, "LOCK", user=user))

    assert failed.error is not None
    assert failed.error.message.startswith(f"locking `{maria.input.name}.accounts`")
    grant = f"GRANT LOCK TABLES ON `{maria.input.name}`.* TO '{user}'@'%'"
    assert failed.error.hint == f"let an administrator run ``{grant}``"
    maria.run(f"GRANT LOCK TABLES ON `{maria.input.name}`.* TO {user}")
    _checked(load(world, _table(world, maria, "LOCK", user=user)))


@pytest.mark.parametrize("world", ["parquet"], indirect=True)
def test_ranges_of_several_moments_say_so_and_few_rows_have_none(
    world: World, maria: MariaDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    maria.run(*_ACCOUNTS)

    result = _checked(load(world, _table(world, maria, "NONE")))

    assert result.notes == ("4 ranges of `id`, each as of another moment (`consistency: NONE`)",)
    # Nobody counts the rows of a range before the others are read.
    assert result.index == "sparse"
    assert sorted(row["id"] for row in world.rows()) == list(range(1, _ROWS + 1))
    monkeypatch.setattr(product, "_PART_BYTES", 16 << 20)
    result = _checked(load(world, _table(world, maria, "NONE")))
    assert result.notes == ()
