"""Runs as a log would tell them."""

from __future__ import annotations

from datetime import datetime

from lakeload_jobs.formats.data_files.uploads import StagedFile
from lakeload_jobs.formats.parquet.log.records import Column, LoadRecord, Target
from lakeload_jobs.formats.parquet.log.run_history import Run, RunState


def make_run(
    job_id: str,
    committed_at: datetime,
    *,
    pipeline: str = "shop",
    created_at: datetime | None = None,
    state: RunState = "done",
    rows: int = 3,
    source: str = "orders",
    author: str = "",
) -> Run:
    """Return one job with one file."""
    key = f"lake/shop/orders/2026/11/21/10/part-{job_id}-00000.gzip.parquet"
    record = LoadRecord(
        tool="lakeload 0.1.0",
        pipeline=pipeline,
        source=source,
        job_id=job_id,
        attempt_id="attempt-1",
        started_at=committed_at,
        created_at=created_at or committed_at,
        synced=committed_at,
        mode="APPEND",
        table_handling="FAIL",
        fingerprint="f" * 64,
        target=Target("lake", "shop", "orders"),
        partition_strategy="HOUR",
        file_name_pattern="part-{supa_job_id}-{seq}",
        partition="2026/11/21/10",
        columns=(Column("id", "bigint"),),
        column_map={"id": "id"},
        index="dense",
        rows=rows,
        files=(StagedFile(key, "upload-1", (), rows, 2048),),
        author=author,
    )
    return Run(1, committed_at, record, state)
