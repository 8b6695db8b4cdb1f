"""Secrets stay where they belong: no file, log, event log, argv, output or object holds one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.e2e.canaries import SETTINGS, Canaries, canaries_of
from tests.e2e.command import Ended, lakeload
from tests.e2e.watching import ArgvWatcher, ModeWatcher
from tests.servers.fault_proxy import FaultProxy, edit_body
from tests.servers.ministack import Lake, MakeLake
from tests.servers.standalone_spark import QUICK_DRIVER, QUICK_EXECUTOR

pytestmark = pytest.mark.e2e

PIPELINE = "visible-pipeline"


@pytest.fixture
def canaries(lake: Lake) -> Canaries:
    """The lake's ExternalId, and temporary keys of its base identity."""
    return canaries_of(lake)


@pytest.fixture
def folder(lake: Lake, fault_proxy: FaultProxy, canaries: Canaries, tmp_path: Path) -> Path:
    """Documents that refer to the canaries, and room for everything a command writes."""
    fault_proxy.on("AssumeRole", edit_body(canaries.remember_issued))
    (tmp_path / "orders.csv").write_text("id,note\n1,a\n2,b\n")
    for name in ("tmp", "event-log"):
        (tmp_path / name).mkdir()
    references = {name: {"env": f"CANARY_{name.upper()}"} for name in SETTINGS}
    lake.write_pipeline(
        tmp_path,
        name=PIPELINE,
        tables=[{"table": "orders", "path": "orders.csv"}],
        endpoint=fault_proxy.endpoint,
        destination={"credentials": {"role_arn": lake.seeded.role_arn, **references}},
    )
    return tmp_path


def _run(lake: Lake, folder: Path, canaries: Canaries, *arguments: str, **more: str) -> Ended:
    return lakeload(
        lake,
        folder,
        *arguments,
        AWS_ACCESS_KEY_ID=None,
        AWS_SECRET_ACCESS_KEY=None,
        LAKELOAD_EXTERNAL_ID=None,
        TMPDIR=str(folder / "tmp"),
        **{**canaries.environment, **more},
    )


def _files(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for file in folder.rglob("*"):
        if file.is_file():
            yield file, file.read_bytes()


@pytest.fixture
def source(make_lake: MakeLake, lake: Lake, canaries: Canaries) -> Lake:
    """A bucket with three files of each format, and a user, a role and an ExternalId that the lake
    has not."""
    source = make_lake(prefix="exports")
    key = source.seeded.base_key
    canaries.values |= {
        "source's external_id": source.seeded.external_id,
        "source's secret_access_key": key.secret_access_key,
        "lake's secret_access_key": lake.seeded.base_key.secret_access_key,
    }
    for number in range(3):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"id": [number]}), sink)
        for ending, body in (
            ("csv", f"id,name\n{number},x\n".encode()),
            ("parquet", sink.getvalue().to_pybytes()),
        ):
            name = f"exports/day 1/part+{number}.{ending}"
            lake.server.s3.put_object(Bucket=source.seeded.bucket, Key=name, Body=body)
    return source


def _write_s3_pipeline(lake: Lake, source: Lake, folder: Path, endpoint: str) -> None:
    """Write documents of a table that Python reads and one that Spark reads."""
    day = f"s3://{source.seeded.bucket}/exports/day 1"
    credentials = {
        "role_arn": source.seeded.role_arn,
        "external_id": {"env": "SOURCE_EXTERNAL_ID"},
        "access_key_id": {"env": "SOURCE_KEY"},
        "secret_access_key": {"env": "SOURCE_SECRET"},
    }
    references = {name: {"env": f"CANARY_{name.upper()}"} for name in SETTINGS}
    lake.write_pipeline(
        folder,
        name=PIPELINE,
        endpoint=endpoint,
        source={
            "type": "FILES",
            "format": "CSV",
            "options": {"header": True},
            "credentials": credentials,
        },
        tables=[
            {"table": "orders", "path": f"{day}/*.csv"},
            {
                "table": "by_spark",
                "path": f"{day}/*.parquet",
                "format": "PARQUET",
                "options": {"datetimeRebaseMode": "LEGACY"},
            },
        ],
        destination={"credentials": {"role_arn": lake.seeded.role_arn, **references}},
    )


def test_a_load_from_s3_with_another_role_leaves_no_secret_anywhere(
    lake: Lake,
    source: Lake,
    fault_proxy: FaultProxy,
    folder: Path,
    canaries: Canaries,
    jars_cache: Path,
) -> None:
    _write_s3_pipeline(lake, source, folder, fault_proxy.endpoint)
    variables = {
        "SOURCE_EXTERNAL_ID": source.seeded.external_id,
        "SOURCE_KEY": source.seeded.base_key.access_key_id,
        "SOURCE_SECRET": source.seeded.base_key.secret_access_key,
        "LAKELOAD_CACHE_DIR": str(jars_cache),
    }
    event_log = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "event-log").as_uri(),
        "spark.eventLog.compress": "false",
    }
    flags = [part for name, value in event_log.items() for part in ("--conf", f"{name}={value}")]
    flags += ["--master", "local-cluster[1,2,1024]", *QUICK_DRIVER, *QUICK_EXECUTOR]

    as_json = ("pipeline.yml", "--output", "json")
    planned = _run(lake, folder, canaries, "plan", *as_json, **variables)
    asked, issued = len(fault_proxy.requests), len(canaries.values)
    with ArgvWatcher() as watcher, ModeWatcher(folder / "tmp", folder / "runs") as modes:
        logged = ("-vv", "--log-file", "load.log")
        ended = _run(lake, folder, canaries, "sync", *as_json, *logged, *flags, **variables)

    assert planned.code == 0, planned.stderr
    assert planned.document["tables"][0]["files"] == 3
    assert ended.code == 0, ended.stderr
    assert [ended.tables[name]["rows"] for name in ("orders", "by_spark")] == [3, 3]
    assert ended.tables["orders"]["reader"] == "direct"
    # Driver, executor, its Python workers and the programs that Java asks for keys assume no role:
    # they begin with the keys that the command has got.
    assert _assumed_roles(fault_proxy, asked) == {
        lake.seeded.role_arn: 1,
        source.seeded.role_arn: 1,
    }
    assert len(canaries.values) == issued + 2 * 3
    (secret,) = re.findall(r"spark\.authenticate\.secret=(\w+)", modes.properties)
    canaries.values["Spark's secret"] = secret
    _check_places(lake, folder, canaries, watcher)
    _check_modes(folder, modes)
    for command in (planned, ended):
        assert canaries.found_in((command.stdout + command.stderr).encode()) == []


def _assumed_roles(proxy: FaultProxy, since: int) -> Counter[str]:
    return Counter(
        parse_qs(request.body.decode())["RoleArn"][0]
        for request in proxy.requests[since:]
        if request.operation == "AssumeRole"
    )


def _check_places(lake: Lake, folder: Path, canaries: Canaries, watcher: ArgvWatcher) -> None:
    """Check that no file, argv or object has a secret."""
    files = dict(_files(folder))
    # The looking itself: each place holds what it should, so a secret would have been seen.
    names = {path.name for path in files}
    assert {"spec.json", "events.jsonl", "result.json", "spark.log", "load.log"} <= names
    assert "0.profile" in names
    events = [content for path, content in files.items() if "event-log" in path.parts]
    assert any(b"SparkListenerApplicationStart" in content for content in events)
    assert any(f"lakeload:{PIPELINE}".encode() in argv for argv in watcher.seen)
    assert any(b"process_credentials" in argv for argv in watcher.seen)
    assert any(name.startswith("issued SessionToken") for name in canaries.values)
    assert canaries.found_in(f"x{canaries.values['session_token']}y".encode()) == ["session_token"]

    for path, content in files.items():
        assert canaries.found_in(content) == [], f"in the file {path}"
    for argv in watcher.seen:
        assert canaries.found_in(argv) == [], "in the argv of a process"
    objects = lake.keys()
    assert objects
    for key in objects:
        assert canaries.found_in(lake.read(key)) == [], f"in the object {key}"


def _check_modes(folder: Path, modes: ModeWatcher) -> None:
    """Check that only the owner can read what a load makes, and that nothing temporary is left."""
    temporary = {path for path in modes.seen if path.is_relative_to(folder / "tmp")}
    # Spark's files, those of an executor of its own, and a library that Java unpacks are there.
    for name in ("blockmgr-*", "executor-*", "*snappy*"):
        assert any(path.match(name) for path in temporary), name
    assert modes.readable == {}
    assert list((folder / "tmp").iterdir()) == []


@pytest.mark.usefixtures("forked_commands")
@pytest.mark.parametrize(
    "command",
    [
        ("validate", "pipeline.yml"),
        ("test-connection", "destination.yml"),
        ("test-connection", "destination.yml", "--output", "json"),
        ("plan", "pipeline.yml"),
        ("plan", "pipeline.yml", "--output", "json"),
    ],
    ids=" ".join,
)
def test_no_command_shows_a_secret(
    command: tuple[str, ...], lake: Lake, folder: Path, canaries: Canaries
) -> None:
    # What it says without `-vv` is among this.
    ended = _run(lake, folder, canaries, *command, "-vv")
    assert ended.code == 0, ended.stderr
    assert canaries.found_in((ended.stdout + ended.stderr).encode()) == []


@pytest.mark.usefixtures("forked_commands")
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("command", ["test-connection", "sync"])
def test_failures_about_a_secret_do_not_show_it(
    command: str, setting: str, lake: Lake, folder: Path, canaries: Canaries
) -> None:
    # A value with blanks is also malformed, and what is malformed an error likes to quote.
    canaries.values[setting] = wrong = f"CANARY wrong {setting}"
    canaries.values[f"{setting}, a part"] = wrong.replace(" ", "%20")
    ended = _run(lake, folder, canaries, command, "pipeline.yml", "-vv", "--log-file", "run.log")
    assert ended.code == 3, ended.stdout + ended.stderr
    assert canaries.found_in((ended.stdout + ended.stderr).encode()) == []
    for path, content in _files(folder):
        assert canaries.found_in(content) == [], f"in the file {path}"
