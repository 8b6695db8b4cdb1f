"""What every test gets: an environment of its own, and the servers by name."""

from __future__ import annotations

import atexit
import gc
import itertools
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from tests.environments import EXHAUSTIVE, is_foreign
from tests.scheduler import FewSparkSessions

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
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders that are not there yet; pytest's own look through all of them for a free name."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def isolation(monkeypatch: pytest.MonkeyPatch, homes: Iterator[Path]) -> Path:
    """Hide the developer's AWS, Spark, proxy and terminal settings; return the test's own HOME."""
    for name in list(os.environ):
        if is_foreign(name):
            monkeypatch.delenv(name)
    home = next(homes)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    # Without it the default chain asks the instance metadata service, where there may be one.
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    return home


_FIRST = ("e2e/test_class_data.py",)
"""What others would wait for: it makes the AppCDS archive that all syncs of tests share."""
_QUICK = ("unit", "", "model", "servers")
_LONGEST = (
    "integration/sources/databases/test_deletes.py",
    "integration/jobs/test_direct_parquet.py",
    "integration/formats/iceberg/test_catalog_loads.py",
    "faults/test_iceberg.py",
    "integration/formats/test_loads.py",
    "e2e/test_demo.py",
    "integration/formats/iceberg/test_maintain.py",
    "integration/probes/test_misconfigurations.py",
    "faults/mutations/test_mutations.py",
    "faults/test_product.py",
    "integration/formats/test_unreadable_files.py",
    "e2e/test_iceberg.py",
    "integration/formats/iceberg/test_upsert.py",
    "integration/sources/databases/test_late_rows.py",
    "integration/permissions/test_policy_is_what_is_asked.py",
    "integration/sources/databases/test_failures.py",
    "integration/formats/test_retry_rejected.py",
    "e2e/test_executors.py",
    "e2e/test_databases.py",
    "integration/formats/iceberg/test_creators.py",
    "e2e/test_s3_source.py",
    "e2e/test_iceberg_secrets.py",
    "integration/sources/files/spark/test_typed_corpus.py",
    "integration/jobs/test_bad_input.py",
    "integration/formats/test_rows_read_once.py",
    "e2e/test_iceberg_executors.py",
    "integration/sources/files/spark/test_text_corpus.py",
    "integration/sources/files/spark/test_avro.py",
    "integration/sources/databases/test_jdbc_url.py",
    "integration/sources/databases/test_cursors.py",
    "integration/jobs/test_s3_input.py",
    "integration/formats/iceberg/test_partitions.py",
    "integration/sources/databases/test_postgres_loads.py",
    "e2e/test_incremental.py",
    "integration/jobs/test_typed_formats.py",
    "e2e/test_interrupts.py",
    "integration/sources/databases/test_mysql_ranges.py",
    "integration/formats/parquet/glue/test_faults.py",
    "faults/test_damaged_records.py",
    "integration/formats/iceberg/test_publish_races.py",
    "integration/formats/iceberg/test_training.py",
    "integration/jobs/test_incremental.py",
    "e2e/test_other_databases.py",
    "integration/jobs/test_protocol.py",
    "integration/sources/files/spark/test_text_values.py",
)
"""Files of 20 seconds and more, the longest first: none of them is to be alone at the end."""
_FOLDERS = (*_QUICK, "e2e", "faults", "integration")


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


def pytest_collection_finish() -> None:
    """Leave what was collected out of every later search for garbage.

    Seven thousand tests are half a million objects, all of which stay until the end.
    """
    gc.collect()
    gc.freeze()
    # The interpreter finds all of it again at its end, as libraries report what outlives it as a
    # leak; pytest's own searches before that are spared it.
    atexit.register(gc.unfreeze)


def _rank(path: Path) -> tuple[int, int]:
    """Return the place of a file in the run: a stage, and a place in it."""
    parts = path.relative_to(Path(__file__).parent).parts
    name, folder = "/".join(parts), parts[0] if parts[1:] else ""
    if name in _FIRST:
        return 0, 0
    if folder in _QUICK:
        return 1, _QUICK.index(folder)
    if name in _LONGEST:
        return 2, _LONGEST.index(name)
    return 3, _FOLDERS.index(folder)
