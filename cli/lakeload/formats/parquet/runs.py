"""The history of tables, newest first, from their logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from lakeload.formats.tables import UpkeepTable, for_each
from lakeload_jobs.contract.errors import ExitCode, LakeloadError, worst_exit
from lakeload_jobs.formats.parquet.log.run_history import Fence, Recent, Run, read_runs, recent
from lakeload_jobs.storage.objects import Objects


@dataclass(frozen=True)
class TableRun:
    """One job in one table."""

    target: str
    run: Run


@dataclass(frozen=True)
class TableFence:
    """One fence of one table."""

    target: str
    fence: Fence


@dataclass(frozen=True)
class TableTrouble:
    """A table whose log could not be read."""

    target: str
    error: LakeloadError


@dataclass(frozen=True)
class History:
    """The newest records of all tables together, newest first."""

    runs: tuple[TableRun, ...]
    fences: tuple[TableFence, ...]
    troubles: tuple[TableTrouble, ...]

    @property
    def exit_code(self) -> ExitCode:
        """OK, or REFUSED when AWS let a log not be read, or TABLE_FAILED when one is damaged."""
        return worst_exit(trouble.error.exit_code for trouble in self.troubles)


@dataclass(frozen=True)
class Job:
    """The tables that one job of one pipeline has loaded, as far as they are among the newest."""

    pipeline: str
    job_id: str
    tables: tuple[TableRun, ...]

    @property
    def committed_at(self) -> datetime:
        """When its newest table was committed."""
        return self.order[0]

    @property
    def order(self) -> tuple[datetime, datetime]:
        """What sorts jobs: S3's clock, and its author's within one second of it."""
        return max(_order(table) for table in self.tables)


def read_history(objects: Objects, tables: Sequence[UpkeepTable], limit: int) -> History:
    """Return the newest `limit` records of all tables; one table's trouble leaves the others alone.

    A table costs a GET and a LIST, and a GET for each of its records among these.
    """
    ends: dict[str, Recent] = {}
    runs: list[TableRun] = []
    fences: list[TableFence] = []
    troubles: list[TableTrouble] = []

    def look(table: UpkeepTable) -> None:
        try:
            ends[table.target] = recent(objects, table.location, limit)
        except LakeloadError as error:
            troubles.append(TableTrouble(table.target, error))

    def read(table: UpkeepTable) -> None:
        try:
            found, between = read_runs(objects, ends[table.target], since)
        except LakeloadError as error:
            troubles.append(TableTrouble(table.target, error))
            return
        runs.extend(TableRun(table.target, run) for run in found)
        fences.extend(TableFence(table.target, fence) for fence in between)

    for_each(tables, look)
    written = sorted((e.modified for end in ends.values() for e in end.entries), reverse=True)
    since = written[:limit][-1] if written else datetime.max.replace(tzinfo=UTC)
    for_each([table for table in tables if table.target in ends], read)
    runs.sort(key=lambda item: (*_order(item), item.target), reverse=True)
    fences.sort(key=lambda item: (item.fence.committed_at, item.target), reverse=True)
    troubles.sort(key=lambda item: item.target)
    return History(tuple(runs[:limit]), tuple(fences[:limit]), tuple(troubles))


def jobs(runs: Sequence[TableRun]) -> tuple[Job, ...]:
    """Group runs into jobs, newest first; the tables of a job by name."""
    grouped: dict[tuple[str, str], list[TableRun]] = {}
    for item in runs:
        grouped.setdefault((item.run.record.pipeline, item.run.record.job_id), []).append(item)
    found = [
        Job(pipeline, job_id, tuple(sorted(items, key=lambda item: (item.target, item.run.number))))
        for (pipeline, job_id), items in grouped.items()
    ]
    return tuple(sorted(found, key=lambda job: job.order, reverse=True))


def _order(item: TableRun) -> tuple[datetime, datetime]:
    return item.run.committed_at, item.run.record.created_at
