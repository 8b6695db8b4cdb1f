"""Iceberg's implementation of the command line's table operations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from lakeload.formats.iceberg.inspect import inspect
from lakeload.formats.iceberg.plan import judge, plan
from lakeload.formats.iceberg.runs import runs
from lakeload.formats.reports import Decision, RecoveryReport, ResetReport, ResolutionReport
from lakeload.formats.tables import TablesRequest
from lakeload_jobs.contract.maintain import MaintainSpec
from lakeload_jobs.contract.spec import DestinationSpec, TableSpec
from lakeload_jobs.formats.iceberg.rules.writers import needs_java

__all__ = ["inspect", "judge", "needs_java", "plan", "runs"]


def maintain(
    _destination: DestinationSpec, _tables: Sequence[TableSpec], _wanted: MaintainSpec
) -> None:
    """Return None: compaction, expiry and the rest are a Spark job."""


# pyiceberg takes half a second of CPU to import: loads do without what needs it.


def recover(
    request: TablesRequest, *, abort_older_than: timedelta, dry_run: bool
) -> RecoveryReport:
    """Finish or remove what killed runs have left."""
    from lakeload.formats.iceberg import recover as module

    return module.recover(request, abort_older_than=abort_older_than, dry_run=dry_run)


def resolve(
    request: TablesRequest, decision: Decision, job_id: str, *, act: bool
) -> ResolutionReport:
    """Raise `InvalidInput`: an Iceberg table has no job to decide about."""
    from lakeload.formats.iceberg import recover as module

    return module.resolve(request, decision, job_id, act=act)


def reset(request: TablesRequest, *, with_log: bool, act: bool) -> ResetReport:
    """Remove what the pipeline has loaded; without `act` say what would go."""
    from lakeload.formats.iceberg import reset as module

    return module.reset(request, with_log=with_log, act=act)
