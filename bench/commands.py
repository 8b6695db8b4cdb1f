"""What the measured commands are started with: the environment, and lakeload's cache folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench.data import bench_dir

LAKELOAD = str(Path(sys.executable).with_name("lakeload"))


def plain_environment() -> dict[str, str]:
    """Return this process's environment without settings that would change a contestant."""
    dropped = (
        *("AWS_", "SPARK_", "PYSPARK_", "LAKELOAD_", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"),
        "PYTHONDONTWRITEBYTECODE",
    )
    return {key: value for key, value in os.environ.items() if not key.startswith(dropped)}


def cache(*, archive: bool = False) -> Path:
    """Return a LAKELOAD_CACHE_DIR, which is there: one with AppCDS archives, or one without."""
    folder = bench_dir() / ("lakeload-cache-class-data" if archive else "lakeload-cache")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def make_archive(pipeline: Path) -> None:
    """Make the archive for the pipeline's loads, unless it is there."""
    subprocess.run(
        [LAKELOAD, "jars", "fetch", str(pipeline)],
        env=plain_environment() | {"LAKELOAD_CACHE_DIR": str(cache(archive=True))},
        stdout=subprocess.DEVNULL,
        check=True,
    )
