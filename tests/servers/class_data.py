"""An AppCDS archive for the syncs of tests: made once, in a cache that all runs share.

Only a fifth of the time of a small sync is its own work; the archive takes a third off the rest.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.servers.jars import CACHE

_PIPELINE = """\
version: 1
name: class-data
destination: {version: 1, bucket: none, region: us-east-1}
namespace: shop
source: {type: FILES, format: CSV}
tables: [{table: t, path: t.csv}]
"""

SECONDS = 1800
"""A minute of CPU, which may be several on a machine that is busy."""

_ROOT = Path(__file__).parents[2]
_MAKERS = re.compile(r"train|appcds")
"""What the modules that make an archive have in their paths: one that was made by other code would
prove nothing of this."""


def cache_with_class_data() -> Path:
    """Return a LAKELOAD_CACHE_DIR with the archive of loads that need no jars.

    Processes that want it at the same time wait for the one that makes it.
    """
    return fetched()[0]


@functools.cache
def fetched() -> tuple[Path, dict[str, Any]]:
    """Return the same, and what `lakeload jars fetch` says of it."""
    # With a blank: the path is among Java's options.
    cache = CACHE / f"class data {_digest()}"
    with tempfile.TemporaryDirectory(prefix="class-data-") as folder:
        pipeline = Path(folder) / "pipeline.yml"
        pipeline.write_text(_PIPELINE, encoding="utf-8")
        ended = subprocess.run(
            [sys.executable, "-m", "lakeload", "jars", "fetch", str(pipeline), "--output", "json"],
            cwd=folder,
            env={**os.environ, "LAKELOAD_CACHE_DIR": str(cache)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    if ended.returncode != 0:
        raise RuntimeError(f"`lakeload jars fetch` ended with {ended.returncode}: {ended.stderr}")
    document: dict[str, Any] = json.loads(ended.stdout)
    return cache, document


def _digest() -> str:
    digest = hashlib.sha256()
    modules = [path for root in ("cli", "sparkjobs") for path in (_ROOT / root).rglob("*.py")]
    makers = [path for path in sorted(modules) if _MAKERS.search(str(path.relative_to(_ROOT)))]
    assert makers, "no module makes class data"
    for file in makers:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]
