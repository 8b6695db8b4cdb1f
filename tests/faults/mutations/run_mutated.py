"""One test on changed sources, in a process of its own that is forked from one with the libraries.

Nothing here may import the product: the test does, after the changed sources are on the path.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Mapping
from multiprocessing.context import ForkServerContext
from pathlib import Path

LIBRARIES = (
    *("boto3", "botocore.session", "pyarrow.parquet", "pyiceberg.catalog", "pyiceberg.table"),
    *("cryptography.x509", "jinja2", "jsonschema", "platformdirs", "psutil", "psycopg"),
    *("py4j.java_gateway", "pydantic", "pymysql", "pytest", "requests", "rich.markdown"),
    *("rich.progress", "rich.table", "trustme", "typer", "typer.rich_utils", "unidecode", "yaml"),
)
"""What takes longer to import than a test of the protocol to run."""


def server() -> ForkServerContext:
    """Return what starts processes that have the libraries."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(LIBRARIES))
    return context


def run(
    context: ForkServerContext, test: str, sources: Path, log: Path, environment: Mapping[str, str]
) -> tuple[int, str]:
    """Run one test with the product below `sources`; return pytest's exit code and its output."""
    given = (test, str(sources), str(log), dict(environment))
    process = context.Process(target=_test, args=given)
    process.start()
    process.join()
    return process.exitcode or 0, log.read_text(encoding="utf-8", errors="replace")


def _test(test: str, sources: str, log: str, environment: Mapping[str, str]) -> None:
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(Path(__file__).parents[3])
    os.environ.clear()
    os.environ.update(environment)
    loaded = [
        name for name in sys.modules if name.partition(".")[0] in ("lakeload_jobs", "lakeload")
    ]
    assert not loaded, f"the unchanged {loaded} are imported already"
    sys.path.insert(0, sources)
    # Read after the fork, like all of the tests.
    import pytest

    # The plugin imports hypothesis, which no test of the protocol uses.
    without = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
    code = pytest.main(["-q", "-x", *without, test])
    sys.stdout.flush()
    os._exit(int(code))
