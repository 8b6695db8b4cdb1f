"""Tasks that write the rejected records of a load as data files of its side table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lakeload_jobs.formats.data_files.encode import UploadPool
from lakeload_jobs.formats.data_files.stage import PartitionReport, PartitionWriter
from lakeload_jobs.formats.data_files.tracked import ReadRejects
from lakeload_jobs.formats.iceberg.rules.rejects import ROUND_COLUMN
from lakeload_jobs.rows.counting import NO_ROWS
from lakeload_jobs.rows.failures import failures_for_driver
from lakeload_jobs.storage.objects import Objects


@dataclass(frozen=True)
class RejectsWriter:
    """Reads parts once more and writes what is rejected in them, as records of the round that
    stages on `branch`. It travels to the tasks (`stage.PartStager`)."""

    writer: PartitionWriter
    branch: str

    def __call__(self, part: int, rows: Iterator[pa.RecordBatch]) -> PartitionReport:
        """Do what `stage` does, with failures as they cross to the driver."""
        with failures_for_driver("stage"):
            return self.stage(part, rows)

    def stage(
        self,
        partition: int,
        batches: Iterator[pa.RecordBatch],
        connection: tuple[Objects, UploadPool] | None = None,
    ) -> PartitionReport:
        """Encode and upload the rejected records of a part; on any failure abort the uploads."""
        read = ReadRejects(self.writer.tracking)
        with self.writer.stager(partition, connection) as stager:
            found = list(stager.files(map(self._of_round, read(partition, batches))))
        facts = (
            json.dumps({**json.loads(facts), "partition": [self.branch]}) for _, facts in found
        )
        return PartitionReport(
            partition, NO_ROWS, tuple(file for file, _ in found), facts=tuple(facts)
        )

    def _of_round(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        rounds = pa.repeat(pa.scalar(self.branch), batch.num_rows)
        return batch.append_column(ROUND_COLUMN, rounds)
