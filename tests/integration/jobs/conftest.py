"""One Spark session for the job's tests, and specs that load into an AWS that enforces IAM."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from lakeload.documents.spec import fingerprint
from lakeload_jobs.contract.result import RunResult, TableResult
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import (
    CredentialsSpec,
    DestinationSpec,
    EndpointsSpec,
    FileFormatName,
    FilesInput,
    JobSpec,
    RunOptions,
    TableSpec,
)
from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.load import run
from tests.servers.ministack import Lake

SYNCED = datetime(2026, 11, 21, 10, 15, 30, 123456, tzinfo=UTC)


@dataclass
class Job:
    """Loads tables into one lake and reads back what came of it."""

    spark: SparkSession
    lake: Lake
    folder: Path
    events_path: Path | None = None

    def file(self, name: str, content: str | bytes) -> str:
        """Write an input file and return its path."""
        path = self.folder / "input" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def table(
        self,
        *paths: str,
        name: str = "orders",
        file_format: FileFormatName = "CSV",
        options: dict[str, str] | None = None,
        **changes: Any,
    ) -> TableSpec:
        """Return the spec of a table; CSV files have a header."""
        default = {"header": "true"} if file_format == "CSV" else {}
        table = TableSpec(
            source=name,
            schema="shop",
            table=name,
            input=FilesInput(file_format, paths, default if options is None else options),
            fingerprint="",
            **changes,
        )
        return replace(table, fingerprint=fingerprint(repr(table)))

    def destination(self, **changes: Any) -> DestinationSpec:
        """Return the destination; its secrets are files, which Spark's workers can read."""
        seeded = self.lake.seeded
        place = self.lake.server.endpoint
        values: dict[str, Any] = {
            "bucket": seeded.bucket,
            "region": seeded.region,
            "prefix": seeded.prefix,
            "credentials": CredentialsSpec(
                role_arn=seeded.role_arn,
                external_id=self._secret("external-id", seeded.external_id),
                access_key_id=self._secret("key", seeded.base_key.access_key_id),
                secret_access_key=self._secret("secret", seeded.base_key.secret_access_key),
            ),
            "endpoints": EndpointsSpec(s3=place, sts=place),
        }
        return DestinationSpec(**(values | changes))

    def spec(self, *tables: TableSpec, **changes: Any) -> JobSpec:
        """Return a spec of a new job; `destination` may be a dict of changes."""
        run_folder = self.folder / uuid.uuid4().hex
        run_folder.mkdir()
        destination = changes.pop("destination", {})
        if isinstance(destination, dict):
            destination = self.destination(**destination)
        values: dict[str, Any] = {
            "contract": 1,
            "pipeline": "shop",
            "job_id": f"job-{uuid.uuid4().hex[:8]}",
            "attempt_id": str(uuid.uuid4()),
            "synced": SYNCED,
            "destination": destination,
            "tables": tables,
            "events_path": str(run_folder / "events.jsonl"),
            "result_path": str(run_folder / "result.json"),
            "options": RunOptions(table_handling="APPEND"),
        }
        return JobSpec(**(values | changes))

    def run(self, spec: JobSpec) -> RunResult:
        """Run a spec in the shared session."""
        with EventLog(spec.events_path) as events:
            return run(self.spark, spec, events)

    def load(self, *tables: TableSpec, **changes: Any) -> RunResult:
        """Run a new job with these tables."""
        return self.run(self.spec(*tables, **changes))

    def load_one(self, table: TableSpec, **changes: Any) -> TableResult:
        """Run a new job with one table and return its result, whatever it is."""
        result = self.load(table, **changes)
        assert result.error is None, result.error
        return result.tables[0]

    def rows(self, result: TableResult) -> pa.Table:
        """Return the rows of the table's files, in the order of `_supa_index`."""
        tables = [pq.read_table(pa.BufferReader(self.lake.read(file.key))) for file in result.files]
        return pa.concat_tables(tables).sort_by("_supa_index")

    def values(self, result: TableResult) -> list[dict[str, Any]]:
        """Return the rows without tracking columns."""
        rows = self.rows(result)
        data = [name for name in rows.column_names if not name.startswith("_supa_")]
        found: list[dict[str, Any]] = rows.select(data).to_pylist()
        return found

    def _secret(self, name: str, value: str) -> SecretReference:
        path = self.folder / f"{name}.secret"
        path.write_text(value)
        return SecretReference("file", str(path))


@pytest.fixture
def job(spark: SparkSession, lake: Lake, tmp_path: Path) -> Job:
    """Jobs of one test into a lake of its own."""
    return Job(spark, lake, tmp_path)
