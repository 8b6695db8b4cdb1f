"""Iceberg's implementation of the command line's table operations."""

from __future__ import annotations

from collections.abc import Sequence

from lakeload.formats.iceberg.inspect import inspect
from lakeload.formats.iceberg.plan import judge, plan
from lakeload.formats.iceberg.recover import recover, resolve
from lakeload.formats.iceberg.reset import reset
from lakeload.formats.iceberg.runs import runs
from lakeload_jobs.contract.maintain import MaintainSpec
from lakeload_jobs.contract.spec import DestinationSpec, TableSpec
from lakeload_jobs.formats.iceberg.rules.writers import needs_java

# What the module defines too: as a `FormatCommands` it has only these.
__all__ = [
    "inspect",
    "judge",
    "maintain",
    "needs_java",
    "plan",
    "recover",
    "reset",
    "resolve",
    "runs",
]


def maintain(
    _destination: DestinationSpec, _tables: Sequence[TableSpec], _wanted: MaintainSpec
) -> None:
    """Return None: compaction, expiry and the rest are a Spark job."""
