"""Run folders of this machine, one per attempt and private, and the runs they remember."""

from __future__ import annotations

import contextlib
import fcntl
import fnmatch
import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import platformdirs

from lakeload.launch.outcome import LARGEST, ResultProblem, read_result
from lakeload_jobs.contract.codec import CodecError, parse_instant
from lakeload_jobs.contract.errors import MachineNotReady, disk_full
from lakeload_jobs.contract.maintain import MaintainResult
from lakeload_jobs.contract.plan import PlanResult
from lakeload_jobs.contract.result import JobResult, RunResult

KEPT = 50
"""Run folders that stay; a log is at most 64 MiB and mostly a few KiB."""

ENDED_SECONDS = 60.0
"""How long a folder with a result stays: its command reads it."""
IDLE_SECONDS = 3600.0
"""A folder in which something was written this recently may belong to a running load."""


@dataclass(frozen=True)
class RunFolder:
    """The files of one attempt."""

    path: Path

    @property
    def spec(self) -> Path:
        """The resolved JobSpec, written before the launch."""
        return self.path / "spec.json"

    @property
    def properties(self) -> Path:
        """Spark's properties, 0600, removed once the JVM has read them."""
        return self.path / "spark.conf"

    @property
    def log_settings(self) -> Path:
        """Log4j's configuration."""
        return self.path / "log4j2.properties"

    @property
    def jobs(self) -> Path:
        """The pipe through which a driver that stays gets the paths of specs."""
        return self.path / "jobs"

    @property
    def events(self) -> Path:
        """What the driver appends while it works."""
        return self.path / "events.jsonl"

    @property
    def result(self) -> Path:
        """What the driver writes last, once."""
        return self.path / "result.json"

    @property
    def log(self) -> Path:
        """Standard output and error of spark-submit and everything it starts."""
        return self.path / "spark.log"

    @property
    def files_in_use(self) -> Path:
        """The folder in which each thread notes the file that it is reading."""
        return self.path / "files-in-use"

    @property
    def scratch(self) -> Path:
        """The names of this run's scratch folders, while they may be there."""
        return self.path / "scratch.json"

    def write(self, file: Path, text: str) -> None:
        """Create one file of the folder, readable by its owner alone.

        Raises `MachineNotReady` when the disk is full.
        """
        try:
            file.touch(mode=0o600, exist_ok=False)
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            # A write, as opposed to opening the file, does not name it.
            error.filename = str(file)
            if (full := disk_full(error)) is None:
                raise
            raise full from error

    def forget_properties(self) -> None:
        """Remove spark.conf: the JVM has read it, or never will."""
        self.properties.unlink(missing_ok=True)


def runs_directory(environment: Mapping[str, str]) -> Path:
    """Return where run folders live: LAKELOAD_RUN_DIR, else the platform's state directory."""
    if configured := environment.get("LAKELOAD_RUN_DIR"):
        return Path(configured).absolute()
    return platformdirs.user_state_path("lakeload", appauthor=False) / "runs"


def create_run_folder(runs: Path, synced: datetime, attempt_id: str) -> RunFolder:
    """Make the folder of one attempt, mode 0700, named so that names sort by time.

    Raises `MachineNotReady` when it cannot be made.
    """
    path = runs / f"{synced:%Y%m%dT%H%M%SZ}-{attempt_id}"
    try:
        runs.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.mkdir(mode=0o700)
    except OSError as error:
        raise MachineNotReady(
            f"making the run folder `{path}` failed: {error.strerror}",
            hint="set LAKELOAD_RUN_DIR to a writable folder",
        ) from error
    return RunFolder(path)


def prune_run_folders(runs: Path, keep: int = KEPT) -> None:
    """Remove the oldest run folders beyond `keep`, except those still being written to.

    Raises nothing: a load that has ended is not changed by what is left of older ones, which
    another command may be removing as well.
    """
    with contextlib.suppress(OSError):
        names = [
            entry for entry in runs.iterdir() if entry.is_dir() and (entry / "spec.json").is_file()
        ]
        for folder in sorted(names)[: max(0, len(names) - keep)]:
            idle = ENDED_SECONDS if RunFolder(folder).result.is_file() else IDLE_SECONDS
            if time.time() - _last_written(folder) > idle:
                shutil.rmtree(folder, ignore_errors=True)


def _last_written(folder: Path) -> float:
    times = [folder.stat().st_mtime]
    for file in folder.iterdir():
        with contextlib.suppress(OSError):
            times.append(file.stat().st_mtime)
    return max(times)


LocalOutcome = Literal["SUCCEEDED", "FAILED", "RUNNING", "NO_RESULT"]
"""RUNNING: the driver lives, whatever became of the command that started it. NO_RESULT: it is
starting, or ended before it could write a result."""


@dataclass(frozen=True)
class LocalRun:
    """One attempt that Spark was started for on this machine."""

    started_at: datetime
    job_id: str
    attempt_id: str
    pipeline: str
    lake: Mapping[str, str | None]
    """What is known of the lake that it loads into (`lake_of`)."""
    tables: tuple[str, ...]
    outcome: LocalOutcome
    seconds: float | None
    folder: Path
    log: Path
    job: str = "load"
    """What Spark was started for: `load`, `plan` or `maintain`."""

    @property
    def place(self) -> str:
        """The bucket and its prefix."""
        return f"s3://{self.lake['bucket']}/{self.lake['prefix']}".rstrip("/")

    def is_into(self, lake: Mapping[str, str | None]) -> bool:
        """Return whether this is the lake that it loads into, by what is known of that."""
        return all(lake.get(name) == value for name, value in self.lake.items())


def lake_of(destination: Mapping[str, Any]) -> dict[str, str | None]:
    """Return what tells a lake from others, by the JSON of a destination's spec: several stores may
    have buckets of one name, and several catalogs tables in one bucket.

    A spec of an earlier version may lack some of it.
    """
    iceberg = destination.get("iceberg") or {}
    places = {
        "": (destination, ("region", "table_format", "glue_database_prefix")),
        "endpoints.": (destination.get("endpoints") or {}, ("s3", "glue")),
        "iceberg.": (iceberg, ("warehouse_location", "branch")),
        "catalog.": (iceberg.get("catalog") or {}, ("type", "glue_id", "uri", "warehouse", "ref")),
    }
    more = {
        f"{place}{name}": settings[name]
        for place, (settings, names) in places.items()
        for name in names
        if name in settings
    }
    return {"bucket": destination["bucket"], "prefix": destination["prefix"], **more}


def past_runs(runs: Path) -> tuple[LocalRun, ...]:
    """Return the runs that have a folder in `runs`, newest first; folders of nothing are passed."""
    return tuple(run for folder in _folders(runs) if (run := _read(folder)) is not None)


def _folders(runs: Path) -> list[RunFolder]:
    paths = sorted(runs.iterdir(), reverse=True) if runs.is_dir() else ()
    return [RunFolder(path) for path in paths]


def dead_attempts(runs: Path) -> tuple[str, ...]:
    """Return the attempts in `runs` that have not succeeded, and whose driver is gone.

    A driver holds a lock on its events for as long as it lives; the system takes it away. One that
    failed, or was stopped, could tidy up only what the catalog let it.
    """
    left = (_read(folder) for folder in _folders(runs) if not _has_succeeded(folder))
    return tuple(
        run.attempt_id
        for run in left
        if run and run.outcome != "SUCCEEDED" and is_gone(RunFolder(run.folder).events)
    )


def _has_succeeded(folder: RunFolder) -> bool:
    """Whether the result says so. Most do, and to read all that they say of many tables takes
    long."""
    try:
        if folder.result.stat().st_size > LARGEST:
            return False
        result = json.loads(folder.result.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(result, dict) and result.get("status") == "SUCCEEDED"


def is_gone(file: Path) -> bool:
    """Return whether the process that holds a lock on this file, while it lives, has ended."""
    try:
        with file.open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
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


_KINDS = {"plan": PlanResult, "maintain": MaintainResult}
"""The results of jobs that are no loads."""


def _result(spec: dict[str, Any], path: Path) -> JobResult | None:
    kind = _KINDS.get(spec.get("job", "load"), RunResult)
    result: JobResult | ResultProblem = read_result(kind, path, spec["attempt_id"])
    return None if isinstance(result, ResultProblem) else result


def _read(folder: RunFolder) -> LocalRun | None:
    """Read one folder; its spec may be of an older or newer lakeload, so only keys count."""
    try:
        spec: dict[str, Any] = json.loads(folder.spec.read_bytes())
        ended = _result(spec, folder.result)
        runs = folder.events.exists() and not is_gone(folder.events)
        unended: LocalOutcome = "RUNNING" if runs else "NO_RESULT"
        return LocalRun(
            started_at=parse_instant(spec["synced"]),
            job_id=str(spec["job_id"]),
            attempt_id=str(spec["attempt_id"]),
            pipeline=str(spec["pipeline"]),
            lake=lake_of(spec["destination"]),
            tables=tuple(str(table["source"]) for table in spec["tables"]),
            outcome=ended.status if ended else unended,
            seconds=(ended.finished_at - ended.started_at).total_seconds() if ended else None,
            folder=folder.path,
            log=folder.log,
            job=str(spec.get("job", "load")),
        )
    except (
        OSError,
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
        RecursionError,
        CodecError,
    ):
        return None
