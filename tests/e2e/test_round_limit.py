"""`round_limit` for a user: a large load in several jobs, of which a kill costs one."""

from __future__ import annotations

import json
import os
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.command import Ended, lakeload, start, wait_for_drivers
from tests.e2e.conftest import LakeOfFormat
from tests.json_documents import check
from tests.servers.ministack import Lake
from tests.servers.postgres import PASSWORD, USER, Postgres

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

FILES = {"type": "FILES", "format": "CSV", "options": {"header": True}, "incremental": True}
COMMAND = ("sync", "pipeline.yml", "--output", "json")


def rounds_of(ended: Ended) -> list[dict[str, Any]]:
    """Return the documents of the rounds, a line each."""
    found = [json.loads(line) for line in ended.stdout.splitlines()]
    for document in found:
        check(document)
    return found


def numbers(of_format: LakeOfFormat) -> list[int]:
    return sorted(int(n) for (n,) in of_format.rows("orders", "n"))


def write_files(folder: Path, count: int) -> None:
    """Write files of ten rows. Only the last one shows that a column is text."""
    (folder / "landing").mkdir()
    for number in range(count):
        rows = "".join(
            f"{number * 10 + n},{'x' if number == count - 1 else n}\n" for n in range(10)
        )
        path = folder / "landing" / f"{number}.csv"
        path.write_text(f"n,code\n{rows}")
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


@pytest.fixture
def source(postgres: Postgres, tmp_path: Path) -> dict[str, Any]:
    """What a pipeline says of a database with a table of 80 rows."""
    name, secret = postgres.new_database(), tmp_path / "password"
    secret.write_text(PASSWORD, encoding="utf-8")
    with closing(postgres.connect(name)) as admin:
        admin.execute(
            "CREATE TABLE orders (n int PRIMARY KEY, code text);"
            "INSERT INTO orders SELECT n, n::text FROM generate_series(0, 79) n"
        )
    password = {"file": str(secret)}
    return {"type": "JDBC", "url": postgres.url(name), "user": USER, "password": password}


@pytest.mark.parametrize("kind", ["FILES", "JDBC"])
def test_killed_rounds_are_kept_and_each_row_is_there_once(
    lake: Lake, tmp_path: Path, kind: str, source: dict[str, Any], of_format: LakeOfFormat
) -> None:
    table: dict[str, Any] = {"table": "public.orders", "cursor": "n"}
    limit: dict[str, Any] = {"rows": 10}
    if kind == "FILES":
        write_files(tmp_path, 8)
        source, table, limit = FILES, {"table": "orders", "path": "landing"}, {"files": 1}
    of_format.write(tmp_path, tables=[table], source=source, round_limit=limit)

    commits: list[str] = []
    third, killed_then = threading.Event(), threading.Event()

    def on_commit(moment: str) -> None:
        commits.append(moment)
        if commits.count("after") == 3 and not third.is_set():
            third.set()
            killed_then.wait(60)

    if of_format.gate is not None:
        of_format.gate.on_commit = on_commit
    killed = start(lake, tmp_path, *COMMAND)
    assert killed.stdout is not None
    seen = [json.loads(killed.stdout.readline()) for _ in range(2)]
    # The catalog has published the third round, and does not say so before the kill.
    assert of_format.gate is None or third.wait(60)
    family = [psutil.Process(killed.pid), *psutil.Process(killed.pid).children(recursive=True)]
    for process in family:
        process.kill()
    killed.communicate(timeout=60)
    wait_for_drivers(tmp_path / "runs")
    killed_then.set()
    rest = rounds_of(lakeload(lake, tmp_path, *COMMAND))

    assert [done["round"] for done in seen] == [1, 2]
    assert all(done["tables"][0]["more"] for done in seen)
    # At most the round under way has committed without a line.
    assert len(rest) in ((5, 6) if of_format.gate is None else (5,))
    assert [done["tables"][0]["more"] for done in rest] == [True] * (len(rest) - 1) + [False]
    assert len({done["job_id"] for done in (*seen, *rest)}) == len(seen) + len(rest)
    assert numbers(of_format) == [*range(80)]

    idle = rounds_of(lakeload(lake, tmp_path, *COMMAND))
    assert [done["tables"][0]["status"] for done in idle] == ["NO_OP"]


@pytest.mark.usefixtures("forked_commands")
def test_flags_that_load_all_again_are_refused_beside_a_limit(lake: Lake, tmp_path: Path) -> None:
    write_files(tmp_path, 1)
    lake.write_pipeline(
        tmp_path,
        tables=[{"table": "orders", "path": "landing"}],
        source=FILES,
        round_limit={"files": 1},
    )
    refused = lakeload(lake, tmp_path, "sync", "pipeline.yml", "--reload")

    assert refused.code == 2
    assert (
        "`--reload` loads all rows in one job, and `orders` has a `round_limit`" in refused.stderr
    )
