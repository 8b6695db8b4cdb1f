"""Tables of the lake as loads leave them, made without Spark."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import load_catalog

from lakeload.lake.server import Lake
from lakeload_jobs.aws import AwsSession
from lakeload_jobs.core.layout import TableLocation, data_key
from lakeload_jobs.formats.data_files.uploads import StagedFile, upload_metadata
from lakeload_jobs.formats.parquet.log.admission import LoadAttempt
from lakeload_jobs.formats.parquet.log.records import LoadRecord, Target
from lakeload_jobs.formats.parquet.log.table_log import TableLog
from lakeload_jobs.storage.objects import Objects

SYNCED = datetime(2026, 11, 21, 10, 15, 30, 1, tzinfo=UTC)


def write_parquet(lake: Lake, schema: str, table: str, loads: Sequence[pa.Table]) -> None:
    """Load a Parquet table: one job with one file for each of `loads`."""
    destination = lake.destination("PARQUET")
    objects = Objects(AwsSession(destination), destination)
    location = TableLocation("", schema, table)
    for number, rows in enumerate(loads):
        job = f"job-{number}"
        log = TableLog(objects, location)
        log.open(LoadAttempt("test", job, job, "f" * 64, table, "APPEND"))
        log.commit(_record(location, job, _staged(objects, location, job, rows)))


def write_iceberg(lake: Lake, schema: str, table: str, rows: pa.Table) -> None:
    """Make an Iceberg table with these rows."""
    catalog = load_catalog("lake", **iceberg_settings(lake))
    catalog.create_namespace_if_not_exists(schema)
    catalog.create_table((schema, table), rows.schema).append(rows)


def iceberg_settings(lake: Lake) -> dict[str, str]:
    """Return how another program opens the lake's catalog."""
    key, secret = (
        (lake.keys / name).read_text() for name in ("access_key_id", "secret_access_key")
    )
    return {
        "type": "rest",
        "uri": lake.catalog_uri,
        "warehouse": "s3://warehouse",
        "credential": f"{key}:{secret}",
        "oauth2-server-uri": f"{lake.catalog_uri}/v1/oauth/tokens",
        "s3.endpoint": lake.s3_endpoint,
        "s3.access-key-id": key,
        "s3.secret-access-key": secret,
        "s3.region": "us-east-1",
    }


def _staged(objects: Objects, location: TableLocation, job: str, rows: pa.Table) -> StagedFile:
    buffer = io.BytesIO()
    pq.write_table(rows, buffer)
    body = buffer.getvalue()
    key = data_key(location, "2026/11/21/10", f"part-{job}-00000")
    upload = objects.create_upload(key, upload_metadata(job, job, 0))
    return StagedFile(
        key, upload, (objects.upload_part(key, upload, 1, body),), rows.num_rows, len(body)
    )


def _record(location: TableLocation, job: str, file: StagedFile) -> LoadRecord:
    return LoadRecord(
        tool="test",
        pipeline="test",
        source=location.table,
        job_id=job,
        attempt_id=job,
        started_at=SYNCED,
        created_at=SYNCED,
        synced=SYNCED,
        mode="APPEND",
        table_handling="APPEND",
        fingerprint="f" * 64,
        target=Target(location.prefix, location.schema, location.table),
        partition_strategy="HOUR",
        file_name_pattern="part-{supa_job_id}-{seq}",
        partition="2026/11/21/10",
        columns=(),
        column_map={},
        index="dense",
        rows=file.rows,
        files=(file,),
    )
