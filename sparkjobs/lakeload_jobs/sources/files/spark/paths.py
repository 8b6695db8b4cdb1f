"""Paths as Spark writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakeload_jobs.contract.spec import FilesInput
from lakeload_jobs.sources.files.file_state import S3_SCHEME, FileState, is_s3
from lakeload_jobs.sources.files.key_patterns import last_name_glob

_HADOOP_MAGIC = "{}[]*?\\"


def spark_path(path: str, *, literal: bool = True) -> str:
    """Return `path` as Spark wants it: every character taken literally where it expands globs,
    and `literal` False for settings in which it does not."""
    place = path.replace(S3_SCHEME, "s3a://", 1) if is_s3(path) else f"file:{path}"
    return "".join(f"\\{c}" if c in _HADOOP_MAGIC else c for c in place) if literal else place


def plain_path(uri: str) -> str:
    """Return the path behind one of Spark's `file:///…` or `s3a://…` URIs."""
    parts = urlsplit(uri.replace("#", "%23").replace("?", "%3F"))
    path = unquote(parts.path)
    return f"{S3_SCHEME}{parts.netloc}{path}" if parts.scheme == "s3a" else path


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
