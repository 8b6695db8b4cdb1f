"""One snapshot of all tables of a run (`consistency: SYNC`)."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import Consistency, DestinationSpec, JobSpec, TableSpec
from lakeload_jobs.contract.state import Bookmark
from lakeload_jobs.sources.databases.engines.postgres.source import PostgresSlice
from lakeload_jobs.sources.databases.engines.registry import connect_databases
from tests.integration.sources.databases.conftest import Database

DESTINATION = DestinationSpec("bucket", "us-east-1")
NO_BOOKMARK = Bookmark(None, True, 1, lambda _: ())


def sources(database: Database, consistency: Consistency) -> list[Any]:
    """Return the sources of the tables `a` and `b`, as a run has them."""
    database.run("CREATE TABLE a AS SELECT 1 AS id; CREATE TABLE b AS SELECT 1 AS id")
    given = replace(database.input, consistency=consistency, max_connections=5)
    tables = tuple(
        TableSpec(name, "shop", name, replace(given, table=name), "") for name in ("a", "b")
    )
    synced = datetime(2026, 1, 1, tzinfo=UTC)
    spec = JobSpec(1, "shop", "job", "attempt", synced, DESTINATION, tables, "", "", concurrency=2)
    connect = connect_databases(spec, AwsSession(DESTINATION))
    return [connect(table, table.input) for table in tables]  # type: ignore[arg-type]


def count(found: PostgresSlice) -> int:
    """Return the rows that the load of a slice would count."""
    return sum(part.rows for part in found.snapshot.parts(found.found.relation, found.readers))


def sessions(database: Database) -> int:
    """Return how many sessions of lakeload are open."""
    statement = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name = 'lakeload'"
    )
    ((found,),) = database.run(statement).fetchall()
    return int(found)


def sessions_after_a_while(database: Database, expected: int) -> int:
    """Return how many there are when the server has ended the others, on its own time."""
    deadline = time.monotonic() + 20
    while (found := sessions(database)) > expected and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


@pytest.mark.parametrize(("consistency", "rows"), [("TABLE", 2), ("SYNC", 1)])
def test_tables_are_read_in_one_snapshot_or_in_one_each(
    database: Database, consistency: Consistency, rows: int
) -> None:
    first, second = sources(database, consistency)
    with closing(second):
        with closing(first):
            assert count(first.slice(NO_BOOKMARK)) == 1
            database.run("INSERT INTO a VALUES (2); INSERT INTO b VALUES (2)")
        # Also where it begins when the other one has ended, or again.
        for _ in range(2):
            assert count(second.slice(NO_BOOKMARK)) == rows
        open_now = 2 if consistency == "SYNC" else 1
        assert sessions_after_a_while(database, open_now) == open_now
    assert sessions_after_a_while(database, 0) == 0


def test_a_common_snapshot_that_is_lost_fails_the_tables_that_follow(database: Database) -> None:
    first, second = sources(database, "SYNC")
    with closing(first), closing(second):
        first.slice(NO_BOOKMARK)
        database.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'lakeload'"
        )

        with pytest.raises(LoadFailed, match="held the snapshot of all tables") as raised:
            second.slice(NO_BOOKMARK)

    assert raised.value.retryable
