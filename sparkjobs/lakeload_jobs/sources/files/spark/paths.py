"""Paths as Spark writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakeload_jobs.contract.spec import FilesInput
from lakeload_jobs.sources.paths.file_state import FileState
from lakeload_jobs.sources.paths.key_patterns import last_name_glob
from lakeload_jobs.sources.paths.spark_paths import plain_path, spark_path

_FEW = 32
"""Up to so many paths Spark lists in the driver, beyond it by a job."""

_LISTING = ("modifiedafter", "modifiedbefore", "pathglobfilter", "recursivefilelookup", "timezone")


@dataclass(frozen=True)
class Opening:
    """The paths to open, as Spark takes them, and reader options that go with them."""

    paths: tuple[str, ...]
    options: dict[str, str]
    by_name: bool


def by_name(files: Sequence[FileState]) -> Opening:
    """Name every file."""
    return Opening(tuple(spark_path(file.path) for file in files), {}, True)


def shortest(spark: SparkSession, source: FilesInput, files: Sequence[FileState]) -> Opening:
    """Name the folders of many files where Spark finds just these files in them, else the files."""
    if len(files) <= _FEW:
        return by_name(files)
    options = {k: v for k, v in source.options.items() if k.lower() in _LISTING}
    extra: dict[str, str] = {}
    folders = {file.root or file.path.rpartition("/")[0] for file in files}
    pattern = last_name_glob(source.paths[0]) if len(source.paths) == 1 else None
    if pattern is not None and not any(name.lower() == "pathglobfilter" for name in options):
        extra["pathGlobFilter"] = pattern
    if len(folders) > _FEW:
        return by_name(files)
    paths = tuple(spark_path(folder) for folder in sorted(folders))
    try:
        frame = spark.read.format("text").options(**options, **extra).load(list(paths))
        found = {plain_path(uri) for uri in frame.inputFiles()}
    except (PySparkException, Py4JJavaError):
        # Folders that Spark cannot read together, or not as partitions: their files it can.
        return by_name(files)
    if found == {file.path for file in files}:
        return Opening(paths, extra, False)
    return by_name(files)
