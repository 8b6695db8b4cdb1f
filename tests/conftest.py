"""What every test gets: an environment of its own, and the servers by name."""

from __future__ import annotations

import atexit
import gc
import itertools
import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from tests.environments import EXHAUSTIVE, is_foreign
from tests.scheduler import FewSparkSessions

_SESSIONS: list[pytest.Session] = []
"""The session of this process, once its tests are collected."""


@atexit.register  # before everything that tests import, and so called after what that registers
def _end() -> None:
    """End this process without freeing its memory, which takes the interpreter three CPU seconds
    after seven thousand tests; not where pytest itself has failed, whose status is another."""
    if _SESSIONS and not hasattr(sys, "last_value"):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_SESSIONS[-1].exitstatus)


pytest_plugins = [
    "tests.json_documents",
    "tests.servers.sharing",
    "tests.servers.spark",
    "tests.servers.ministack",
    "tests.servers.exact_aws",
    "tests.servers.moto",
    "tests.servers.fault_proxy",
    "tests.servers.jars",
    "tests.servers.seaweedfs",
    "tests.servers.nessie",
    "tests.servers.rest_catalog",
    "tests.servers.postgres",
    "tests.servers.mariadb",
    "tests.servers.maven_repository",
    "tests.servers.standalone_spark",
]


def pytest_configure() -> None:
    """Let stop signals reach what the tests start, however the tests were started.

    nohup and background jobs ignore SIGHUP or SIGINT, and children inherit that. A handler, which
    they do not inherit, gives them the default and leaves this process as deaf as it was.

    And search for garbage less often.
    """
    for number in (signal.SIGHUP, signal.SIGINT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    # Tests make much garbage and few cycles. Python's own numbers cost a quarter of the time in
    # which tests are collected.
    gc.set_threshold(50_000, 50, 100)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name binary parameters after their argument.

    Their bytes can hold the time (gzip does), and every worker has to find the same names.
    """
    if isinstance(val, bytes) and not val.decode("latin-1").isprintable():
        return argname
    return None


@pytest.fixture(scope="session")
def folder_numbers() -> Iterator[int]:
    """Numbers for folders of this session."""
    return itertools.count()


@pytest.fixture
def tmp_path(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    folder_numbers: Iterator[int],
) -> Path:
    """A new folder: pytest's own looks through all that there are for a free name."""
    name = _NO_WORDS.sub("_", request.node.name)[:30]
    folder = tmp_path_factory.getbasetemp() / f"{name}_{next(folder_numbers)}"
    folder.mkdir(mode=0o700)
    return folder


_NO_WORDS = re.compile(r"\W")


@pytest.fixture(scope="session")
def homes(
    tmp_path_factory: pytest.TempPathFactory, folder_numbers: Iterator[int]
) -> Iterator[Path]:
    """Folders that are not there yet."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in folder_numbers)


@pytest.fixture
def home(homes: Iterator[Path]) -> Path:
    """A new folder."""
    folder = next(homes)
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def isolation(monkeypatch: pytest.MonkeyPatch, home: Path) -> Path:
    """Hide the developer's AWS, Spark, proxy and terminal settings; return the test's own HOME."""
    for name in list(os.environ):
        if is_foreign(name):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    if signals := sys.modules.get("lakeload_jobs.jobs.stop_signals"):
        # A signal of an earlier test would stop the jobs of this process.
        monkeypatch.setattr(signals, "_noted", [])
        monkeypatch.setattr(signals, "_holding", False)
    # Without it the default chain asks the instance metadata service, where there may be one.
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    return home


_QUICK = ("unit", "corpus", "", "model", "servers")
"""Folders whose tests take milliseconds, in the order in which they run."""
_SECONDS: dict[str, float] = json.loads(Path(__file__).with_name("times.json").read_text("utf-8"))
"""CPU seconds of test files, written by `python -m tests.times --json tests/times.json`."""


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """Start Spark in fewer workers than there are, where whole files are distributed."""
    return FewSparkSessions(config, log) if config.option.dist == "loadfile" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run what takes milliseconds before what starts Spark and servers, and of that the long files
    before the short ones; leave the exhaustive tests to `make faults`."""
    if not EXHAUSTIVE:
        exhaustive = [item for item in items if item.get_closest_marker("exhaustive")]
        config.hook.pytest_deselected(items=exhaustive)
        items[:] = [item for item in items if not item.get_closest_marker("exhaustive")]
    items.sort(key=lambda item: _rank(item.path))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave what was collected out of every later search for garbage.

    Seven thousand tests are half a million objects, all of which stay until the end.
    """
    gc.collect()
    gc.freeze()
    _SESSIONS.append(session)


def _rank(path: Path) -> tuple[int, float]:
    """Return the place of a file in the run: a stage, and a place in it."""
    name = path.relative_to(Path(__file__).parent).as_posix()
    folder = name.partition("/")[0] if "/" in name else ""
    if folder in _QUICK:
        return 0, _QUICK.index(folder)
    return 1, -_SECONDS.get(f"tests/{name}", 0)
