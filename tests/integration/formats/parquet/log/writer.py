"""One writer of the protocol without Spark: stages a file or three and commits them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from lakeload_jobs.contract.codec import from_json, to_json
from lakeload_jobs.contract.spec import AppendAgain, TableHandling
from lakeload_jobs.contract.state import StateChange
from lakeload_jobs.core.layout import TableLocation, data_key
from lakeload_jobs.formats.data_files.uploads import StagedFile, upload_metadata
from lakeload_jobs.formats.parquet.log.admission import LoadAttempt
from lakeload_jobs.formats.parquet.log.records import (
    Column,
    GlueTarget,
    LoadRecord,
    Rejects,
    Target,
    encode,
)
from lakeload_jobs.formats.parquet.log.roll_forward import ParquetCatalog
from lakeload_jobs.formats.parquet.log.table_log import (
    Committed,
    InspectedLog,
    OpenedLog,
    TableLog,
)
from lakeload_jobs.storage.objects import Objects

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
SYNCED = datetime(2026, 11, 21, 10, 15, 30, 1, tzinfo=UTC)


@dataclass
class Writer:
    """One attempt of one job. Each file holds one row: its job id and number, as text."""

    objects: Objects
    job_id: str = "job-1"
    pipeline: str = "shop"
    source: str = "orders"
    table_handling: TableHandling = "APPEND"
    fingerprint: str = "f" * 64
    files: int = 2
    rejects: int = 0
    """Files of the side table, one row each."""
    state: Any = None
    notes: list[str] = field(default_factory=list)
    table: str = "orders"
    glue: GlueTarget | None = None
    catalog: ParquetCatalog | None = None
    columns: tuple[str, ...] = ("id",)
    attempt_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    inspected: InspectedLog | None = None
    append_again: AppendAgain | None = None

    def __post_init__(self) -> None:
        """Begin with a log of its own, as a process would."""
        self.location = TableLocation("data-lake/test", "shop", self.table)
        self.log = TableLog(
            self.objects,
            self.location,
            notify=self.notes.append,
            catalog=self.catalog,
            inspected=self.inspected,
        )

    def attempt(self) -> LoadAttempt:
        """What is asked of the log."""
        return LoadAttempt(
            self.pipeline,
            self.job_id,
            self.attempt_id,
            self.fingerprint,
            self.source,
            self.table_handling,
            append_again=self.append_again,
        )

    def open(self) -> OpenedLog:
        """Step 0."""
        return self.log.open(self.attempt())

    def inspect(self) -> OpenedLog:
        """What is done before Spark starts."""
        return self.log.inspect(self.attempt())

    def after_inspection(self) -> Writer:
        """Return the same job in the process that follows an inspection, which is made here."""
        seen = self.inspect().inspected
        assert seen is not None
        return replace(self, inspected=from_json(InspectedLog, to_json(seen)))

    def stage(self) -> LoadRecord:
        """Step 2, and the record for step 3."""
        staged = tuple(self._stage(self.location, number) for number in range(self.files))
        side = self.location.side_table
        aside = tuple(self._stage(side, number) for number in range(self.rejects))
        return LoadRecord(
            tool="lakeload test",
            pipeline=self.pipeline,
            source=self.source,
            job_id=self.job_id,
            attempt_id=self.attempt_id,
            started_at=datetime.now(UTC),
            created_at=datetime.now(UTC),
            synced=SYNCED,
            mode="APPEND",
            table_handling=self.table_handling,
            fingerprint=self.fingerprint,
            target=Target("data-lake/test", "shop", self.table),
            partition_strategy="HOUR",
            file_name_pattern="part-{supa_job_id}-{seq}",
            partition="2026/11/21/10",
            columns=tuple(Column(name, "bigint") for name in self.columns),
            column_map={"ID": "id"},
            index="dense",
            rows=self.files,
            files=staged,
            glue=self.glue,
            state=None if self.state is None else StateChange(None, self.state),
            rejected=Rejects(side.table, (Column("reason", "string"),), len(aside), aside)
            if aside
            else None,
        )

    def _stage(self, location: TableLocation, number: int) -> StagedFile:
        key = data_key(location, "2026/11/21/10", f"part-{self.job_id}-{number:05d}")
        metadata = upload_metadata(self.job_id, self.attempt_id, number)
        upload_id = self.objects.create_upload(key, metadata)
        body = f"{self.job_id} {self.attempt_id} {number}".encode()
        part = self.objects.upload_part(key, upload_id, 1, body)
        return StagedFile(key, upload_id, (part,), 1, len(body))

    def run(self) -> Committed | OpenedLog:
        """The whole job; what `open` said when it is loaded already."""
        opened = self.open()
        if opened.already is not None:
            return opened
        return self.log.commit(self.stage())


def commit_only(objects: Objects, writer: Writer, number: int = 1) -> LoadRecord:
    """Commit, a long time ago, a job whose process died right after that."""
    record = replace(writer.stage(), created_at=LONG_AGO)
    assert objects.put_if_absent(writer.location.record_key(number), encode(record))
    return record
