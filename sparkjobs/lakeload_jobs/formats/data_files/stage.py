"""Tasks that encode rows into data files and upload them; no upload is completed here."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from lakeload_jobs.aws import AwsError, AwsSession
from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import DestinationSpec, RuntimeSpec
from lakeload_jobs.formats.data_files.encode import PartWriter, UploadPool, part_bytes
from lakeload_jobs.formats.data_files.parts import (
    LoadedRows,
    SplitPart,
    TableParts,
)
from lakeload_jobs.formats.data_files.tracked import TrackedRows, Tracking
from lakeload_jobs.formats.data_files.uploads import (
    NotedUpload,
    StagedFile,
    UploadRegistry,
    upload_metadata,
)
from lakeload_jobs.rows.counting import RowsReport
from lakeload_jobs.rows.failures import failures_for_driver
from lakeload_jobs.rows.progress import TaskProgress
from lakeload_jobs.rows.rejects import (
    SideRows,
)
from lakeload_jobs.storage.objects import Objects

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
    """What one task staged: the `files` of its rows, and in `rejects` those of the side table."""

    partition: int
    rows: RowsReport
    files: tuple[StagedFile, ...]
    rejects: tuple[StagedFile, ...] = ()
    facts: tuple[str, ...] = ()
    """What `Encoded.facts` says of each of `files`."""


@dataclass(frozen=True)
class PartitionWriter:
    """The function Spark runs over each partition; it travels to the tasks, so it holds
    references to secrets and no secret.

    Of the `partitions` the first that it stages is number `first`. `registry` is a folder of this
    machine when tasks run on it, and `progress` a file there (`rows.progress`).
    """

    destination: DestinationSpec
    files: DataFiles
    tracking: Tracking
    partitions: int
    registry: str | None
    on_executor: bool
    first: int = 0
    progress: str | None = None
    writes_rejects: bool = True
    """Whether tasks write the files of the side table, too."""

    def __call__(self, part: int, rows: Iterator[pa.RecordBatch]) -> PartitionReport:
        """Do what `stage` does, with failures as they cross to the driver."""
        with failures_for_driver("stage"):
            return self.stage(self.first + part, rows)

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

            rows = TrackedRows(self.tracking, partition, batches, side, tell)
            # Lazily, one file at a time: memory holds a part, never a partition.
            files = tuple(stager.files(iter(rows)))
            # Before the report: indexes of later partitions depend on this count.
            self.tracking.check_count(partition, rows.count)
            rejects: tuple[StagedFile, ...] = ()
            if side.found.rows and self.writes_rejects:
                rejects = tuple(file for file, _ in stager.files(side.read(), rejects=True))
            tell(rows.count, last=True)
        return PartitionReport(
            partition,
            rows.report,
            tuple(file for file, _ in files),
            rejects,
            tuple(facts for _, facts in files),
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
            writer.destination, writer.tracking.attempt_id, on_executor=writer.on_executor
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
        metadata = upload_metadata(given.tracking.job_id, given.tracking.attempt_id, seq)
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
class Driver:
    """The driver, as far as it reads and writes few rows itself: their tasks would take longer to
    start than to run.

    `objects` are its own. `check` raises `Interrupted` when the run is to stop.
    """

    spark: SparkSession
    objects: Objects
    runtime: RuntimeSpec
    check: Callable[[], None]

    def takes(self, rows: TableParts) -> bool:
        """Whether it reads and writes these rows. A task may have a machine of its own, and may be
        run again."""
        known = self.runtime.tasks_share_driver and not self.runtime.tasks_retried
        return known and rows.small


def count_parts(driver: Driver, rows: TableParts, *, all_columns: bool = False) -> tuple[int, ...]:
    """Return how many rows of each part are loaded. Where nobody knows, parts are read, with what
    `all_columns` means to `TableParts.to_count`."""
    if rows.counts is not None:
        return rows.counts
    if not rows.parts:
        return ()
    if driver.takes(rows):
        return tuple(_in_threads(driver, rows.parts, lambda _, part: rows.read(part).count()))
    read = rows.to_count(all_columns=all_columns)
    return tuple(read.results(driver.spark, _counted))


def _counted(part: int, rows: LoadedRows) -> int:
    """Do the work of a task that counts, with failures as they cross to the driver."""
    with failures_for_driver("stage"):
        return rows.count()


class PartStager(Protocol):
    """What stages the files of each part; it travels to the tasks."""

    def __call__(self, part: int, rows: Iterator[pa.RecordBatch]) -> PartitionReport:
        """Do what `stage` does, with failures as they cross to the driver."""

    def stage(
        self,
        partition: int,
        batches: Iterator[pa.RecordBatch],
        connection: tuple[Objects, UploadPool] | None = None,
    ) -> PartitionReport:
        """Stage the files of a part, with the connection of this process where none is given."""


def stage_parts(driver: Driver, rows: TableParts, writer: PartStager) -> list[PartitionReport]:
    """Stage each part of the rows, and return their reports in the order of parts. Raises what
    tasks raise, and `Interrupted`."""
    if not rows.parts:
        return []
    if driver.takes(rows):

        def stage(number: int, part: SplitPart) -> PartitionReport:
            with contextlib.closing(UploadPool(1)) as pool:
                return writer.stage(number, rows.read(part), (driver.objects, pool))

        return _in_threads(driver, rows.parts, stage)
    return rows.results(driver.spark, writer)


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
