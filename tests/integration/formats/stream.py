"""A source that can be read only once: two tapes of numbers, each read further than the last time.

How far nobody knows before the end, and no two reads of a part are alike: a row that is lost or
loaded twice shows as a gap or a double in the numbers of its tape.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.contract.state import Bookmark, Evidence, StateChange
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER
from lakeload_jobs.sources.base import Rows, Splits

TAPES = 2
BATCH = 100


@dataclass(frozen=True)
class StreamInput:
    """Where the tapes note how often they were read."""

    folder: str
    typed_by_values: ClassVar[bool] = False


def connect_stream(
    spec: JobSpec, aws: AwsSession
) -> Callable[[TableSpec, StreamInput], StreamSource]:
    """Return what makes the source of a table."""
    return StreamSource


@dataclass(frozen=True)
class StreamSource:
    """The tapes of one table."""

    table: TableSpec
    given: StreamInput
    incremental: bool = True

    def slice(self, bookmark: Bookmark) -> StreamSlice:
        return StreamSlice(self.given.folder, bookmark.state)

    def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class StreamSlice:
    """What lies behind the positions of the state: more, and nobody knows how much."""

    folder: str
    state: Any
    idle: bool = False
    records_anyway: bool = False
    must_record: bool = False
    more: bool = False
    sentence: str = "what has come since"
    warnings: tuple[str, ...] = ()
    bytes: int | None = None
    change: StateChange | None = None

    def noted(self, rejected_from: Collection[str]) -> Evidence | None:
        """Return None: nothing is remembered of what was read."""

    def open(self, spark: SparkSession, earlier: Mapping[str, str]) -> Rows:
        positions = self.state or [0] * TAPES
        parts = tuple((tape, position) for tape, position in enumerate(positions))
        kinds = [StructField(name, LongType()) for name in ("tape", "number", BAD_VALUES_HELPER)]
        return Rows(
            spark,
            StructType(kinds),
            ("tape", "number"),
            Splits(parts, Tape(self.folder)),
            repeatable=False,
            finish=lambda ends: StateChange(self.state, list(ends)),
        )


@dataclass(frozen=True)
class Tape:
    """Reads one tape from a position on, further each time; returns where it has stopped."""

    folder: str

    def __call__(self, part: Any) -> Generator[pa.RecordBatch, None, int]:
        tape, position = int(part[0]), int(part[1])
        with Path(self.folder, f"reads-{tape}").open("a") as reads:
            reads.write("x")
        times = Path(self.folder, f"reads-{tape}").stat().st_size
        for number in range(2 + times):
            first = position + number * BATCH
            numbers = pa.array(range(first, first + BATCH), pa.int64())
            tapes = pa.array([tape] * BATCH, pa.int64())
            # The first value of each batch could not be read.
            bad = pa.array([1] + [0] * (BATCH - 1), pa.int64())
            names = ["tape", "number", BAD_VALUES_HELPER]
            yield pa.RecordBatch.from_arrays([tapes, numbers, bad], names=names)
            deadly = Path(self.folder, "deadly")
            if tape == 1 and number == 1 and deadly.exists():
                deadly.unlink()
                os.kill(os.getpid(), signal.SIGKILL)
        return position + (2 + times) * BATCH


def reads(folder: Path) -> list[int]:
    """Return how often each tape was read."""
    return [(folder / f"reads-{tape}").stat().st_size for tape in range(TAPES)]
