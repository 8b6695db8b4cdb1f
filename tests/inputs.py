"""The input of a table, for tests that are about one type of source."""

from __future__ import annotations

from lakeload_jobs.contract.spec import FilesInput, TableSpec


def files_of(table: TableSpec) -> FilesInput:
    """Return the files that a table is read from."""
    assert isinstance(table.input, FilesInput)
    return table.input
