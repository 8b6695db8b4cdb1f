"""`lakeload sync --every` of a database: tables come and go while it runs."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import SECONDS, start
from tests.e2e.test_rounds import documents
from tests.servers.ministack import Lake
from tests.servers.postgres import PASSWORD, USER, Postgres

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

Rounds = Iterator[dict[str, Any]]


def source_of(postgres: Postgres, name: str, folder: Path) -> dict[str, Any]:
    """What a pipeline says of a database; the password is in a file."""
    (folder / "password").write_text(PASSWORD)
    reference = {"file": str(folder / "password")}
    return {"type": "JDBC", "url": postgres.url(name), "user": USER, "password": reference}


def when(rounds: Rounds, is_so: Callable[[dict[str, dict[str, Any]]], bool]) -> dict[str, Any]:
    """Return the first round whose tables, by name, are as asked for."""
    return next(one for one in rounds if is_so({table["table"]: table for table in one["tables"]}))


@pytest.mark.usefixtures("warm_spark")
def test_globs_find_new_and_dropped_tables_in_each_round(
    lake: Lake, postgres: Postgres, tmp_path: Path
) -> None:
    name = postgres.new_database()
    tables = [{"table": "public.*", "cursor": "id"}]
    lake.write_pipeline(tmp_path, tables=tables, source=source_of(postgres, name, tmp_path))
    with closing(postgres.connect(name)) as admin:
        admin.execute("CREATE TABLE one (id int PRIMARY KEY); INSERT INTO one VALUES (1)")
        process = start(lake, tmp_path, "sync", "pipeline.yml", "--every", "1s", "--output", "json")
        try:
            rounds = documents(process)
            first = next(rounds)
            admin.execute("CREATE TABLE two (id int PRIMARY KEY); INSERT INTO two VALUES (1), (2)")
            second = when(rounds, lambda found: "public.two" in found)
            admin.execute("DROP TABLE one")
            last = when(rounds, lambda found: "public.one" not in found)
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=SECONDS)
        finally:
            process.kill()

    assert process.returncode == 0
    assert [table["rows"] for table in first["tables"]] == [1]
    assert {table["table"]: table["status"] for table in second["tables"]} == {
        "public.one": "NO_OP",
        "public.two": "LOADED",
    }
    assert [table["table"] for table in last["tables"]] == ["public.two"]
    assert "new in the source: `public.two`" in err
    assert "no longer in the source: `public.one`" in err
