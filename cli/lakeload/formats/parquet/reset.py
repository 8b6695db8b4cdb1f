"""Reset of several tables of one pipeline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lakeload.formats.parquet.recover import code_of_errors
from lakeload.formats.tables import UpkeepTable, about, for_each
from lakeload_jobs.contract.errors import ExitCode, LakeloadError, LoadFailed
from lakeload_jobs.formats.parquet.log.publish import Notify
from lakeload_jobs.formats.parquet.log.records import LogDamaged
from lakeload_jobs.formats.parquet.log.reset import (
    Removed,
    ResetPlan,
    Resetter,
    TableCatalog,
    check_removable,
    half_removed,
    remove_log,
)
from lakeload_jobs.storage.objects import Objects


@dataclass(frozen=True)
class TableReset:
    """One table: what a reset would remove, and what it has removed."""

    target: str
    plan: ResetPlan | None = None
    half_removed: bool = False
    """An earlier removal of the log stopped half-way: only the rest of the log is left."""
    removed: Removed | None = None
    log_objects: int = 0
    """Objects of the log that would go, or are gone."""
    error: LakeloadError | None = None

    @property
    def nothing_to_do(self) -> bool:
        """Whether the pipeline has nothing in the table, and its log stays."""
        if self.error is not None or self.half_removed or self.log_objects:
            return False
        return self.plan is None or self.plan.nothing_to_do


@dataclass(frozen=True)
class ResetJob:
    """What all tables of one `reset` have in common. `reason` stands in the logs, for people."""

    objects: Objects
    catalog: TableCatalog | None
    pipeline: str
    reason: str
    with_log: bool
    parallelism: int
    notify: Notify

    def plan(self, tables: Sequence[UpkeepTable]) -> tuple[TableReset, ...]:
        """Say what `run` would do. Reads only."""
        return tuple(for_each(tables, lambda table: self._guarded(table, self._look)))

    def run(self, tables: Sequence[UpkeepTable]) -> tuple[TableReset, ...]:
        """Reset each table, several at a time; one that cannot be leaves the others alone."""
        return tuple(for_each(tables, lambda table: self._guarded(table, self._reset)))

    def _guarded(self, table: UpkeepTable, work: Callable[[UpkeepTable], TableReset]) -> TableReset:
        try:
            return work(table)
        except LakeloadError as error:
            return TableReset(table.target, error=error)

    def _look(self, table: UpkeepTable) -> TableReset:
        try:
            plan = self._resetter(table).plan()
        except LogDamaged:
            if not self._half_removed(table):
                raise
            return TableReset(table.target, half_removed=True)
        if self.with_log and not plan.unfinished:
            check_removable(self.objects, table.location, self.pipeline)
        log_objects = plan.log_objects if self.with_log else 0
        return TableReset(table.target, plan, log_objects=log_objects)

    def _reset(self, table: UpkeepTable) -> TableReset:
        found = self._look(table)
        removed = None
        if not found.half_removed:
            resetter = self._resetter(table)
            removed = resetter.run(self.reason)
            if self.with_log and found.log_objects:
                resetter.seal(self.reason)
        log_objects = 0
        if self.with_log:
            log_objects = remove_log(self.objects, table.location, self.pipeline, self.parallelism)
        return replace(found, removed=removed, log_objects=log_objects)

    def _half_removed(self, table: UpkeepTable) -> bool:
        """Whether the gap in the log is that of a removal; without `with_log` that is an error."""
        if not half_removed(self.objects, table.location, self.pipeline):
            return False
        if not self.with_log:
            raise LoadFailed(
                f"the log of `{table.target}` is half removed: `reset --with-log` was interrupted",
                hint="run it again with `--with-log --yes`, which finishes it",
            )
        return True

    def _resetter(self, table: UpkeepTable) -> Resetter:
        return Resetter(
            self.objects,
            table.location,
            self.pipeline,
            catalog=self.catalog,
            parallelism=self.parallelism,
            notify=about(table, self.notify),
        )


def exit_code_of(tables: Sequence[TableReset]) -> ExitCode:
    """Return OK, or what the worst of the tables asks for."""
    return code_of_errors(table.error for table in tables)
