"""The run folders of this machine: which job each was, how it ended, where its log is."""

from __future__ import annotations

import fcntl
import fnmatch
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from lakeload.launch.outcome import ResultProblem, read_result
from lakeload.launch.run_folder import RunFolder
from lakeload_jobs.contract.codec import CodecError, parse_instant

LocalOutcome = Literal["SUCCEEDED", "FAILED", "NO_RESULT"]
"""NO_RESULT: the run goes on, or ended before its driver could write a result."""


@dataclass(frozen=True)
class LocalRun:
    """One attempt that Spark was started for on this machine."""

    started_at: datetime
    job_id: str
    attempt_id: str
    pipeline: str
    bucket: str
    prefix: str
    tables: tuple[str, ...]
    outcome: LocalOutcome
    seconds: float | None
    folder: Path
    log: Path


def past_runs(runs: Path) -> tuple[LocalRun, ...]:
    """Return the runs that have a folder in `runs`, newest first; folders of nothing are passed."""
    if not runs.is_dir():
        return ()
    found = [_read(RunFolder(path)) for path in sorted(runs.iterdir(), reverse=True)]
    return tuple(run for run in found if run is not None)


def dead_attempts(runs: Path) -> tuple[str, ...]:
    """Return the attempts in `runs` that have not succeeded, and whose driver is gone.

    A driver holds a lock on its events for as long as it lives; the system takes it away. One that
    failed, or was stopped, could tidy up only what the catalog let it.
    """
    return tuple(
        run.attempt_id
        for run in past_runs(runs)
        if run.outcome != "SUCCEEDED" and _is_gone(RunFolder(run.folder).events)
    )


def _is_gone(events: Path) -> bool:
    try:
        with events.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return True
    except OSError:
        return False


def matching(runs: Sequence[LocalRun], globs: Sequence[str]) -> tuple[LocalRun, ...]:
    """Return the runs with a table whose source name matches one of the globs; all without any."""
    return tuple(
        run
        for run in runs
        if not globs
        or any(fnmatch.fnmatchcase(name, glob) for name in run.tables for glob in globs)
    )


def _read(folder: RunFolder) -> LocalRun | None:
    """Read one folder; its spec may be of an older or newer lakeload, so only keys count."""
    try:
        spec: dict[str, Any] = json.loads(folder.spec.read_bytes())
        result = read_result(folder.result, spec["attempt_id"])
        ended = None if isinstance(result, ResultProblem) else result
        return LocalRun(
            started_at=parse_instant(spec["synced"]),
            job_id=str(spec["job_id"]),
            attempt_id=str(spec["attempt_id"]),
            pipeline=str(spec["pipeline"]),
            bucket=str(spec["destination"]["bucket"]),
            prefix=str(spec["destination"]["prefix"]),
            tables=tuple(str(table["source"]) for table in spec["tables"]),
            outcome=ended.status if ended else "NO_RESULT",
            seconds=(ended.finished_at - ended.started_at).total_seconds() if ended else None,
            folder=folder.path,
            log=folder.log,
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError, CodecError):
        return None
