"""A table's metadata as it grows: what lakeload publishes, and what others do to it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lakeload_jobs.formats.iceberg.rules.admission import next_properties
from lakeload_jobs.formats.iceberg.rules.facts import (
    CREATED_BY,
    PipelineState,
    Snapshot,
    TableAttempt,
    TableFacts,
)

JOB = TableAttempt("shop", "j1", "a1", "f" * 64, "orders.csv", "db.orders")


@dataclass
class Table:
    """Mutable, for tests; `facts` is one read of it. Snapshots are numbered from 1."""

    properties: dict[str, str] = field(default_factory=lambda: {CREATED_BY: "shop"})
    refs: dict[str, int] = field(default_factory=dict)
    snapshots: dict[int, Snapshot] = field(default_factory=dict)
    last: int = 0

    @property
    def facts(self) -> TableFacts:
        return TableFacts(
            location="s3://lake/db/orders",
            uuid="u",
            properties=dict(self.properties),
            refs=dict(self.refs),
            snapshots=dict(self.snapshots),
            columns={},
            required=frozenset(),
            identifiers=(),
            format_version=2,
            metadata_location=None,
        )

    def commit(self, summary: Mapping[str, str] | None = None, *, records: int = 5) -> int:
        """Another engine adds a snapshot."""
        self.last += 1
        before = self.refs.get("main")
        self.snapshots[self.last] = Snapshot(
            self.last,
            before,
            1_700_000_000_000 + self.last,
            {"total-records": str(records), **(summary or {})},
        )
        self.refs["main"] = self.last
        return self.last

    def publish(
        self,
        job: TableAttempt = JOB,
        *,
        state: Any = None,
        marked: bool = False,
        rows: int = 0,
        summary: Mapping[str, str] | None = None,
    ) -> int:
        """A load of lakeload; `marked`: its snapshot's summary tells so too, with `summary`."""
        before = self.facts
        summary = {
            "lakeload.job-id": job.job_id,
            "lakeload.pipeline": job.pipeline,
            **(summary or {}),
        }
        summary["lakeload.rows"] = str(rows)
        if job.retries is not None:
            summary["lakeload.retried"] = job.retries
        number = self.commit(summary if marked else None)
        new = PipelineState(
            job.source, job.job_id, number, job.fingerprint, {}, state, rows_job=job.job_id
        )
        sets_state = state is not None
        self.properties.update(
            next_properties(
                before,
                job.pipeline,
                job.job_id,
                number,
                new,
                sets_state=sets_state,
                retries=job.retries,
            )
        )
        return number

    def roll_back(self, to: int | None) -> None:
        """A person moves `main`; properties stay as they are."""
        if to is None:
            del self.refs["main"]
        else:
            self.refs["main"] = to

    def expire(self, numbers: Collection[int]) -> None:
        """Snapshots leave the metadata."""
        for number in numbers:
            del self.snapshots[number]


def job(job_id: str, pipeline: str = "shop", **more: Any) -> TableAttempt:
    """Return a job like `JOB`."""
    return replace(JOB, job_id=job_id, pipeline=pipeline, **more)
