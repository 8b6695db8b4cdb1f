"""`lakeload demo` as a stranger runs it: to its end, and away from it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.e2e.command import argv
from tests.servers.jars import CACHE

SECONDS = 240
COMMANDS = [
    "lakeload validate destination.yml pipeline.yml",
    "lakeload test-connection destination.yml",
    "lakeload sync pipeline.yml --job-id monday",
    "lakeload sync pipeline.yml --job-id tuesday",
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder for everything temporary; nothing may be left in it."""
    temporary = tmp_path / "temporary files"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setenv("LAKELOAD_CACHE_DIR", str(tmp_path / "cache"))
    yield temporary
    assert list(temporary.glob("lakeload-demo-*")) == []
    assert [p.cmdline() for p in psutil.process_iter() if _works_in(p, temporary)] == []


def _demo(*arguments: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv("demo", *arguments, python=python),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def _works_in(process: psutil.Process, folder: Path) -> bool:
    try:
        return str(folder) in process.cwd() or str(folder) in " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return False


@pytest.mark.e2e
@pytest.mark.usefixtures("warm_spark")
def test_the_demo_loads_twice_and_compares_the_lake_with_the_export(
    place: Path, forked_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The commands of the demo that is interrupted are not: those of this one are forked.
    monkeypatch.setenv("LAKELOAD_TEST_EXECUTABLE", forked_python)
    # What a user's own settings would be: none of them may reach the embedded AWS.
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    monkeypatch.setenv("LAKELOAD_CACHE_DIR", str(CACHE))
    ended = _demo("--output", "json", python=forked_python)
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert [step["command"] for step in document["commands"]] == COMMANDS
    assert [step["exit_code"] for step in document["commands"]] == [0, 0, 0, 0]
    assert all(f"$ {command}\n" in ended.stderr for command in COMMANDS)
    data = [key for key in document["objects"] if not key.startswith("demo/_lakeload/")]
    name = re.compile(
        r"demo/shop/(orders|visits|payments)/\d{4}/\d\d/\d\d/\d\d/"
        r"part-(monday|tuesday)-00000\.gzip\.parquet"
    )
    found = [name.fullmatch(key) for key in data]
    assert Counter(match.groups() for match in found if match) == Counter(
        (table, job) for table in ("orders", "visits", "payments") for job in ("monday", "tuesday")
    )
    assert len(found) == 6
    assert sorted(map(tuple, document["answers"][-1]["rows"])) == [
        ("monday", "orders", 5000, 5000),
        ("monday", "payments", 4800, 4800),
        ("monday", "visits", 400, 400),
        ("tuesday", "orders", 5000, 5000),
        ("tuesday", "payments", 4800, 4800),
        ("tuesday", "visits", 400, 400),
    ]


@pytest.mark.e2e
@pytest.mark.usefixtures("warm_spark")
def test_the_postgres_demo_loads_what_has_changed(
    place: Path, jars_cache: Path, forked_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The commands of the demo that is interrupted are not: those of this one are forked.
    monkeypatch.setenv("LAKELOAD_TEST_EXECUTABLE", forked_python)
    monkeypatch.setenv("LAKELOAD_CACHE_DIR", str(jars_cache))
    ended = _demo("--source", "postgres", "--output", "json", python=forked_python)
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    names = ("table", "job", "added", "removed")
    assert [tuple(one[name] for name in names) for one in document["snapshots"]] == [
        ("orders", "monday", 5000, 0),
        ("orders", "tuesday", 1300, 400),
        ("customers", "monday", 200, 0),
        ("customers", "tuesday", 200, 200),
    ]
    ((monday, tuesday),) = (answer["rows"] for answer in document["answers"])
    assert (monday[:2], tuesday[:2]) == (["monday", 4600], ["tuesday", 1300])
    assert "All 5,900 orders of the lake are those of the database" in ended.stderr
    # Another run of the tests on this machine may have such a server for some seconds.
    deadline = time.monotonic() + SECONDS
    while (servers := _demo_servers()) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert servers == []


def _demo_servers() -> list[str]:
    """Return the commands of the PostgreSQL servers of demos, which are in a folder of /tmp."""
    commands = [
        " ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])
    ]
    return [command for command in commands if "lakeload-demo-postgres" in command]


@pytest.mark.e2e
def test_the_postgres_demo_is_of_iceberg_tables() -> None:
    ended = _demo("--source", "postgres", "--table-format", "parquet")
    assert ended.returncode == 2
    assert "leave `--table-format` out" in ended.stderr


@pytest.mark.e2e
@pytest.mark.usefixtures("warm_spark")
def test_the_iceberg_demo_changes_rows_and_columns_and_travels_back(
    place: Path, jars_cache: Path, forked_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The commands of the demo that is interrupted are not: those of this one are forked.
    monkeypatch.setenv("LAKELOAD_TEST_EXECUTABLE", forked_python)
    monkeypatch.setenv("LAKELOAD_CACHE_DIR", str(jars_cache))
    monkeypatch.setenv("COLUMNS", "80")
    ended = _demo("--table-format", "iceberg", "--output", "json", python=forked_python)
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    skipping = f"{COMMANDS[1]} --skip glue-catalog"
    assert [step["command"] for step in document["commands"]] == [
        *(COMMANDS[0], skipping),
        *COMMANDS[2:],
    ]
    assert [step["exit_code"] for step in document["commands"]] == [0, 0, 0, 0]
    lines = [(one["table"], one["job"], one["added"]) for one in document["snapshots"]]
    assert lines == [
        ("orders", "monday", 5000),
        ("orders", "tuesday", 1300),
        ("payments", "monday", 4800),
        ("payments", "tuesday", 4800),
    ]
    orders, payments, travelled = (answer["rows"] for answer in document["answers"])
    assert [(row[0], row[1], row[3]) for row in orders] == [
        ("monday", 4600, 0),
        ("tuesday", 1300, 300),
    ]
    assert payments == [
        ["monday", 4800, 4800, "DECIMAL(14,2)"],
        ["tuesday", 4800, 4800, "DECIMAL(14,2)"],
    ]
    assert sorted(travelled) == [["monday", 5000, 0], ["now", 5900, 300]]
    own = ended.stderr[ended.stderr.index("Each load of a table") :]
    assert max(map(len, own.splitlines())) <= 80
    assert "…" not in own


@pytest.mark.e2e
@pytest.mark.parametrize("jvm", ["warm", pytest.param("own", marks=pytest.mark.exhaustive)])
def test_a_demo_that_is_interrupted_after_its_first_load_leaves_nothing_behind(
    place: Path, jvm: str, request: pytest.FixtureRequest
) -> None:
    # That a JVM of a sync's own ends is seen in test_interrupts.py.
    if jvm == "warm":
        request.getfixturevalue("warm_spark")
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        argv("demo"),
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    seen: list[str] = []
    for line in process.stdout:
        seen.append(line)
        # The second: Spark itself has then loaded the tables of the first.
        if sum("starting Spark" in earlier for earlier in seen) == 2:
            process.send_signal(signal.SIGINT)
            break
    rest, _ = process.communicate(timeout=60)
    assert process.returncode == 130, "".join(seen) + rest
    assert f"$ {COMMANDS[3]}\n" in seen, "the first load has gone through"
    assert "the demo was stopped and has cleaned up after itself" in rest
