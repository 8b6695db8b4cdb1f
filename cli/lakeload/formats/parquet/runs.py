"""The history of Parquet tables, newest first, from their logs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from lakeload.formats.parquet.tables import open_tables
from lakeload.formats.reports import RunsReport, TableError, TableRun, by_author
from lakeload.formats.tables import TableRef, TablesRequest, for_each
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.result import FileResult
from lakeload_jobs.core.sizes import counted
from lakeload_jobs.formats.parquet.log.records import LoadRecord
from lakeload_jobs.formats.parquet.log.run_history import Fence, Recent, Run, read_runs, recent
from lakeload_jobs.sources.databases.bookmark import rows_of
from lakeload_jobs.storage.objects import Objects


def runs(request: TablesRequest, limit: int) -> RunsReport:
    """Return the newest `limit` records of the tables."""
    tables = open_tables(request)
    return read_history(tables.objects, tables.tables, limit)


def read_history(objects: Objects, tables: Sequence[TableRef], limit: int) -> RunsReport:
    """Return the newest `limit` records of all tables; one table's failure leaves the others alone.

    A table costs a GET and a LIST, and a GET for each of its records among these.
    """
    ends: dict[str, Recent] = {}
    runs: list[TableRun] = []
    fences: list[tuple[str, Fence]] = []
    errors: list[TableError] = []

    def list_newest(table: TableRef) -> None:
        try:
            ends[table.target] = recent(objects, table.location, limit)
        except LakeloadError as error:
            errors.append(TableError(table.target, error))

    def read(table: TableRef) -> None:
        try:
            found, between = read_runs(objects, ends[table.target], since)
        except LakeloadError as error:
            errors.append(TableError(table.target, error))
            return
        runs.extend(table_run(table.target, run) for run in found)
        fences.extend((table.target, fence) for fence in between)

    for_each(tables, list_newest)
    written = sorted((e.modified for end in ends.values() for e in end.entries), reverse=True)
    since = written[:limit][-1] if written else datetime.max.replace(tzinfo=UTC)
    for_each([table for table in tables if table.target in ends], read)
    runs.sort(key=lambda run: (*run.order, run.target), reverse=True)
    fences.sort(key=lambda item: (item[1].committed_at, item[0]), reverse=True)
    errors.sort(key=lambda error: error.target)
    return report(runs[:limit], fences[:limit], errors)


def report(
    runs: Sequence[TableRun], fences: Sequence[tuple[str, Fence]], errors: Sequence[TableError]
) -> RunsReport:
    """Return runs, the fences of tables among them, and what could not be read."""
    return RunsReport(
        tuple(runs),
        tuple(errors),
        {"fences": [_fence_document(target, fence) for target, fence in fences]},
        tuple((fence.committed_at, _fence_line(target, fence)) for target, fence in fences),
    )


def table_run(target: str, run: Run) -> TableRun:
    """Return one job in one table."""
    record, rejects = run.record, run.record.rejected
    deleted = record.deleted_rows or 0
    return TableRun(
        target=target,
        pipeline=record.pipeline,
        job_id=record.job_id,
        attempt_id=record.attempt_id,
        author=record.author,
        committed_at=run.committed_at,
        created_at=record.created_at,
        synced=record.synced,
        rows=record.rows - deleted,
        files=len(record.files),
        bytes=record.bytes,
        rejected=rejects.rows if rejects else 0,
        deleted=deleted,
        read=rows_of(record.state) if record.state else None,
        retried=record.retried,
        state=run.state,
        about=(
            f"record {run.number}: {record.source} → {target}{by_author(record.author)}, "
            f"{record.tool}, attempt {record.attempt_id}",
        ),
        more={
            "table": record.source,
            "number": run.number,
            "tool": record.tool,
            "started_at": record.started_at,
            "files": [FileResult(file.key, file.rows, file.bytes) for file in record.files],
            "rejected": _rejected(record),
            "clean": run.clean,
            "catalog": run.catalog,
            "lost": [file.key for file in run.lost],
        },
        remarks=(
            *(() if run.clean else ("cleanup pending",)),
            *(("catalog out of date",) if run.catalog == "out of date" else ()),
        ),
        number=run.number,
    )


def _rejected(record: LoadRecord) -> dict[str, object] | None:
    """Return what was set aside; None for nothing."""
    found = record.rejected
    if found is None:
        return None
    files = [FileResult(file.key, file.rows, file.bytes) for file in found.files]
    return {"table": found.table, "rows": found.rows, "files": files}


def _fence_line(target: str, fence: Fence) -> str:
    record = fence.record
    locked = [(len(record.attempts), "attempt"), (len(record.uploads), "upload")]
    what = " and ".join(counted(many, noun) for many, noun in locked if many) + " locked out"
    if record.resets:
        what = f"pipeline {record.resets} was reset"
    return f"{target} (record {fence.number}): {what}, {record.reason}"


def _fence_document(target: str, fence: Fence) -> dict[str, object]:
    record = fence.record
    return {
        "target": target,
        "number": fence.number,
        "committed_at": fence.committed_at,
        "attempts": record.attempts,
        "uploads": record.uploads,
        "reset": record.resets or None,
        "reason": record.reason,
    }
