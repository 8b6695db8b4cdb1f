"""AppCDS archives for the syncs of tests: a small one that is made in seconds, and a whole one."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from lakeload.machine.spark import find_spark
from tests.servers.jars import CACHE

_PIPELINE = """\
version: 1
name: class-data
destination: {version: 1, bucket: none, region: us-east-1}
namespace: shop
source: {type: FILES, format: CSV}
tables: [{table: t, path: t.csv}]
"""

_SUBMIT = """\
#!/bin/sh
# spark-submit, whose training run loads nothing.
for word; do
  shift
  case "$word" in */run_training.py) word={nothing};; esac
  set -- "$@" "$word"
done
exec "$SPARK_HOME/bin/spark-class" org.apache.spark.deploy.SparkSubmit "$@"
"""

SECONDS = 1800
"""A minute of CPU, which may be several on a machine that is busy."""

_ROOT = Path(__file__).parents[2]
_MAKERS = re.compile(r"train|appcds")
"""What the modules that make an archive have in their paths: one that was made by other code would
prove nothing of this."""


@functools.cache
def whole_archive() -> tuple[Path, dict[str, Any]]:
    """Return a LAKELOAD_CACHE_DIR with the archive of loads that need no jars, and what `lakeload
    jars fetch` says of it. All runs share it.

    Processes that want it at the same time wait for the one that makes it.
    """
    # With a blank: the path is among Java's options.
    cache = CACHE / f"class data {_digest()}"
    return cache, _fetch(LAKELOAD_CACHE_DIR=str(cache))


def small_archive(folder: Path) -> tuple[Path, Path]:
    """Make the archive of classes with which Spark starts, in three seconds of CPU: of a load that
    loads nothing. Return a SPARK_HOME, and a LAKELOAD_CACHE_DIR that has the archive for it."""
    spark, home, cache = find_spark({}).home, folder / "spark", folder / "class data"
    nothing = folder / "load_nothing.py"
    nothing.write_text("")
    (home / "bin").mkdir(parents=True)
    (home / "jars").symlink_to(spark / "jars")
    for name in ("spark-class", "load-spark-env.sh", "find-spark-home"):
        (home / "bin" / name).symlink_to(spark / "bin" / name)
    submit = home / "bin" / "spark-submit"
    submit.write_text(_SUBMIT.format(nothing=shlex.quote(str(nothing))))
    submit.chmod(0o755)
    document = _fetch(LAKELOAD_CACHE_DIR=str(cache), SPARK_HOME=str(home))
    assert [archive["state"] for archive in document["archives"]] == ["usable"], document
    return home, cache


def _fetch(**variables: str) -> dict[str, Any]:
    """Return what `lakeload jars fetch` says."""
    with tempfile.TemporaryDirectory(prefix="class-data-") as folder:
        pipeline = Path(folder) / "pipeline.yml"
        pipeline.write_text(_PIPELINE, encoding="utf-8")
        ended = subprocess.run(
            [sys.executable, "-m", "lakeload", "jars", "fetch", str(pipeline), "--output", "json"],
            cwd=folder,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    if ended.returncode != 0:
        raise RuntimeError(f"`lakeload jars fetch` ended with {ended.returncode}: {ended.stderr}")
    document: dict[str, Any] = json.loads(ended.stdout)
    return document


def _digest() -> str:
    digest = hashlib.sha256()
    modules = [path for root in ("cli", "sparkjobs") for path in (_ROOT / root).rglob("*.py")]
    makers = [path for path in sorted(modules) if _MAKERS.search(str(path.relative_to(_ROOT)))]
    assert makers, "no module makes class data"
    for file in makers:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]
