"""Iceberg's implementation of the command line's table operations."""

from collections.abc import Sequence

from lakeload.formats.iceberg.inspect import inspect
from lakeload.formats.iceberg.plan import judge, plan
from lakeload.formats.iceberg.recover import recover, resolve
from lakeload.formats.iceberg.reset import reset
from lakeload.formats.iceberg.runs import runs
from lakeload_jobs.contract.maintain import MaintainSpec
from lakeload_jobs.contract.spec import DestinationSpec, TableSpec

__all__ = ["inspect", "judge", "maintain", "plan", "recover", "reset", "resolve", "runs"]


def maintain(
    _destination: DestinationSpec, _tables: Sequence[TableSpec], _wanted: MaintainSpec
) -> None:
    """Return None: compaction, expiry and the rest are a Spark job."""
