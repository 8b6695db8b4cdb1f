"""A load that goes nowhere: it makes the JVM use the classes that a real one uses.

Everything a load does with Spark is done, by the same code: the session, each format opened and
typed, rows counted and handed to Python in Arrow batches, the progress watched. Nothing is sent
to AWS, which no class of the JVM has a part in; Iceberg's clients have, and are given a stand-in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from lakeload_jobs.contract.spec import (
    CONTRACT_VERSION,
    DestinationSpec,
    FileFormat,
    FilesInput,
    JobSpec,
    TableSpec,
)
from lakeload_jobs.formats.parquet.load.prepare import prepare
from lakeload_jobs.formats.parquet.load.stage import REPORT_SCHEMA
from lakeload_jobs.formats.parquet.log.open_result import Opened
from lakeload_jobs.jobs.appcds.train_iceberg import is_for_iceberg, load_iceberg_tables
from lakeload_jobs.jobs.event_log import EventLog
from lakeload_jobs.jobs.progress import Progress
from lakeload_jobs.rows.batches import map_batches
from lakeload_jobs.rows.counting import partition_rows
from lakeload_jobs.session import build_session

_ROWS = 200
_SAMPLES: tuple[tuple[FileFormat, str], ...] = (
    ("CSV", "sample.csv"),
    ("NDJSON", "sample.ndjson"),
    ("PARQUET", "sample.parquet"),
)


def main(spec_path: str) -> int:
    """Load small files that are made beside `spec_path`; returns the process's exit status."""
    folder = Path(spec_path).parent
    _write_samples(folder)
    spec = _spec(folder)
    spark = build_session(spec)
    with EventLog(spec.events_path) as events, Progress(spark.sparkContext, events):
        for table in spec.tables:
            _load(spark, spec, table)
        if is_for_iceberg(spark):
            load_iceberg_tables(spark, spec, folder)
    return 0


def _load(spark: SparkSession, spec: JobSpec, table: TableSpec) -> None:
    opened = Opened(next_number=1, already=None, first_run=True, column_map={}, columns=())
    prepared = prepare(spark, spec, table, opened)
    for all_columns in (False, True):
        partition_rows(prepared.frame, all_columns=all_columns)
    map_batches(prepared.frame, _count, REPORT_SCHEMA).collect()
    prepared.source.check_unchanged()


def _count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_pylist([{"report": str(rows)}])


def _write_samples(folder: Path) -> None:
    rows = [
        {
            "id": number,
            "name": f"name {number}",
            "amount": number / 4,
            "happened": f"2026-01-01T00:00:{number % 60:02}Z",
            "day": "2026-01-01",
            "is_new": number % 2 == 0,
        }
        for number in range(_ROWS)
    ]
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    (folder / "sample.csv").write_text("\n".join([*lines, ""]), encoding="utf-8")
    documents = "".join(json.dumps({**row, "tags": [{"k": "v"}]}) + "\n" for row in rows)
    (folder / "sample.ndjson").write_text(documents, encoding="utf-8")
    table = pa.Table.from_pylist(
        [{**row, "happened": datetime(2026, 1, 1, tzinfo=UTC)} for row in rows]
    )
    pq.write_table(table, folder / "sample.parquet")


def _spec(folder: Path) -> JobSpec:
    options = {"CSV": {"header": "true", "inferSchema": "true"}}
    return JobSpec(
        contract=CONTRACT_VERSION,
        pipeline="training",
        job_id="training",
        attempt_id="training",
        synced=datetime.now(UTC),
        destination=DestinationSpec(bucket="nowhere", region="us-east-1"),
        tables=tuple(
            TableSpec(
                source=name,
                schema="training",
                table=name.replace(".", "_"),
                input=FilesInput(kind, (str(folder / name),), options.get(kind, {})),
                fingerprint="",
                primary_key=("id",),
            )
            for kind, name in _SAMPLES
        ),
        events_path=str(folder / "events.jsonl"),
        result_path=str(folder / "result.json"),
    )
