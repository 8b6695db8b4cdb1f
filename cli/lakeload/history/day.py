"""One day of a pipeline's history: its jobs, and the state of its tables after them.

The jobs are bounded in bytes: those without anything new are summed by the hour, then the oldest
good ones, then the oldest ones are left out.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, TypeVar

from lakeload.config.secret_names import masked
from lakeload_jobs.contract.codec import CodecError, from_json, parse_instant, to_json
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.result import GOOD
from lakeload_jobs.contract.state import check_format

H = TypeVar("H", bound="Health")
OpenEvent = Literal["STALE", "PARTIAL", "FAILED"]

FORMAT = 1
MAX_JOB_BYTES = 1024 * 1024
"""Of the jobs of one day. The states of tables come on top, about 300 bytes for each."""
MAX_TABLES = 200
"""Tables that a job names, those that failed first."""
_MAX_MESSAGE = 500


@dataclass(frozen=True)
class JobError:
    """Why a job or a table failed."""

    type: str
    message: str


@dataclass(frozen=True)
class JobTable:
    """What became of one table in one job."""

    target: str
    status: str
    rows: int
    bytes: int
    rejected: int
    deleted: int
    seconds: float
    more: bool
    """Whether `round_limit` or `commit_at` left new files or rows for a later job."""
    position: datetime | None
    """Up to when the source is loaded."""
    error: JobError | None


@dataclass(frozen=True)
class HistoryJob:
    """One job. `tables` are those that it loaded or that failed; `others` counts the rest."""

    pipeline: str
    job_id: str
    attempt_id: str
    started_at: datetime
    ended_at: datetime
    status: str
    exit_code: int
    error: JobError | None
    tables: tuple[JobTable, ...]
    others: int

    @property
    def failed(self) -> bool:
        """Whether it ended with an exit code other than 0."""
        return self.exit_code != 0

    def is_about(self, globs: Sequence[str]) -> bool:
        """Whether it names a table that matches one of the globs, with its schema or without; or
        names none, for then it was about all tables."""
        names = [name for one in self.tables for name in (one.target, one.target.split(".")[-1])]
        return (
            not globs
            or not names
            or any(fnmatch.fnmatchcase(name, glob) for name in names for glob in globs)
        )

    @property
    def order(self) -> tuple[datetime, str]:
        """What sorts jobs, and tells them apart."""
        return self.ended_at, self.attempt_id


@dataclass(frozen=True)
class HistoryHour:
    """The jobs of an hour that are summed: those without anything new."""

    hour: datetime
    jobs: int
    rows: int
    bytes: int
    ended_at: datetime
    """When the last of them ended."""


@dataclass(frozen=True)
class Health:
    """What is known after the last job."""

    job_id: str
    status: str
    ended_at: datetime
    succeeded_at: datetime | None
    """When the last job ended that succeeded; for a table, that loaded it or found nothing new."""
    failures: int
    """Jobs that failed since then."""
    error: JobError | None
    """Of the last one that failed; None after one that succeeded."""


@dataclass(frozen=True)
class PipelineHealth(Health):
    """A pipeline after its last job. One with exit code 0 succeeded."""

    exit_code: int


@dataclass(frozen=True)
class TableHealth(Health):
    """A table after the last job that was about it."""

    target: str
    up_to_date_at: datetime | None
    """When the last job ended that succeeded and left nothing new for a later one."""
    position: datetime | None


@dataclass(frozen=True)
class Notified:
    """Which messages a webhook has got (`notify` of the pipeline)."""

    at: datetime
    """When this was last changed."""
    open: OpenEvent | None
    """What was sent and is not over: FAILED, PARTIAL or STALE."""
    sent: dict[str, datetime]
    """When a message about each event was last sent."""
    columns: dict[str, str]
    """A digest of the columns that each table last loaded."""


@dataclass(frozen=True)
class HistoryDay:
    """What was recorded on one day, and the state of the pipeline at its end."""

    format: int
    pipeline: str
    jobs: tuple[HistoryJob, ...] = ()
    hours: tuple[HistoryHour, ...] = ()
    dropped: int = 0
    """Jobs that are left out: there were too many for one day."""
    health: PipelineHealth | None = None
    tables: tuple[TableHealth, ...] = ()
    notified: Notified | None = None


def day_name(at: datetime) -> str:
    """Return the name of the day of an instant, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%d")


def day_of(name: str) -> date | None:
    """Return the day that a name stands for; None for another name."""
    try:
        return date.fromisoformat(name) if len(name) == 10 else None
    except ValueError:
        return None


def of_job(document: Mapping[str, Any], targets: Sequence[str]) -> HistoryDay:
    """Return what one job adds, given the document that `sync --output json` prints, and all its
    tables: a job that failed early does not name them."""
    started = parse_instant(document["started_at"])
    ended = started + timedelta(seconds=document["seconds"])
    tables = [_table(table) for table in document["tables"]]
    named = sorted(
        (table for table in tables if table.status != "NO_OP"),
        key=lambda table: table.status in GOOD,
    )[:MAX_TABLES]
    job = HistoryJob(
        document["pipeline"],
        document["job_id"],
        document["attempt_id"],
        started,
        ended,
        document["status"],
        document["exit_code"],
        _error(document["error"]),
        tuple(named),
        len({*targets, *(table.target for table in tables)}) - len(named),
    )
    seen = {table.target for table in tables}
    unseen = [target for target in targets if target not in seen]
    good = job.exit_code == 0
    states = [_health(job, table) for table in tables]
    states += [_state(job, target, job.status, job.error, None) for target in unseen]
    health = PipelineHealth(
        job.job_id,
        job.status,
        ended,
        ended if good else None,
        0 if good or job.status == "INTERRUPTED" else 1,
        None if good else job.error or next((one.error for one in named if one.error), None),
        job.exit_code,
    )
    day = HistoryDay(FORMAT, job.pipeline, health=health, tables=tuple(states))
    if good and all(table.status == "NO_OP" for table in tables):
        return replace(day, hours=(_hour(job),))
    return replace(day, jobs=(job,))


def merge(earlier: HistoryDay, later: HistoryDay) -> HistoryDay:
    """Return both together. What both hold is there once."""
    jobs = {job.order: job for job in (*earlier.jobs, *later.jobs)}
    states = {state.target: state for state in earlier.tables}
    for state in later.tables:
        before = states.get(state.target)
        states[state.target] = _table_after(before, state) if before is not None else state
    notified = [day.notified for day in (earlier, later) if day.notified is not None]
    health = later.health or earlier.health
    if earlier.health is not None and later.health is not None:
        health = _after(earlier.health, later.health)
    return replace(
        earlier,
        jobs=tuple(sorted(jobs.values(), key=lambda job: job.order)),
        hours=_summed((*earlier.hours, *later.hours)),
        dropped=earlier.dropped + later.dropped,
        health=health,
        tables=tuple(sorted(states.values(), key=lambda state: state.target)),
        notified=max(notified, key=lambda one: one.at, default=None),
    )


def next_day(before: HistoryDay) -> HistoryDay:
    """Return the beginning of the day after another: nothing but the state at its end."""
    return replace(before, jobs=(), hours=(), dropped=0)


def bounded(day: HistoryDay, limit: int = MAX_JOB_BYTES) -> HistoryDay:
    """Return a day whose jobs have at most `limit` bytes: the oldest good jobs are summed, then the
    oldest are left out."""
    sizes = {job.order: len(json.dumps(to_json(job), ensure_ascii=False)) for job in day.jobs}
    size = sum(sizes.values())
    if size <= limit:
        return day
    # Some room, so that not each job has to make room for itself.
    limit -= limit // 8
    summed: list[HistoryHour] = []
    left_out: set[tuple[datetime, str]] = set()
    for job in [*(job for job in day.jobs if not job.failed), *(j for j in day.jobs if j.failed)]:
        if size <= limit:
            break
        size -= sizes[job.order]
        left_out.add(job.order)
        if not job.failed:
            summed.append(_hour(job))
    kept = tuple(job for job in day.jobs if job.order not in left_out)
    smaller = replace(day, jobs=kept, dropped=day.dropped + len(left_out) - len(summed))
    return merge(smaller, HistoryDay(FORMAT, day.pipeline, hours=tuple(summed)))


def encode(day: HistoryDay) -> bytes:
    """Return a day as it is stored."""
    return json.dumps(to_json(day), ensure_ascii=False).encode()


def decode(body: bytes, where: str) -> HistoryDay:
    """Return the day that `encode` wrote. Raises `NewerFormat`, and `LoadFailed` for anything else
    that is there."""
    try:
        data = json.loads(body)
        check_format(data, FORMAT, f"the job history `{where}`")
        return from_json(HistoryDay, data)
    except (CodecError, ValueError, RecursionError) as error:
        raise LoadFailed(
            f"the job history `{where}` is not what lakeload wrote: {error}",
            hint="remove the object: loads do not need it",
        ) from error


def _table(result: Mapping[str, Any]) -> JobTable:
    # Numbers of a job that was loaded before are not of this one.
    idle = result["status"] == "NO_OP" or result["already"]
    position = result["position"]
    return JobTable(
        result["target"],
        result["status"],
        0 if idle else result["rows"],
        0 if idle else result["bytes"],
        0 if idle else result["rejected"],
        0 if idle else result["deleted"],
        result["seconds"],
        result["more"] or result["waiting"] is not None,
        parse_instant(position) if position is not None else None,
        _error(result["error"]),
    )


def _error(error: Mapping[str, Any] | None) -> JobError | None:
    if error is None:
        return None
    message = masked(error["message"])
    cut = message if len(message) <= _MAX_MESSAGE else message[: _MAX_MESSAGE - 1] + "…"
    return JobError(error["type"], cut)


def _health(job: HistoryJob, table: JobTable) -> TableHealth:
    state = _state(job, table.target, table.status, table.error or job.error, table.position)
    return replace(state, up_to_date_at=None) if table.more else state


def _state(
    job: HistoryJob, target: str, status: str, error: JobError | None, position: datetime | None
) -> TableHealth:
    good = status in GOOD
    return TableHealth(
        job.job_id,
        status,
        job.ended_at,
        job.ended_at if good else None,
        0 if good or status == "INTERRUPTED" else 1,
        None if good else error,
        target,
        job.ended_at if good else None,
        position,
    )


def _table_after(before: TableHealth, state: TableHealth) -> TableHealth:
    if state.ended_at < before.ended_at:
        before, state = state, before
    return replace(
        _after(before, state),
        up_to_date_at=state.up_to_date_at or before.up_to_date_at,
        position=state.position or before.position,
    )


def _after(before: H, state: H) -> H:
    """Return what is known after both."""
    if state.ended_at < before.ended_at:
        before, state = state, before
    if state.succeeded_at is not None:
        return state
    return replace(
        state,
        failures=before.failures + state.failures,
        error=state.error if state.failures else before.error,
        succeeded_at=before.succeeded_at,
    )


def _hour(job: HistoryJob) -> HistoryHour:
    hour = job.ended_at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    rows, size = (sum(getattr(one, name) for one in job.tables) for name in ("rows", "bytes"))
    return HistoryHour(hour, 1, rows, size, job.ended_at)


def _summed(hours: Iterable[HistoryHour]) -> tuple[HistoryHour, ...]:
    """Return one for all of the same hour, in their order."""
    found: dict[datetime, HistoryHour] = {}
    for one in hours:
        if other := found.get(one.hour):
            jobs, rows = one.jobs + other.jobs, one.rows + other.rows
            ended = max(one.ended_at, other.ended_at)
            one = HistoryHour(one.hour, jobs, rows, one.bytes + other.bytes, ended)
        found[one.hour] = one
    return tuple(found[hour] for hour in sorted(found))
