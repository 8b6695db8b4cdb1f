"""Paths as Spark writes them."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from lakeload_jobs.sources.paths.file_state import S3_SCHEME, is_s3

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
