"""What tasks tell of their progress, and what the driver makes of it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lakeload_jobs.contract.spec import (
    DestinationSpec,
    FilesInput,
    JobSpec,
    RuntimeSpec,
    TableSpec,
)
from lakeload_jobs.rows.progress import ProgressFiles, TaskProgress, new_progress_file


def job(folder: Path, **changes: Any) -> JobSpec:
    """Return a job of two tables."""
    tables = tuple(
        TableSpec(name, "shop", name, FilesInput("CSV", ("a.csv",), {}), "") for name in ("a", "b")
    )
    values: dict[str, Any] = {
        "contract": 1, "pipeline": "shop", "job_id": "monday", "attempt_id": "1",
        "synced": datetime(2026, 1, 1, tzinfo=UTC),
        "destination": DestinationSpec("lake", "us-east-1"),
        "tables": tables, "events_path": "", "result_path": str(folder / "result.json"),
    }  # fmt: skip
    return JobSpec(**(values | changes))


def test_the_driver_adds_up_what_tasks_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("lakeload_jobs.rows.progress.time.monotonic", lambda: clock[0])
    spec = job(tmp_path)
    table = spec.tables[1]
    files = ProgressFiles(spec)
    assert files.changed() == {}
    path = new_progress_file(spec, table)
    one, two = TaskProgress(path), TaskProgress(path)
    one.at(10, 100)
    assert files.changed() == {}
    clock[0] = 1.0
    one.at(20, 200)
    two.at(5, 50)
    one.at(30, 300)
    assert files.changed() == {table.source: (25, 250)}
    assert files.changed() == {}
    clock[0] = 2.0
    one.at(40, 400, last=True)
    # A task that fails.
    two.at(0, 0, last=True)
    assert files.changed() == {table.source: (40, 400)}
    # The table is written once more, and a task of the first time is still running.
    three = TaskProgress(new_progress_file(spec, table))
    two.at(70, 700, last=True)
    three.at(3, 30, last=True)
    assert files.changed() == {table.source: (3, 30)}
    assert files.changed() == {}


def test_tasks_on_other_machines_tell_nothing(tmp_path: Path) -> None:
    spec = job(tmp_path, runtime=RuntimeSpec(tasks_share_driver=False))
    assert new_progress_file(spec, spec.tables[0]) is None
    TaskProgress(None).at(1, 1, last=True)
