"""What every test gets: an environment of its own, and the servers by name."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How quick a machine is decides no verdict.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

pytest_plugins = [
    "tests.servers.ministack",
    "tests.servers.exact_aws",
    "tests.servers.moto",
    "tests.servers.fault_proxy",
    "tests.servers.jars",
    "tests.servers.seaweedfs",
    "tests.servers.nessie",
    "tests.servers.rest_catalog",
    "tests.servers.maven_repository",
    "tests.servers.standalone_spark",
]

_FOREIGN_PREFIXES = ("AWS_", "LAKELOAD_", "SPARK_", "PYSPARK_", "XDG_")
_FOREIGN_NAMES = {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "JAVA_TOOL_OPTIONS"}
_PROXIES = {"http_proxy", "https_proxy", "all_proxy", "no_proxy"}


def pytest_configure() -> None:
    """Let stop signals reach what the tests start, however the tests were started.

    nohup and background jobs ignore SIGHUP or SIGINT, and children inherit that. A handler, which
    they do not inherit, gives them the default and leaves this process as deaf as it was.
    """
    for number in (signal.SIGHUP, signal.SIGINT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


@pytest.fixture(autouse=True)
def isolation(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hide the developer's AWS, Spark, proxy and terminal settings; return the test's own HOME."""
    for name in list(os.environ):
        foreign = name.startswith(_FOREIGN_PREFIXES) and not name.startswith("LAKELOAD_TEST_")
        if foreign or name in _FOREIGN_NAMES or name.lower() in _PROXIES:
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    # Without it the default chain asks the instance metadata service, where there may be one.
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    return home


_QUICK_FIRST = ("unit", "", "model", "servers", "integration", "faults", "e2e")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run what takes milliseconds before what starts servers, and that before what starts Spark."""
    items.sort(key=lambda item: _QUICK_FIRST.index(_folder(item.path)))


def _folder(path: Path) -> str:
    """Return the folder of `tests` a test lies in; '' for one at its top."""
    first, *rest = path.relative_to(Path(__file__).parent).parts
    return first if rest else ""
