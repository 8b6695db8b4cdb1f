"""Reset of Parquet tables: one pipeline's objects go, exactly those, and if wanted the log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lakeload.formats.parquet.tables import ParquetTables, open_tables
from lakeload.formats.reports import ResetReport, ResetTable
from lakeload.formats.tables import TableRef, TablesRequest, about, each_table
from lakeload.launch.spec import author
from lakeload_jobs.contract.errors import LakeloadError, LoadFailed
from lakeload_jobs.core.sizes import counted, format_size
from lakeload_jobs.formats.parquet.log.records import LogDamaged
from lakeload_jobs.formats.parquet.log.reset import (
    RemovedObjects,
    ResetPlan,
    Resetter,
    check_removable,
    half_removed,
    remove_log,
)

KEYS_SHOWN = 10


@dataclass(frozen=True)
class LogReset:
    """One table: what a reset would remove, and what it has removed."""

    plan: ResetPlan | None = None
    half_removed: bool = False
    """An earlier removal of the log stopped half-way: only the rest of the log is left."""
    removed: RemovedObjects | None = None
    log_objects: int = 0
    """Objects of the log that would go, or are gone."""


def reset(request: TablesRequest, *, with_log: bool, act: bool) -> ResetReport:
    """Say what of the pipeline goes, and with `act` remove it; one table's failure leaves the
    others alone. Who did it stands in the logs, for people."""
    job = _Job(open_tables(request), f"lakeload reset by {author()}", with_log)
    tables = each_table(
        job.lake.tables,
        lambda table: _table(table.target, job.run(table) if act else job.plan(table), done=act),
        lambda table, error: _table(table.target, LogReset(), error=error),
    )
    return ResetReport(tables, act)


@dataclass(frozen=True)
class _Job:
    """What all tables of one `reset` have in common."""

    lake: ParquetTables
    reason: str
    with_log: bool

    @property
    def pipeline(self) -> str:
        return self.lake.pipeline or ""

    def plan(self, table: TableRef) -> LogReset:
        """Say what `run` would do. Reads only."""
        try:
            plan = self._resetter(table).plan()
        except LogDamaged:
            if not self._half_removed(table):
                raise
            return LogReset(half_removed=True)
        if self.with_log and not plan.unfinished:
            check_removable(self.lake.objects, table.location, self.pipeline)
        return LogReset(plan, log_objects=plan.log_objects if self.with_log else 0)

    def run(self, table: TableRef) -> LogReset:
        """Remove what is the pipeline's, then if wanted the log."""
        found = self.plan(table)
        removed = None
        if not found.half_removed:
            resetter = self._resetter(table)
            removed = resetter.run(self.reason)
            if self.with_log and found.log_objects:
                resetter.seal(self.reason)
        log_objects = 0
        if self.with_log:
            lake = self.lake
            log_objects = remove_log(lake.objects, table.location, self.pipeline, lake.parallelism)
        return replace(found, removed=removed, log_objects=log_objects)

    def _half_removed(self, table: TableRef) -> bool:
        """Whether the gap in the log is that of a removal; without `with_log` that is an error."""
        if not half_removed(self.lake.objects, table.location, self.pipeline):
            return False
        if not self.with_log:
            raise LoadFailed(
                f"the log of `{table.target}` is partially removed: `reset --with-log` was "
                "interrupted",
                hint="finish it with `lakeload reset --with-log --yes`",
            )
        return True

    def _resetter(self, table: TableRef) -> Resetter:
        return Resetter(
            self.lake.objects,
            table.location,
            self.pipeline,
            catalog=self.lake.catalog,
            parallelism=self.lake.parallelism,
            notify=about(table, self.lake.notify),
        )


def _table(
    target: str, found: LogReset, *, done: bool = False, error: LakeloadError | None = None
) -> ResetTable:
    plan, removed = found.plan, found.removed
    document = {
        "plan": _plan_document(plan) if plan else None,
        "log_objects": found.log_objects,
        "removed": None
        if removed is None
        else {
            "record": removed.number,
            "objects": removed.objects,
            "rows": removed.rows,
            "bytes": removed.bytes,
            "glue": [f"{glue.database}.{glue.table}" for glue in removed.glue],
            "left": removed.left,
        },
    }
    if error is not None:
        return ResetTable(target, (), document, error=error)
    lines = tuple(_removed(found) if done else _planned(found)) or ("no rows of this pipeline",)
    log = found.half_removed or found.log_objects > 0
    pending = log or (plan is not None and not plan.nothing_to_do)
    return ResetTable(target, lines, document, tuple(_kept(found)), pending)


def _planned(found: LogReset) -> Iterator[str]:
    if (plan := found.plan) and not plan.nothing_to_do:
        if plan.begun is not None:
            yield f"would continue the reset of record {plan.begun}"
        for own in plan.unfinished:
            amount = (
                f"{counted(len(own.record.uploads), 'file')}, {counted(own.record.all_rows, 'row')}"
            )
            job = own.record.job_id
            yield f"would first finish job {job}: {amount}, removed as well"
        yield (
            f"would remove {counted(len(plan.objects), 'object')} of "
            f"{counted(len(plan.loaded), 'job')}: {counted(plan.rows, 'row')}, "
            f"{format_size(plan.bytes)}"
        )
        for glue in plan.glue:
            yield f"would drop Glue's table {glue.database}.{glue.table}"
    if found.half_removed:
        yield "would remove the rest of the log"
    elif found.log_objects:
        yield f"would remove the log: {counted(found.log_objects, 'object')}"


def _removed(found: LogReset) -> Iterator[str]:
    if (removed := found.removed) and removed.number is not None:
        amount = f"{counted(removed.rows, 'row')}, {format_size(removed.bytes)}"
        yield f"removed {counted(removed.objects, 'object')}: {amount}"
        for glue in removed.glue:
            yield f"dropped Glue's table {glue.database}.{glue.table}"
        for key in removed.left:
            yield f"left {key}: another writer has changed it"
    if found.log_objects:
        yield f"removed the log: {counted(found.log_objects, 'object')}"


def _kept(found: LogReset) -> Iterator[str]:
    """Yield what stays: other pipelines' rows, objects that nobody's record names."""
    if (plan := found.plan) is None:
        return
    for name in plan.others:
        yield f"the rows of pipeline {name} stay"
    if plan.log_objects and not found.log_objects:
        yield "the log stays (`--with-log` removes it as well)"
    if plan.strangers:
        yield f"left in place, because no record names it: {counted(len(plan.strangers), 'object')}"
        for key in plan.strangers[:KEYS_SHOWN]:
            yield f"  {key}"
        if (more := len(plan.strangers) - KEYS_SHOWN) > 0:
            yield f"  and {more:,} more"


def _plan_document(plan: ResetPlan) -> dict[str, object]:
    return {
        "jobs": [own.record.job_id for own in plan.records],
        "unfinished": [own.record.job_id for own in plan.unfinished],
        "begun": plan.begun,
        "objects": [item.key for item in plan.objects],
        "rows": plan.rows,
        "bytes": plan.bytes,
        "glue": [f"{glue.database}.{glue.table}" for glue in plan.glue],
        "other_pipelines": plan.others,
        "left": plan.strangers,
    }
