"""Tasks that encode rows into data files and upload them; no upload is completed here."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.contract.codec import from_json, to_json
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import DestinationSpec, RuntimeSpec
from lakeload_jobs.formats.data_files.direct import (
    DirectRows,
    LoadedRows,
    ReadWritten,
    SplitPart,
)
from lakeload_jobs.formats.data_files.encode import PartWriter, UploadPool, part_bytes
from lakeload_jobs.formats.data_files.uploads import (
    NotedUpload,
    StagedFile,
    UploadRegistry,
    upload_metadata,
)
from lakeload_jobs.rows.batches import map_batches, numbers, part_numbers
from lakeload_jobs.rows.failures import failures_for_driver
from lakeload_jobs.rows.progress import TaskProgress
from lakeload_jobs.rows.rejects import (
    NONE_REJECTED,
    REJECTED_HELPER,
    SIDE_COLUMNS,
    Rejected,
    RejectedJob,
    SideRows,
    loaded_rows,
    side_rows,
)
from lakeload_jobs.rows.tracking import (
    DELETED_HELPER,
    POSITION_BITS,
    add_tracking,
    bad_values,
)
from lakeload_jobs.sources.base import check_part
from lakeload_jobs.storage.objects import Objects

REPORT_SCHEMA = "report string"

R = TypeVar("R")


@dataclass(frozen=True)
class Encoded:
    """One encoded file: its rows, and what a format wants to know of its contents; '' for
    nothing."""

    rows: int
    facts: str = ""


class DataFiles(Protocol):
    """The data files of one load of a table. It travels to the tasks."""

    @property
    def target_size(self) -> int:
        """About how many bytes a file has."""

    def key(self, seq: int, *, rejects: bool) -> str:
        """Return the key of a new file, which no other file has. `seq` is unique in a load, and
        the file is one of the side table where it `rejects`."""

    def encode(
        self, first: pa.RecordBatch, rest: Iterator[pa.RecordBatch], sink: PartWriter
    ) -> Encoded:
        """Encode one file from `first` and as much of `rest` as fits."""


@dataclass(frozen=True)
class PartitionReport:
    """What one task staged. `bad_values` became null under `on_bad_value: NULL`.

    `rows` are all records of the partition; those that are `rejected` are in `rejects`, files of
    the side table.
    """

    partition: int
    rows: int
    bad_values: int
    files: tuple[StagedFile, ...]
    rejected: Rejected = NONE_REJECTED
    rejects: tuple[StagedFile, ...] = ()
    facts: tuple[str, ...] = ()
    """What `Encoded.facts` says of each of `files`."""
    dropped: int = 0
    """Rows that `where` drops, as far as tasks evaluate it; they are not among `rows`."""


@dataclass(frozen=True)
class PartitionWriter:
    """The function Spark runs over each partition; it travels to the tasks, so it holds
    references to secrets and no secret.

    `counts` are the rows of each of the `partitions`, None where nobody has counted them: one needs
    no count, and over several the index then has gaps. Spark's first partition is number `first`.
    `registry` is a folder of this machine when tasks run on it, and `progress` a file there
    (`rows.progress`).
    """

    destination: DestinationSpec
    files: DataFiles
    job_id: str
    attempt_id: str
    synced: datetime
    tracking_columns: tuple[str, ...]
    key_columns: tuple[str, ...]
    partitions: int
    counts: tuple[int, ...] | None
    registry: str | None
    on_executor: bool
    first: int = 0
    progress: str | None = None
    writes_rejects: bool = True
    """Whether tasks write the files of the side table, too."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stage one partition and yield one row: its report."""
        context = TaskContext.get()
        partition = self.first + (context.partitionId() if context is not None else 0)
        yield pa.RecordBatch.from_pylist([{"report": self.report(partition, batches)}])

    def report(self, partition: int, batches: Iterator[pa.RecordBatch]) -> str:
        """Do what `stage` does, with report and failures as they cross to the driver."""
        with failures_for_driver("stage"):
            report = self.stage(partition, batches)
        return json.dumps(to_json(report))

    def stage(
        self,
        partition: int,
        batches: Iterator[pa.RecordBatch],
        connection: tuple[Objects, UploadPool] | None = None,
    ) -> PartitionReport:
        """Encode and upload the batches, with the connection of this process where none is given;
        on any failure abort what this call has opened."""
        with self.stager(partition, connection) as stager, SideRows() as side:

            def tell(rows: int, *, last: bool = False) -> None:
                stager.tell(rows, last=last)

            rows = TrackedRows(self, partition, batches, side, tell)
            # Lazily, one file at a time: memory holds a part, never a partition.
            files = tuple(stager.files(iter(rows)))
            # Before the report: indexes of later partitions depend on this count.
            self.check_count(partition, rows.count)
            rejects: tuple[StagedFile, ...] = ()
            if side.found.rows and self.writes_rejects:
                rejects = tuple(file for file, _ in stager.files(side.read(), rejects=True))
            tell(rows.count, last=True)
        rejected = replace(side.found, of=rows.count)
        return PartitionReport(
            partition,
            rows.count,
            rows.bad_values,
            tuple(file for file, _ in files),
            rejected,
            rejects,
            tuple(facts for _, facts in files),
            rows.dropped,
        )

    @contextlib.contextmanager
    def stager(
        self, partition: int, connection: tuple[Objects, UploadPool] | None = None
    ) -> Iterator[FileStager]:
        """Give what stages the files of one task; a failure within aborts what it has opened."""
        stager = FileStager(self, partition, connection)
        try:
            yield stager
        # Also KeyboardInterrupt and a killed task: an upload without a report is waste.
        except BaseException:
            stager.abort()
            raise

    def check_count(self, partition: int, rows: int) -> None:
        """Raise `LoadFailed` where a partition has other rows than were counted."""
        if self.counts is not None:
            check_part(partition, self.counts[partition], rows)


class FileStager:
    """The files of one task: encoded, their parts uploaded, none of them completed."""

    def __init__(
        self,
        writer: PartitionWriter,
        partition: int,
        connection: tuple[Objects, UploadPool] | None = None,
    ) -> None:
        self._writer = writer
        self._partition = partition
        self._objects, self._pool = connection or _connection(
            writer.destination, writer.attempt_id, on_executor=writer.on_executor
        )
        self._opened: list[PartWriter] = []
        self._progress = TaskProgress(writer.progress)

    def files(
        self, batches: Iterator[pa.RecordBatch], *, rejects: bool = False
    ) -> Iterator[tuple[StagedFile, str]]:
        """Yield files of the batches with their `Encoded.facts`, one after the other."""
        while (first := next(batches, None)) is not None:
            writer = self._open(rejects=rejects)
            encoded = self._writer.files.encode(first, batches, writer)
            parts = writer.finish()
            file = StagedFile(writer.key, writer.upload_id, parts, encoded.rows, writer.size)
            yield file, encoded.facts

    def tell(self, rows: int, *, last: bool = False) -> None:
        """Tell the progress of the task: rows, and the bytes that are encoded."""
        self._progress.at(rows, sum(writer.size for writer in self._opened), last=last)

    def abort(self) -> None:
        """Abort all uploads."""
        self._progress.at(0, 0, last=True)
        _abort(self._objects, self._opened)

    def _open(self, *, rejects: bool) -> PartWriter:
        given = self._writer
        # Unique without coordination: each partition has its own residue class.
        seq = self._partition + len(self._opened) * given.partitions
        key = given.files.key(seq, rejects=rejects)
        metadata = upload_metadata(given.job_id, given.attempt_id, seq)
        upload_id = self._objects.create_upload(key, metadata)
        size_of_part = part_bytes(given.files.target_size)
        writer = PartWriter(self._objects, self._pool, key, upload_id, size_of_part=size_of_part)
        self._opened.append(writer)
        if given.registry is not None:
            registry = UploadRegistry(Path(given.registry))
            # The driver has already cleaned up: an upload it does not know would stay open.
            if not registry.add(NotedUpload(key, upload_id)):
                raise LoadFailed("the load has ended, and this task was still running")
        return writer


@dataclass(frozen=True)
class SplitWriter:
    """What Spark runs over partitions of one part each: `read` reads it, `writer` stages it."""

    writer: PartitionWriter
    read: Callable[[Any], Iterator[pa.RecordBatch]]

    def __call__(self, partition: int, parts: Iterable[Any]) -> Iterator[str]:
        """Stage the part of one partition and yield its report."""
        for part in parts:
            yield self.writer.report(partition, self.read(part))


@dataclass(frozen=True)
class Driver:
    """The driver, as far as it reads and writes few rows itself: their tasks would take longer to
    start than to run.

    `objects` are its own. `check` raises `Interrupted` when the run is to stop.
    """

    spark: SparkSession
    objects: Objects
    runtime: RuntimeSpec
    check: Callable[[], None]

    def takes(self, rows: DirectRows) -> bool:
        """Whether it reads and writes these rows. A task may have a machine of its own, and may be
        run again."""
        known = self.runtime.tasks_share_driver and not self.runtime.tasks_retried
        return known and rows.small


def count_parts(driver: Driver, rows: DirectRows) -> tuple[int, ...]:
    """Return how many rows of each part are loaded; where a condition decides, parts are read."""
    if rows.counts is not None:
        return rows.counts
    if not rows.parts:
        return ()
    if driver.takes(rows):
        return tuple(_in_threads(driver, rows.parts, lambda _, part: rows.read.count(part)))
    return tuple(rows.to_rdd(driver.spark).map(_CountRows(rows.read)).collect())


@dataclass(frozen=True)
class _CountRows:
    """The function of tasks that count, with failures as they cross to the driver."""

    read: ReadWritten

    def __call__(self, part: SplitPart) -> int:
        with failures_for_driver("stage"):
            return self.read.count(part)


def rejected_frame(
    spark: SparkSession, rows: DirectRows, counts: tuple[int, ...], job: RejectedJob
) -> DataFrame:
    """Return the rejected records of all parts, which tasks read again, as `SIDE_COLUMNS`."""
    read = ReadRejects(rows, counts, job)
    columns = ", ".join(f"{name} {kind}" for name, kind in SIDE_COLUMNS.items())
    return map_batches(part_numbers(spark, len(rows.parts)), read, columns)


@dataclass(frozen=True)
class ReadRejects:
    """The function of tasks that are given numbers of parts; `counts` are the rows of each."""

    rows: DirectRows
    counts: tuple[int, ...]
    job: RejectedJob

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with failures_for_driver("stage"):
            for number in numbers(batches):
                index = 1 + sum(self.counts[:number])
                for batch in self.rows.read(self.rows.parts[number]):
                    found = side_rows(batch.column(REJECTED_HELPER), index, self.job)
                    if found is not None:
                        yield found
                    index += batch.num_rows


def stage_parts(driver: Driver, rows: DirectRows, writer: PartitionWriter) -> list[PartitionReport]:
    """Run a task for each part of the rows, and return their reports, in no certain order. Raises
    what they raise, and `Interrupted`."""
    if not rows.parts:
        return []
    if driver.takes(rows):

        def stage(number: int, part: SplitPart) -> PartitionReport:
            with contextlib.closing(UploadPool(1)) as pool:
                return writer.stage(number, rows.read(part), (driver.objects, pool))

        return _in_threads(driver, rows.parts, stage)
    write = SplitWriter(writer, rows.read)
    texts = rows.to_rdd(driver.spark).mapPartitionsWithIndex(write).collect()
    return list(map(read_report, texts))


_SECONDS = 0.1
"""So often the driver looks whether it is to stop."""


def _in_threads(
    driver: Driver, parts: Sequence[SplitPart], work: Callable[[int, SplitPart], R]
) -> list[R]:
    """Return what `work` makes of each part. Raises `Interrupted` without waiting for them, as with
    Spark's tasks: a registry that is closed takes no upload of theirs."""
    pool = ThreadPoolExecutor(len(parts), thread_name_prefix="part")
    try:
        running = [pool.submit(work, number, part) for number, part in enumerate(parts)]
        while wait(running, _SECONDS).not_done:
            driver.check()
        return [one.result() for one in running]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


class TrackedRows:
    """The batches of a partition with tracking columns, without empty ones and without rejected
    records, which go to `side`. All are counted."""

    def __init__(
        self,
        writer: PartitionWriter,
        partition: int,
        batches: Iterator[pa.RecordBatch],
        side: SideRows,
        tell: Callable[[int], None],
    ) -> None:
        self.count = 0
        self._tell = tell
        self.bad_values = 0
        self._writer = writer
        self._batches = batches
        self._side = side
        self._job = RejectedJob(writer.synced, writer.job_id, writer.attempt_id)
        counts, sparse = writer.counts, partition << POSITION_BITS
        self._first_index = 1 + (sparse if counts is None else sum(counts[:partition]))

    @property
    def dropped(self) -> int:
        """How many rows `where` has dropped; 0 where Spark has evaluated it."""
        return self._batches.dropped if isinstance(self._batches, LoadedRows) else 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            if batch.num_rows == 0:
                continue
            self.bad_values += bad_values(batch)
            tracked = add_tracking(
                batch,
                first_index=self._first_index + self.count,
                synced=self._writer.synced,
                job_id=self._writer.job_id,
                key_columns=self._writer.key_columns,
                deleted=DELETED_HELPER if DELETED_HELPER in batch.schema.names else None,
                columns=self._writer.tracking_columns,
            )
            if REJECTED_HELPER in batch.schema.names:
                rejects = batch.column(REJECTED_HELPER)
                self._side.add(rejects, self._first_index + self.count, self._job)
                tracked = loaded_rows(tracked, rejects)
            self.count += batch.num_rows
            self._tell(self.count)
            if tracked.num_rows:
                yield tracked


def _abort(objects: Objects, writers: list[PartWriter]) -> None:
    """Abort a task's uploads. What AWS refuses now must not hide why the task failed; the driver
    tries once more."""
    for writer in writers:
        # A part that arrives after the abort would keep the upload open.
        writer.wait()
        with contextlib.suppress(AwsError):
            objects.abort_upload(writer.key, writer.upload_id)


# State of a Python worker, which runs one task after another, and in a session that goes on those
# of later jobs too: it would assume the role again for each task. Never more than one: another
# attempt or destination ends what was there.
_connections: dict[str, tuple[Objects, UploadPool]] = {}


def _connection(
    destination: DestinationSpec, attempt_id: str, *, on_executor: bool
) -> tuple[Objects, UploadPool]:
    """Return this worker's S3 client and upload threads for an attempt, made on first use."""
    key = json.dumps([to_json(destination), attempt_id])
    if key not in _connections:
        for _, pool in _connections.values():
            pool.close()
        _connections.clear()
        session = AwsSession(destination, label=f"sync-{attempt_id}", on_executor=on_executor)
        pool = UploadPool(destination.parquet.upload_parallelism)
        _connections[key] = (Objects(session, destination), pool)
    return _connections[key]


def read_report(text: str) -> PartitionReport:
    """Read the row a task returned."""
    data: Any = json.loads(text)
    return from_json(PartitionReport, data)
