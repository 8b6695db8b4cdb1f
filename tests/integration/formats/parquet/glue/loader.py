"""Jobs without Spark whose rows are real Parquet files and whose tables are in Glue."""

from __future__ import annotations

import copy
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakeload_jobs.aws import AwsSession
from lakeload_jobs.contract.spec import DestinationSpec, ParquetSpec, TableHandling
from lakeload_jobs.core.layout import TableLocation, data_key, partition_path
from lakeload_jobs.formats.data_files.uploads import StagedFile
from lakeload_jobs.formats.data_files.uploads import upload_metadata as metadata
from lakeload_jobs.formats.parquet.glue import GlueCatalog, glue_target
from lakeload_jobs.formats.parquet.log.admission import LoadAttempt
from lakeload_jobs.formats.parquet.log.records import (
    Column,
    GlueTarget,
    LoadRecord,
    Target,
    encode,
)
from lakeload_jobs.formats.parquet.log.roll_forward import NewColumn
from lakeload_jobs.formats.parquet.log.table_log import Committed, OpenedLog, TableLog
from lakeload_jobs.storage.objects import Objects
from tests import athena
from tests.integration.conftest import QUICK, make_destination
from tests.servers.glue import glue_of
from tests.servers.ministack import Lake

SCHEMA = "supaflow_shop"
TEN = datetime(2026, 11, 21, 10, 15, tzinfo=UTC)
PATIENT = replace(QUICK, answer=30)
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Loader:
    """One process that loads one table, as its own role, through `endpoint`."""

    lake: Lake
    endpoint: str | None = None
    parquet: ParquetSpec = field(default_factory=lambda: ParquetSpec(update_glue_catalog=True))
    table: str = "orders"
    pipeline: str = "shop"

    def __post_init__(self) -> None:
        """Begin with clients of its own, as a process would."""
        place = self.endpoint or self.lake.server.endpoint
        spec = make_destination(self.lake, self.endpoint, parquet=self.parquet)
        endpoints = replace(spec.endpoints, glue=place)
        self.destination: DestinationSpec = replace(spec, endpoints=endpoints)
        self.session = AwsSession(self.destination, read_timeout=5, max_attempts=2)
        self.objects = Objects(self.session, self.destination, waits=QUICK)
        self.catalog = GlueCatalog(self.session, self.destination, waits=PATIENT)
        self.location = TableLocation(self.destination.prefix, SCHEMA, self.table)
        self.url = f"s3://{self.destination.bucket}/{self.location.data_path}"

    def again(self, **changes: Any) -> Loader:
        """Return another process in all but its clients, which take long to make."""
        other = copy.copy(self)
        for name, value in changes.items():
            setattr(other, name, value)
        other.destination = replace(self.destination, parquet=other.parquet)
        other.catalog = GlueCatalog(self.session, other.destination, waits=PATIENT)
        other.location = TableLocation(other.destination.prefix, SCHEMA, other.table)
        other.url = f"s3://{other.destination.bucket}/{other.location.data_path}"
        return other

    @property
    def target(self) -> GlueTarget:
        """The Glue table."""
        found = glue_target(self.destination, self.location)
        assert found is not None
        return found

    def load(
        self,
        job_id: str,
        rows: Mapping[str, Sequence[Any]] | pa.Table,
        types: Mapping[str, str],
        *,
        synced: datetime = TEN,
        table_handling: TableHandling = "APPEND",
    ) -> Committed:
        """Run a whole job as the product does: open, check, stage, commit, catalogue."""
        log = self.log()
        opened = self.open(log, job_id, table_handling)
        columns = tuple(Column(name, kind) for name, kind in types.items())
        self.catalog.check(self.target, opened.columns)
        known = {column.name for column in opened.columns}
        added = (NewColumn(c.name, c.type, c.name) for c in columns if c.name not in known)
        self.catalog.check(self.target, (*opened.columns, *added))
        record = self.stage(job_id, rows, columns, synced)
        return log.commit(replace(record, table_handling=table_handling))

    def log(self) -> TableLog:
        """Return the table's log with Glue as its catalog."""
        return TableLog(self.objects, self.location, catalog=self.catalog)

    def open(
        self, log: TableLog, job_id: str, table_handling: TableHandling = "APPEND"
    ) -> OpenedLog:
        """Step 0."""
        return log.open(self.attempt(job_id, table_handling))

    def attempt(self, job_id: str, table_handling: TableHandling = "APPEND") -> LoadAttempt:
        """What is asked of the log."""
        return LoadAttempt(self.pipeline, job_id, job_id, "f" * 64, self.table, table_handling)

    def stage(
        self,
        job_id: str,
        rows: Mapping[str, Sequence[Any]] | pa.Table,
        columns: Sequence[Column],
        synced: datetime,
    ) -> LoadRecord:
        """Step 2, and the record for step 3. No rows make a record without files or columns."""
        data = rows if isinstance(rows, pa.Table) else pa.table(dict(rows))
        strategy = self.parquet.partition_strategy
        partition = partition_path(strategy, synced, job_id)
        files = (self._upload(job_id, partition, data),) if data.num_rows else ()
        return LoadRecord(
            tool="lakeload test",
            pipeline=self.pipeline,
            source=self.table,
            job_id=job_id,
            attempt_id=job_id,
            started_at=synced,
            created_at=LONG_AGO,
            synced=synced,
            mode="APPEND",
            table_handling="APPEND",
            fingerprint="f" * 64,
            target=Target(self.destination.prefix, self.location.schema, self.table),
            partition_strategy=strategy,
            file_name_pattern="part-{supa_job_id}-{seq}",
            partition=partition,
            columns=tuple(columns) if files else (),
            column_map={column.name: column.name for column in columns},
            index="dense",
            rows=data.num_rows,
            files=files,
            glue=self.target if self.parquet.update_glue_catalog else None,
        )

    def leave_uncataloged(self, number: int, record: LoadRecord) -> None:
        """Put a job into the log whose process died just before step 6."""
        assert self.objects.put_if_absent(self.location.record_key(number), encode(record))
        for file in record.files:
            self.objects.complete_upload(file.key, file.upload_id, file.parts)
        assert self.objects.put_if_absent(self.location.end_key(number), b"")

    def query(self, **how: Any) -> list[dict[str, Any]]:
        """Return what Athena would see, in the order of `id`."""
        rows = athena.query(
            glue_of(self.lake), self.lake.server.s3, SCHEMA, self.table, **how
        ).to_pylist()
        return sorted(rows, key=lambda row: str(row["id"]))

    def glue_table(self) -> dict[str, Any]:
        """Return the table as Glue has it."""
        found = glue_of(self.lake).get_table(DatabaseName=SCHEMA, Name=self.table)
        return dict(found["Table"])

    def columns(self) -> list[tuple[str, str]]:
        """Return names and types of Glue's columns."""
        columns = self.glue_table()["StorageDescriptor"]["Columns"]
        return [(column["Name"], column["Type"]) for column in columns]

    def partitions(self) -> dict[str, str]:
        """Return the registered partitions and their locations."""
        answer = glue_of(self.lake).get_partitions(DatabaseName=SCHEMA, TableName=self.table)
        return {
            partition["Values"][0]: partition["StorageDescriptor"]["Location"]
            for partition in answer["Partitions"]
        }

    def cataloged(self) -> list[int]:
        """Return the numbers of the records that have their `.cat`."""
        keys = self.lake.keys(self.location.log_path)
        return [int(key.rpartition("/")[2][:20]) for key in keys if key.endswith(".cat")]

    def _upload(self, job_id: str, partition: str, rows: pa.Table) -> StagedFile:
        key = data_key(self.location, partition, f"part-{job_id}-00000")
        body = io.BytesIO()
        pq.write_table(rows, body)
        upload_id = self.objects.create_upload(key, metadata(job_id, job_id, 0))
        part = self.objects.upload_part(key, upload_id, 1, body.getvalue())
        return StagedFile(key, upload_id, (part,), rows.num_rows, len(body.getvalue()))
