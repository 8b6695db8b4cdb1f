"""The table formats that the command line knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lakeload.formats.base import FormatCommands
from lakeload_jobs.contract.spec import TableFormat


def commands_of(table_format: TableFormat) -> FormatCommands:
    """Return what the command line does with tables of a format."""
    return _FORMATS[table_format]()


def _parquet() -> FormatCommands:
    from lakeload.formats.parquet import commands

    return commands


def _iceberg() -> FormatCommands:
    # Imports a reader of Avro files, which other tables do without.
    from lakeload.formats.iceberg import commands

    return commands


_FORMATS: Mapping[TableFormat, Callable[[], FormatCommands]] = {
    "PARQUET": _parquet,
    "ICEBERG": _iceberg,
}
