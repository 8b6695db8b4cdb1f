"""The kinds of sources: one line for each, by the type of a table's `input`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lakeload_jobs.contract.spec import FilesInput, JobSpec, TableSpec
from lakeload_jobs.sources.base import Source
from lakeload_jobs.sources.files.spark.source import FilesSource

SOURCES: dict[type, Callable[[JobSpec, TableSpec, Any], Source]] = {FilesInput: FilesSource}
"""Each takes the table's input as the third, which is of its own type."""


def source_of(spec: JobSpec, table: TableSpec) -> Source:
    """Return the source of a table of the job. Raises `TypeError` for an input of no known kind."""
    kind = type(table.input)
    if kind not in SOURCES:
        raise TypeError(f"no source reads {kind.__name__}")
    return SOURCES[kind](spec, table, table.input)
