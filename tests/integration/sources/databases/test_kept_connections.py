"""Logins of a command that asks a database about many tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from lakeload.sources.base import ColumnsRequest
from lakeload.sources.databases.inspection import connected_catalog, inspect, read_columns
from lakeload.sources.kept_connections import connections_kept
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import DestinationSpec, JobSpec, RunOptions, TableSpec
from lakeload_jobs.sources.base import NO_COLUMNS
from lakeload_jobs.sources.readers import SourceReaders
from tests.integration.sources.databases.conftest import Database

_DESTINATION = DestinationSpec("bucket", "us-east-1")
_TABLES = tuple(f"t{number}" for number in range(6))


def _logins(database: Database) -> int:
    """Return how many sessions the database has had beside that of the administrator."""
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    counted = "SELECT sessions FROM pg_stat_database WHERE datname = current_database()"
    deadline = time.monotonic() + 10
    while database.run(others).fetchall() != [(1,)]:
        assert time.monotonic() < deadline, "connections are left open"
        time.sleep(0.02)
    database.run("SELECT pg_stat_force_next_flush()")
    ((found,),) = database.run(counted).fetchall()
    return int(found) - 1


def _ask(database: Database, names: Sequence[str], at_once: int) -> None:
    """Ask about tables as `plan` does."""
    readers = SourceReaders(_DESTINATION, AwsSession(_DESTINATION))
    with connected_catalog(database.input, readers) as (catalog, connection):
        catalog.list_tables(connection, database.input, None)

    def of_table(name: str) -> None:
        read = replace(database.input, table=name)
        table = TableSpec(name, "", name, read, "")
        job = JobSpec(1, "p", "j", "a", datetime.now(UTC), _DESTINATION, (), "", "")
        inspect(read, table, RunOptions(), None, readers)
        read_columns(read, ColumnsRequest(job, table, NO_COLUMNS), readers)

    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(of_table, names))


@pytest.mark.parametrize(("at_once", "most"), [(1, 1), (8, 2)])
def test_all_tables_share_the_connections_of_a_command(
    database: Database, at_once: int, most: int
) -> None:
    for name in _TABLES:
        database.run(f"CREATE TABLE {name} (id int)")

    with connections_kept():
        _ask(database, _TABLES, at_once)

    assert 1 <= _logins(database) <= most
    before = _logins(database)
    _ask(database, _TABLES[:1], 1)
    assert _logins(database) == before + 3


def test_a_connection_whose_use_has_failed_is_not_used_again(database: Database) -> None:
    database.run("CREATE TABLE t0 (id int)")

    def failing(ask: Callable[[], Any]) -> None:
        with pytest.raises(LoadFailed, match="has no table"):
            ask()

    with connections_kept():
        failing(lambda: _ask(database, ("missing",), 1))
        _ask(database, ("t0",), 1)

    assert _logins(database) == 2
