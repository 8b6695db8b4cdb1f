"""The kinds of sources: one line for each, by the type of a table's `input`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import (
    FilesInput,
    JdbcInput,
    JobSpec,
    RejectedInput,
    SparkInput,
    TableSpec,
)
from lakeload_jobs.sources.base import Source
from lakeload_jobs.sources.databases.engines.registry import connect_databases
from lakeload_jobs.sources.files.spark.rejected import connect_rejected
from lakeload_jobs.sources.files.spark.source import connect_files
from lakeload_jobs.sources.spark.source import connect_spark

SOURCES: dict[type, Callable[[JobSpec, AwsSession], Callable[[TableSpec, Any], Source]]] = {
    FilesInput: connect_files,
    SparkInput: connect_spark,
    JdbcInput: connect_databases,
    RejectedInput: connect_rejected,
}
"""What each returns takes the table's input as the second, which is of its own type."""


class Sources:
    """The sources of one run. What its tables share is made here, and lives as long as the run."""

    def __init__(self, spec: JobSpec, aws: AwsSession) -> None:
        needed = {type(table.input) for table in spec.tables}
        self._kinds = {
            kind: connect(spec, aws) for kind, connect in SOURCES.items() if kind in needed
        }

    def of(self, table: TableSpec) -> Source:
        """Return the source of a table. Raises `TypeError` for an input of no known kind."""
        kind = type(table.input)
        if kind not in self._kinds:
            raise TypeError(f"no source reads {kind.__name__}")
        return self._kinds[kind](table, table.input)
