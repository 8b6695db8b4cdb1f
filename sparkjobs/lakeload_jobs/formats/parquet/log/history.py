"""What a table's log says of each pipeline, and the checkpoint that caches it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from lakeload_jobs.contract.spec import PartitionStrategy
from lakeload_jobs.formats.parquet.log.log_codec import tool_version
from lakeload_jobs.formats.parquet.log.records import Column, GlueTarget, LoadRecord

JOBS_REMEMBERED = 10_000
"""Job ids a checkpoint keeps, the latest of all pipelines together (DESIGN section 7, State)."""

Outcome = Literal["done", "partial", "void"]


@dataclass(frozen=True)
class PipelineHistory:
    """What the log says of one pipeline. Numbers are those of records."""

    source: str
    latest: int | None = None
    """Its newest record that is not void."""
    column_map: dict[str, str] = field(default_factory=dict)
    done: dict[str, int] = field(default_factory=dict)
    void: dict[str, int] = field(default_factory=dict)
    state: Any = None
    state_number: int | None = None
    glue: GlueTarget | None = None
    """The Glue table of its newest record; None without Glue."""
    partition_strategy: PartitionStrategy | None = None
    """That of its newest record; None where an older lakeload did not keep it."""


@dataclass(frozen=True)
class Checkpoint:
    """A cache of the log's settled beginning, records 1 to `number`.

    It covers no record that is undone, uncatalogued or uncleaned, and may lag behind the log by
    any distance: records stay, so an old checkpoint only makes the LIST longer (P11, P12).
    """

    KIND: ClassVar[str] = "CHECKPOINT"

    tool: str
    number: int
    pipelines: dict[str, PipelineHistory]
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class EarlierJob:
    """A job id that the log knows."""

    pipeline: str
    number: int
    void: bool


class History:
    """Grows record by record, in the log's order, from a checkpoint or from nothing."""

    def __init__(self, checkpoint: Checkpoint | None = None) -> None:
        self.number = checkpoint.number if checkpoint else 0
        known = checkpoint.pipelines if checkpoint else {}
        self.pipelines = {
            name: replace(pipeline, done=dict(pipeline.done), void=dict(pipeline.void))
            for name, pipeline in known.items()
        }
        self._columns = {c.name: c.type for c in checkpoint.columns} if checkpoint else {}
        self.resetting: dict[str, int] = {}
        """Pipelines whose reset is not finished, with its record: no checkpoint covers that."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The union of the columns of all records that are not void, in order of appearance."""
        return tuple(Column(name, kind) for name, kind in self._columns.items())

    def pass_by(self, number: int) -> None:
        """Pass a record that says nothing of any pipeline: a fence, or one not settled yet."""
        self._advance(number)

    def add(self, number: int, record: LoadRecord, outcome: Outcome) -> None:
        """Take in a settled record."""
        self._advance(number)
        known = self.pipelines.setdefault(record.pipeline, PipelineHistory(record.source))
        if outcome == "void":
            known.void[record.job_id] = number
            return
        known.done[record.job_id] = number
        for column in record.columns:
            self._columns.setdefault(column.name, column.type)
        changed = replace(
            known,
            source=record.source,
            latest=number,
            column_map=record.column_map,
            glue=record.glue,
            partition_strategy=record.partition_strategy,
        )
        if record.state is not None:
            changed = replace(changed, state=record.state.after, state_number=number)
        self.pipelines[record.pipeline] = changed

    def add_reset(self, number: int, pipeline: str, *, finished: bool) -> None:
        """Forget what a pipeline has loaded. The ids of its jobs stay spent: a reset that comes
        late must not find its keys in use again (P7)."""
        self._advance(number)
        self.resetting.pop(pipeline, None)
        if not finished:
            self.resetting[pipeline] = number
        if known := self.pipelines.get(pipeline):
            spent = {**known.void, **known.done}
            self.pipelines[pipeline] = PipelineHistory(known.source, void=spent)
        if all(other.latest is None for other in self.pipelines.values()):
            self._columns.clear()

    def find_job(self, job_id: str) -> EarlierJob | None:
        """Return the job of this id, whatever its pipeline."""
        for name, pipeline in self.pipelines.items():
            if job_id in pipeline.done:
                return EarlierJob(name, pipeline.done[job_id], void=False)
            if job_id in pipeline.void:
                return EarlierJob(name, pipeline.void[job_id], void=True)
        return None

    def checkpoint(self) -> Checkpoint:
        """Return what has been taken in, with the latest `JOBS_REMEMBERED` job ids."""
        numbers = sorted(self._job_numbers(), reverse=True)[:JOBS_REMEMBERED]
        oldest = numbers[-1] if numbers else 0
        kept = {
            name: replace(
                pipeline,
                done={job: n for job, n in pipeline.done.items() if n >= oldest},
                void={job: n for job, n in pipeline.void.items() if n >= oldest},
            )
            for name, pipeline in self.pipelines.items()
        }
        return Checkpoint(tool_version(), self.number, kept, self.columns)

    def _job_numbers(self) -> Iterator[int]:
        for pipeline in self.pipelines.values():
            yield from pipeline.done.values()
            yield from pipeline.void.values()

    def _advance(self, number: int) -> None:
        if number != self.number + 1:
            raise ValueError(f"record {number} does not follow record {self.number}")
        self.number = number
