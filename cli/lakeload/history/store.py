"""The stores of the job history: the lake, and this machine.

Each job is noted on this machine first, and moved into the lake from there, so that what a store
does not take goes along with a later job. Where a catalog vends the credentials, lakeload has no
permission of its own in the bucket, and the history stays on this machine.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from lakeload.history.day import (
    FORMAT,
    HistoryDay,
    HistoryJob,
    bounded,
    day_name,
    day_of,
    decode,
    encode,
    merge,
    next_day,
)
from lakeload.launch.run_folder import lake_of
from lakeload.policy.model import role_is_catalogs
from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.core.layout import job_history_path
from lakeload_jobs.storage.backoff import pause
from lakeload_jobs.storage.objects import Objects

_SUFFIX = ".json"
_ATTEMPTS = 5
"""Attempts at a write that other jobs of the pipeline come before."""
_MODE = 0o700


@dataclass(frozen=True)
class StoredDay:
    """A day as it is stored; `version` tells whether another job has written it since."""

    day: HistoryDay
    version: str


class HistoryStore(ABC):
    """The days of pipelines. Each method may raise `LakeloadError` and `OSError`."""

    @abstractmethod
    def pipelines(self) -> list[str]:
        """Return the pipelines that have a history."""

    def days(self, pipeline: str) -> list[str]:
        """Return the names of a pipeline's days, the oldest first."""
        names = (name.removesuffix(_SUFFIX) for name in self._names(pipeline))
        return sorted(name for name in names if day_of(name))

    def read(self, pipeline: str, day: str) -> StoredDay | None:
        """Return a day; None where there is none."""
        found = self._read(pipeline, day)
        if found is None:
            return None
        body, version, where = found
        return StoredDay(decode(body, where), version)

    @abstractmethod
    def write(self, day: HistoryDay, name: str, version: str | None) -> bool:
        """Replace a day that still has this version, None for one that is not there yet. Return
        False where another job came first."""

    @abstractmethod
    def remove(self, pipeline: str, day: str) -> None:
        """Remove a day."""

    @abstractmethod
    def _names(self, pipeline: str) -> Iterable[str]:
        """Return the names of a pipeline's objects or files."""

    @abstractmethod
    def _read(self, pipeline: str, day: str) -> tuple[bytes, str, str] | None:
        """Return what is stored, its version, and what to call it."""


class LakeHistory(HistoryStore):
    """The history in the lake: `{prefix}/_lakeload/job-history/{pipeline}/{YYYY-MM-DD}.json`."""

    def __init__(self, session: AwsSession, destination: DestinationSpec) -> None:
        self._prefix = destination.prefix
        self._objects = Objects(session, destination)

    def pipelines(self) -> list[str]:
        """List folders."""
        return sorted(self._objects.list_folders(job_history_path(self._prefix)))

    def write(self, day: HistoryDay, name: str, version: str | None) -> bool:
        """Write conditionally."""
        return self._objects.put_version(self._key(day.pipeline, name), encode(day), version)

    def remove(self, pipeline: str, day: str) -> None:
        """Delete the object."""
        if (entry := self._objects.find(self._key(pipeline, day))) is not None:
            self._objects.delete(entry.key, entry.etag)

    def _names(self, pipeline: str) -> Iterable[str]:
        path = job_history_path(self._prefix, pipeline)
        return (entry.key[len(path) :] for entry in self._objects.list(path))

    def _read(self, pipeline: str, day: str) -> tuple[bytes, str, str] | None:
        key = self._key(pipeline, day)
        try:
            found = self._objects.get_version(key)
        except AwsError as error:
            # What S3 shows of a missing key to a role that may not list.
            if error.denied and self._objects.find(key) is None:
                return None
            raise
        return found and (*found, self._objects.url(key))

    def _key(self, pipeline: str, day: str) -> str:
        return f"{job_history_path(self._prefix, pipeline)}{day}{_SUFFIX}"


class LocalHistory(HistoryStore):
    """The history of one lake on this machine, beside the run folders."""

    def __init__(self, runs: Path, destination: DestinationSpec) -> None:
        lake = json.dumps(lake_of(to_json(destination)))
        self._runs = runs
        self._path = runs / "job-history" / hashlib.sha256(lake.encode()).hexdigest()[:16]

    def pipelines(self) -> list[str]:
        """List folders."""
        return self._names("")

    def write(self, day: HistoryDay, name: str, version: str | None) -> bool:
        """Write under a lock."""
        file = self._file(day.pipeline, name)
        self._make(file.parent)
        with self._locked(file.parent):
            if _version(_body(file)) != version:
                return False
            number, temporary = tempfile.mkstemp(prefix=".", dir=file.parent)
            with os.fdopen(number, "wb") as new:
                new.write(encode(day))
            Path(temporary).replace(file)
        return True

    def remove(self, pipeline: str, day: str) -> None:
        """Remove the file."""
        self._file(pipeline, day).unlink(missing_ok=True)

    def take(self, pipeline: str, day: str, version: str) -> None:
        """Remove a day that still has this version."""
        file = self._file(pipeline, day)
        with self._locked(file.parent):
            if _version(_body(file)) == version:
                file.unlink(missing_ok=True)

    @contextmanager
    def _locked(self, folder: Path) -> Iterator[None]:
        number = os.open(folder / ".lock", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(number, "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _make(self, folder: Path) -> None:
        """Make a folder, and those above it that are missing: other users read none of them."""
        missing = [folder]
        while missing[-1] != self._runs:
            missing.append(missing[-1].parent)
        self._runs.parent.mkdir(parents=True, exist_ok=True)
        for path in reversed(missing):
            path.mkdir(mode=_MODE, exist_ok=True)

    def _file(self, pipeline: str, day: str) -> Path:
        return self._path / pipeline / f"{day}{_SUFFIX}"

    def _names(self, pipeline: str) -> list[str]:
        try:
            return sorted(path.name for path in (self._path / pipeline).iterdir())
        except FileNotFoundError:
            return []

    def _read(self, pipeline: str, day: str) -> tuple[bytes, str, str] | None:
        file = self._file(pipeline, day)
        body = _body(file)
        return None if body is None else (body, _version(body) or "", str(file))


def _body(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None


def _version(body: bytes | None) -> str | None:
    return None if body is None else hashlib.sha256(body).hexdigest()


def is_in_lake(destination: DestinationSpec) -> bool:
    """Whether the history of a destination is kept in the lake."""
    return not role_is_catalogs(destination)


def record(store: HistoryStore, found: HistoryDay, *, carried: bool = True) -> HistoryDay:
    """Add jobs to the day that it is now, and return that day. A new one begins with the state at
    the end of the day before, unless that is not `carried`.

    Raises `LoadFailed` where other jobs write it all the time, and what the store raises.
    """
    name = day_name(datetime.now(UTC))
    for attempt in range(_ATTEMPTS):
        if attempt:
            pause(attempt, first=0.05, longest=0.5)
        stored = store.read(found.pipeline, name)
        if stored is not None:
            before = stored.day
        else:
            before = (
                _before(store, found.pipeline, name)
                if carried
                else HistoryDay(FORMAT, found.pipeline)
            )
        day = bounded(merge(before, found))
        if store.write(day, name, stored.version if stored else None):
            return day
    raise LoadFailed("other jobs of the pipeline write it at the same time", retryable=True)


def _before(store: HistoryStore, pipeline: str, name: str) -> HistoryDay:
    """Return the beginning of a day, with the state at the end of the last one."""
    earlier = [day for day in store.days(pipeline) if day < name]
    last = store.read(pipeline, earlier[-1]) if earlier else None
    return next_day(last.day) if last else HistoryDay(FORMAT, pipeline)


def move(local: LocalHistory, lake: HistoryStore, pipeline: str) -> HistoryDay | None:
    """Move what is noted on this machine into the lake, which may have a part of it already; return
    the day that it is now, None where nothing is noted."""
    found = None
    for name in local.days(pipeline):
        noted = local.read(pipeline, name)
        if noted is not None:
            found = record(lake, noted.day)
            local.take(pipeline, name, noted.version)
    return found


def past_jobs(
    stores: Iterable[HistoryStore],
    pipelines: Sequence[str],
    keeps: Callable[[HistoryJob], bool],
    limit: int,
    since: datetime | None = None,
) -> tuple[HistoryJob, ...]:
    """Return jobs of pipelines that `keeps` takes, the newest `limit` since an instant, newest
    first, each once however many stores have it."""
    found: dict[tuple[datetime, str], HistoryJob] = {}
    for store in stores:
        for pipeline in pipelines:
            newest = 0
            for name in reversed(store.days(pipeline)):
                # No job is recorded before it has ended.
                if newest >= limit or (since and name < day_name(since)):
                    break
                stored = store.read(pipeline, name)
                jobs = [job for job in stored.day.jobs if keeps(job)] if stored else []
                own = {job.order: job for job in jobs if since is None or job.ended_at >= since}
                newest += len(own)
                found |= own
    order = sorted(found.values(), key=lambda job: job.order, reverse=True)
    return tuple(order[:limit])


def remove_old_days(store: HistoryStore, pipeline: str, before: date) -> int:
    """Remove the days of a pipeline before a date; return how many. The newest one stays: it has
    the state of the tables."""
    *earlier, _ = store.days(pipeline) or [""]
    old = [name for name in earlier if name < before.isoformat()]
    for name in old:
        store.remove(pipeline, name)
    return len(old)
