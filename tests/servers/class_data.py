"""A class-data archive for the syncs of tests: made once, in the cache that all runs share.

Only a fifth of the time of a small sync is its own work; the archive takes a third off the rest.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

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


@functools.cache
def cache_with_class_data() -> Path:
    """Return a LAKELOAD_CACHE_DIR with the archive of loads that need no jars.

    Processes that want it at the same time wait for the one that makes it.
    """
    with tempfile.TemporaryDirectory(prefix="class-data-") as folder:
        pipeline = Path(folder) / "pipeline.yml"
        pipeline.write_text(_PIPELINE, encoding="utf-8")
        subprocess.run(
            [sys.executable, "-m", "lakeload", "jars", "fetch", str(pipeline)],
            cwd=folder,
            env={**os.environ, "LAKELOAD_CACHE_DIR": str(CACHE)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=True,
        )
    return CACHE
