"""Tables that an earlier program and today's load by turns, from one folder of documents.

The earlier program is that of a commit in the history of this repository, with the packages that
are installed here. Each load succeeds, or the earlier program says that a newer one has written
what it does not read; either way an independent reader finds each row once.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import load_catalog

from tests.e2e.command import sync
from tests.integration.commands.conftest import ADMIN
from tests.servers.glue import glue_of
from tests.servers.ministack import Lake

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive]

REPOSITORY = Path(__file__).parents[2]
EARLIER = {
    "a213f45": "records of format 1, Iceberg written by Spark alone",
    "a609ab2": "the last without `deleted_rows` in records",
    "3ac32d8": "the last whose checkpoints have no digest",
}
SETS_ASIDE = "on_bad_value: QUARANTINE\nmax_rejected: 1\n"
REFUSED = {("a213f45", "PARQUET"): [("visits", 3)]}
"""Tables and turns whose records such a program does not read."""
NEWER = "was written by a newer lakeload"

Rows = Callable[[str], list[tuple[int, str]]]


@pytest.fixture(params=EARLIER, scope="module")
def earlier(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program of an earlier commit."""
    commit = request.param
    archive = ["git", "-C", str(REPOSITORY), "archive", commit, "cli", "sparkjobs"]
    made = subprocess.run(archive, capture_output=True, check=False)
    if made.returncode:
        pytest.fail(
            f"the history of {REPOSITORY} has no commit {commit}: clone it with its history "
            f"(`git fetch --unshallow`); git says: {made.stderr.decode(errors='replace').strip()}"
        )
    folder = tmp_path_factory.mktemp(commit)
    with tarfile.open(fileobj=io.BytesIO(made.stdout)) as files:
        files.extractall(folder, filter="data")
    where = [sys.executable, "-c", "import lakeload_jobs; print(lakeload_jobs.__file__)"]
    imported = subprocess.run(
        where,
        env={**os.environ, "PYTHONPATH": python_path(folder)},
        capture_output=True,
        check=True,
    )
    assert imported.stdout.decode().startswith(str(folder))
    return folder


def python_path(program: Path) -> str:
    return os.pathsep.join(str(program / part) for part in ("cli", "sparkjobs"))


@pytest.fixture(params=["PARQUET", "ICEBERG"])
def rows_of(
    request: pytest.FixtureRequest,
    lake: Lake,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    jars_cache: Path,
) -> Iterator[Rows]:
    """Returns the rows of a table, whose documents are in `tmp_path`, as others read it."""
    monkeypatch.setenv("LAKE_ADMIN_KEY", "test")
    place = lake.server.endpoint
    iceberg = request.param == "ICEBERG"
    types = {"columns": {"types": {"id": "bigint", "version": "bigint"}}}
    upsert = {"mode": "UPSERT", "primary_key": ["id"], "cursor": "version"}
    keyed = upsert if request.param == "ICEBERG" else {}
    lake.write_pipeline(
        tmp_path,
        tables=[
            {"table": "visits", "path": "visits/*.csv", **types},
            {"table": "customers", "path": "customers/*.csv", **types, **keyed},
        ],
        source={
            "type": "FILES",
            "format": "CSV",
            "options": {"header": True},
            "incremental": True,
        },
        destination={
            "credentials": ADMIN,
            "endpoints": {"s3": place, "sts": place, "glue": place},
            **({"table_format": "ICEBERG"} if iceberg else {}),
        },
    )
    yield partial(_iceberg_rows if iceberg else _parquet_rows, lake)
    glue = glue_of(lake)
    for database in glue.get_databases()["DatabaseList"]:
        glue.delete_database(Name=database["Name"])


def _iceberg_rows(lake: Lake, name: str) -> list[tuple[int, str]]:
    place = lake.server.endpoint
    keys = {"access-key-id": "test", "secret-access-key": "test", "region": lake.seeded.region}
    catalog = load_catalog(
        "reader",
        **{"type": "glue", "glue.endpoint": place, "s3.endpoint": place},
        **{f"{of}.{key}": value for of in ("glue", "s3") for key, value in keys.items()},
    )
    return _sorted(catalog.load_table(("shop", name)).scan().to_arrow())


def _parquet_rows(lake: Lake, name: str) -> list[tuple[int, str]]:
    keys = [key for key in lake.data_keys() if f"/{name}/" in key]
    found = [pq.read_table(pa.BufferReader(lake.read(key))) for key in keys]
    return _sorted(pa.concat_tables(found, promote_options="default"))


def _sorted(table: pa.Table) -> list[tuple[int, str]]:
    return sorted((row["id"], row["name"]) for row in table.to_pylist())


def _write(folder: Path, number: int) -> None:
    """Write the files of one turn: a new row, for one table a change of the one before, and in
    the second turn a record that cannot be read."""
    for name in ("visits", "customers"):
        (folder / name).mkdir(exist_ok=True)
        rows = [f"{number},new,1"]
        if name == "customers" and number > 1:
            rows.append(f"{number - 1},changed,2")
        if name == "visits" and number == 2:
            rows.append("x,unreadable,1")
        text = "\n".join(["id,name,version", *rows, ""])
        (folder / name / f"{number}.csv").write_text(text, encoding="utf-8")


def _expected(turns: int, *, merged: bool) -> dict[str, list[tuple[int, str]]]:
    new = [(number, "new") for number in range(1, turns + 1)]
    changed = [(number, "changed") for number in range(1, turns)]
    customers = [*changed, new[-1]] if merged else sorted([*changed, *new])
    return {"visits": new, "customers": customers}


def test_an_earlier_program_and_todays_load_the_same_tables_by_turns(
    earlier: Path, rows_of: Rows, lake: Lake, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    params = request.node.callspec.params
    merged = params["rows_of"] == "ICEBERG"
    theirs = python_path(earlier)
    document = tmp_path / "pipeline.yml"
    plain = document.read_text(encoding="utf-8")
    loaded = dict.fromkeys(("visits", "customers"), 0)
    refused = []
    for turn, program in enumerate((theirs, None, theirs, None), 1):
        _write(tmp_path, turn)
        # What is set aside raises the format of a record, and earlier programs may not know it.
        document.write_text(plain if program else plain + SETS_ASIDE)

        ended = sync(lake, tmp_path, PYTHONPATH=program)

        for told in ended.json["tables"]:
            name = told["table"]
            if program and turn > 1 and told["status"] != "LOADED":
                assert NEWER in told["error"]["message"], told
                refused.append((name, turn))
            else:
                assert told["status"] == "LOADED", (turn, told["error"], ended.stderr)
                loaded[name] = turn
            assert rows_of(name) == _expected(loaded[name], merged=merged)[name], (name, turn)
    assert loaded == dict.fromkeys(loaded, 4)
    assert refused == REFUSED.get((params["earlier"], params["rows_of"]), [])
