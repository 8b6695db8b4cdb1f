"""Secrets stay where they belong: no file, log, event log, argv, output or object holds one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.canaries import SETTINGS, Canaries, canaries_of
from tests.e2e.command import Ended, lakeload
from tests.e2e.watching import ArgvWatcher
from tests.servers.fault_proxy import FaultProxy, edit_body
from tests.servers.ministack import Lake

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


def test_a_load_leaves_no_secret_anywhere(lake: Lake, folder: Path, canaries: Canaries) -> None:
    event_log = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "event-log").as_uri(),
        "spark.eventLog.compress": "false",
    }
    flags = [part for name, value in event_log.items() for part in ("--conf", f"{name}={value}")]
    with ArgvWatcher() as watcher:
        ended = _run(
            lake, folder, canaries, "sync", "pipeline.yml", "-vv", "--log-file", "load.log", *flags
        )
    assert ended.code == 0, ended.stderr
    files = dict(_files(folder))

    # The looking itself: each place holds what it should, so a secret would have been seen.
    names = {path.name for path in files}
    assert {"spec.json", "events.jsonl", "result.json", "spark.log", "load.log"} <= names
    events = [content for path, content in files.items() if "event-log" in path.parts]
    assert any(b"SparkListenerApplicationStart" in content for content in events)
    assert any(f"lakeload:{PIPELINE}".encode() in argv for argv in watcher.seen)
    # By the command: the driver and its workers begin with the keys that it has got.
    assert sum(name.startswith("issued SessionToken") for name in canaries.values) == 1
    assert canaries.found_in(f"x{canaries.values['session_token']}y".encode()) == ["session_token"]

    for path, content in files.items():
        assert canaries.found_in(content) == [], f"in the file {path}"
    for argv in watcher.seen:
        assert canaries.found_in(argv) == [], "in the argv of a process"
    objects = lake.keys()
    assert objects
    for key in objects:
        assert canaries.found_in(lake.read(key)) == [], f"in the object {key}"
    assert canaries.found_in((ended.stdout + ended.stderr).encode()) == []


@pytest.mark.usefixtures("forked_commands")
@pytest.mark.parametrize("verbosity", [(), ("-vv",)], ids=" ".join)
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
    command: tuple[str, ...],
    verbosity: tuple[str, ...],
    lake: Lake,
    folder: Path,
    canaries: Canaries,
) -> None:
    ended = _run(lake, folder, canaries, *command, *verbosity)
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
