"""Facts of one job for its reports: what is known when it begins, and what its events add."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lakeload.sources.datasets import Dataset
from lakeload_jobs.contract.events import Event, Stage
from lakeload_jobs.contract.spec import DestinationSpec, TableSpec


@dataclass(frozen=True)
class ReportedJob:
    """One job. `started` is its instant, UTC."""

    pipeline: str
    job_id: str
    attempt_id: str
    started: datetime
    destination: DestinationSpec
    tables: tuple[TableSpec, ...]
    inputs: Mapping[str, tuple[Dataset, ...]] = field(default_factory=dict)
    """What each table reads, by its source name."""
    only_news: bool = False
    """Tables without anything new are not reported, nor a job without any other."""


@dataclass(frozen=True)
class Parent:
    """A run of another program: the one that started this command, or the one at its root."""

    namespace: str
    name: str
    run_id: str


@dataclass(frozen=True)
class Measurement:
    """One value of a metric: its name and unit in OpenTelemetry, what it is, its attributes."""

    name: str
    unit: str
    about: str
    attributes: Mapping[str, str]
    value: float


@dataclass
class TableTimes:
    """When a table went through its stages, as the job's events say."""

    stages: list[tuple[Stage, datetime]] = field(default_factory=list)
    """Each stage and when it began."""
    ended: datetime | None = None

    @property
    def started(self) -> datetime:
        """When its first stage began."""
        return self.stages[0][1]


class JobTimes:
    """When the tables of a job began and ended."""

    def __init__(self) -> None:
        self.tables: dict[str, TableTimes] = {}

    def note(self, event: Event) -> None:
        """Take in an event of the job."""
        if event.table is None:
            return
        if event.kind == "stage" and event.stage:
            times = self.tables.setdefault(event.table, TableTimes())
            times.stages.append((event.stage, event.at))
        elif event.kind == "table" and event.table in self.tables:
            self.tables[event.table].ended = event.at
