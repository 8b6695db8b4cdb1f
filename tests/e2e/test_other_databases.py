"""Loads with a JDBC driver of the user through the command line.

The one in which Spark takes the driver from the user's jar is in test_iceberg_secrets.py: the JVM
of a warm Spark has it from its start.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.canaries import password_canary
from tests.e2e.command import Ended, lakeload
from tests.e2e.h2_database import h2_source
from tests.e2e.watching import ArgvWatcher
from tests.servers.ministack import Lake

pytestmark = pytest.mark.e2e

CANARIES = password_canary()


@pytest.fixture
def h2(jdbc_jars: tuple[Path, ...], tmp_path: Path) -> dict[str, Any]:
    """What a pipeline in the folder `documents` says of a database of H2."""
    (tmp_path / "documents").mkdir()
    return h2_source(jdbc_jars[0], tmp_path, CANARIES.values["password"])


def _run(lake: Lake, folder: Path, command: str, *arguments: str, **environment: str) -> Ended:
    """Run a command from another folder than that of the documents."""
    password = {"SHOP_PASSWORD": CANARIES.values["password"]} | environment
    path = "../documents/pipeline.yml"
    (folder / "elsewhere").mkdir(exist_ok=True)
    return lakeload(lake, folder / "elsewhere", command, path, *arguments, **password)


def _check_secrets(folder: Path, ended: Ended) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            assert CANARIES.found_in(path.read_bytes()) == [], f"in the file {path}"
    assert CANARIES.found_in((ended.stdout + ended.stderr).encode()) == []


@pytest.mark.usefixtures("warm_spark")
def test_a_driver_of_the_user_loads_and_nothing_shows_the_password(
    lake: Lake, h2: dict[str, Any], tmp_path: Path
) -> None:
    lake.write_pipeline(tmp_path / "documents", tables=[{"table": "PUBLIC.ORDERS"}], source=h2)

    valid = _run(lake, tmp_path, "validate")
    checked = _run(lake, tmp_path, "test-connection", "--output", "json")
    planned = _run(lake, tmp_path, "plan", "--output", "json")
    with ArgvWatcher() as watcher:
        ended = _run(lake, tmp_path, "sync", "-vv", "--log-file", "load.log")

    assert valid.code == 0, valid.stdout + valid.stderr
    found = {probe["name"]: probe for probe in checked.document["probes"]}
    assert found["source-driver"]["detail"] == "org.h2.Driver"
    assert found["source-login"]["detail"].startswith("H2 2.3.232")
    assert found["source-table:PUBLIC.ORDERS"]["detail"] == "2 columns"
    (table,) = planned.document["tables"]
    assert (table["reader"], table["numbering"]) == ("jvm", "one partition")
    assert any("types are as Spark's" in text for text in planned.document["warnings"]), planned
    assert ended.code == 0, ended.stdout + ended.stderr
    assert "types are as Spark's" in " ".join((ended.stdout + ended.stderr).split())
    assert len([key for key in lake.keys() if key.endswith(".parquet")]) == 1  # noqa: SIM118
    for one in (valid, checked, planned, ended):
        _check_secrets(tmp_path, one)
    for argv in watcher.seen:
        assert CANARIES.found_in(argv) == [], "in the argv of a process"


@pytest.mark.usefixtures("forked_commands")
@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({"jar": "../drivers/h3.jar"}, 2, "did you mean `h2.jar`"),
        ({"driver": "org.h2.Nothing"}, 2, "no class `org.h2.Nothing`"),
    ],
)
def test_a_driver_that_is_not_there_is_found_before_spark_starts(
    lake: Lake, h2: dict[str, Any], tmp_path: Path, changes: dict[str, Any], code: int, message: str
) -> None:
    lake.write_pipeline(
        tmp_path / "documents", tables=[{"table": "PUBLIC.ORDERS"}], source=h2 | changes
    )

    ended = _run(lake, tmp_path, "sync")

    assert message in " ".join((ended.stdout + ended.stderr).split())
    assert ended.code == code, ended.stdout + ended.stderr
    assert not list(tmp_path.rglob("spark.log"))


@pytest.mark.usefixtures("forked_commands")
def test_a_connection_test_logs_in_and_finds_the_tables_without_spark(
    lake: Lake, h2: dict[str, Any], tmp_path: Path
) -> None:
    lake.write_pipeline(tmp_path / "documents", tables=[{"table": "PUBLIC.ORDRS"}], source=h2)

    missing = _run(lake, tmp_path, "test-connection", "--output", "json")
    rejected = _run(lake, tmp_path, "test-connection", "--output", "json", SHOP_PASSWORD="wrong")

    found = {probe["name"]: probe for probe in missing.document["probes"]}
    assert found["source-table:PUBLIC.ORDRS"]["failure"]["hint"] == "did you mean `PUBLIC.ORDERS`?"
    found = {probe["name"]: probe for probe in rejected.document["probes"]}
    assert "Wrong user name or password" in found["source-login"]["failure"]["message"]
    assert found["source-table:PUBLIC.ORDRS"]["status"] == "skipped"
    assert (missing.code, rejected.code) == (3, 3)
    _check_secrets(tmp_path, missing)
