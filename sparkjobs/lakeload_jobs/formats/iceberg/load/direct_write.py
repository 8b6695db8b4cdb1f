"""Data files that tasks write themselves: planned, uploaded, completed, and named in a manifest.
Spark's writer sees none of their rows."""

from __future__ import annotations

import base64
import json
import logging
import uuid
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
from pyspark.sql import SparkSession

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.result import FileResult
from lakeload_jobs.contract.spec import JobSpec, TableSpec
from lakeload_jobs.formats.base import RetryLoad, Writer
from lakeload_jobs.formats.data_files.encode import ROW_GROUP_BYTES, Encoding
from lakeload_jobs.formats.data_files.parts import TableParts, same_shape
from lakeload_jobs.formats.data_files.stage import (
    Driver,
    PartitionReport,
    PartitionWriter,
    stage_parts,
)
from lakeload_jobs.formats.data_files.tracked import Tracking
from lakeload_jobs.formats.data_files.uploads import StagedFile, UploadRegistry, abort_uploads
from lakeload_jobs.formats.iceberg.catalogs.reading import existing_table
from lakeload_jobs.formats.iceberg.catalogs.table_stores import ReadTable
from lakeload_jobs.formats.iceberg.commits.footers import WrittenFile, data_file
from lakeload_jobs.formats.iceberg.commits.manifests import (
    Manifest,
    MetadataFiles,
    check_can_add,
    write_added,
)
from lakeload_jobs.formats.iceberg.commits.manifests import (
    partition_fields as partition_fields_of,
)
from lakeload_jobs.formats.iceberg.commits.metadata import Json, Metadata, schema_of, spec_of
from lakeload_jobs.formats.iceberg.commits.snapshots import new_snapshot_id
from lakeload_jobs.formats.iceberg.load.arrow_schema import arrow_schema
from lakeload_jobs.formats.iceberg.load.catalog_tables import committable
from lakeload_jobs.formats.iceberg.load.file_tasks import IcebergFiles
from lakeload_jobs.formats.iceberg.load.partitioned import stage_partitions
from lakeload_jobs.formats.iceberg.load.prepare import FittedRows
from lakeload_jobs.formats.iceberg.load.rejects_writer import RejectsWriter
from lakeload_jobs.formats.iceberg.rules.writers import (
    WrittenTable,
    data_location,
    file_settings,
    only_spark,
    partition_fields,
    settings_that_need_spark,
    written_table,
)
from lakeload_jobs.rows.counting import NO_ROWS, RowsReport
from lakeload_jobs.rows.progress import new_progress_file
from lakeload_jobs.rows.tracking import HELPER_PREFIX
from lakeload_jobs.storage.objects import Completion

logger = logging.getLogger(__name__)

_SCHEMA_KEY = "iceberg.schema"
"""In the footer, as Iceberg's own writer has it."""

_WIDER = {
    (pa.int32(), pa.int64()),
    (pa.float32(), pa.float64()),
}
"""Types that the table's column may have instead of the load's."""


@dataclass(frozen=True)
class DirectWrite:
    """The rows of a load that tasks read, and the table that they are written for."""

    rows: TableParts
    written: WrittenTable


@dataclass(frozen=True)
class Plan:
    """Who writes the data files; `direct` None is Spark, for the `reason`, a clause."""

    direct: DirectWrite | None = None
    reason: str = ""

    @property
    def writer(self) -> Writer:
        """Who writes."""
        return "spark" if self.direct is None else "direct"


def plan_write(
    spec: JobSpec,
    table: TableSpec,
    rows: FittedRows,
    known: ReadTable,
    metadata: Metadata,
    own_key: Callable[[], str],
) -> Plan:
    """Decide who writes the rows of a load into a table that is `known`, and will have this
    `metadata`. `own_key` returns the access key id of the destination's own identity."""
    written = existing_table(spec.destination, replace(known, metadata=metadata), own_key)
    return plan_rows(spec, table, rows, written)


def _partitions(metadata: Metadata) -> tuple[str, ...]:
    """Return the fields of the table's spec as `partition_by` writes them."""
    return written_table(metadata).partitions


def plan_rows(spec: JobSpec, table: TableSpec, rows: FittedRows, written: WrittenTable) -> Plan:
    """Decide who writes the rows of a load into a table that is as `written` says."""
    destination = spec.destination
    names = [column.name for column in rows.columns.fields]
    if reason := only_spark(written, table, destination.iceberg.catalog, names, rows.key):
        logger.info("Spark writes the data files of %s: %s", table.target, reason)
        return Plan(reason=reason)
    if not _fits(spec, table, rows, written):
        return Plan(reason="Spark makes its rows those of the table")
    return Plan(DirectWrite(rows.prepared.parts, written))


def plan_before(spec: JobSpec, table: TableSpec) -> Plan | None:
    """Return the plan of a table that Spark writes whatever it is; None where that is open."""
    reasons = settings_that_need_spark(spec, table)
    return next((Plan(reason=reason) for reason in reasons), None)


def _fits(spec: JobSpec, table: TableSpec, rows: FittedRows, written: WrittenTable) -> bool:
    """Whether the rows are those of the table as they are."""
    prepared = rows.prepared
    if not rows.columns.fields or not prepared.rows.names:
        return False
    if spec.options.full_refresh and table.mode == "UPSERT":
        return False
    kinds = {field.name: field.type for field in arrow_schema(written.schema)}
    data = (one for one in prepared.parts.read.schema if not one.name.startswith(HELPER_PREFIX))
    return all(_has_type(field.type, kinds[field.name]) for field in data)


def _has_type(own: pa.DataType, kind: pa.DataType) -> bool:
    """Whether tasks can make the table's type of that of the rows."""
    if same_shape(own, kind):
        return _names(own) == _names(kind)
    return (own, kind) in _WIDER or _is_wider_decimal(own, kind)


def _is_wider_decimal(own: pa.DataType, kind: pa.DataType) -> bool:
    if not isinstance(own, pa.Decimal128Type) or not isinstance(kind, pa.Decimal128Type):
        return False
    return bool(own.scale == kind.scale and own.precision <= kind.precision)


def _names(kind: pa.DataType) -> list[Any]:
    """Return the names of the fields of structs at every level, in their order."""
    named = pa.types.is_struct(kind)
    fields = [kind.field(number) for number in range(kind.num_fields)]
    return [(field.name if named else "", _names(field.type)) for field in fields]


@dataclass(frozen=True)
class Target:
    """Where the rows go: a staging branch of a table of this `metadata`, of a job's attempt."""

    spark: SparkSession
    spec: JobSpec
    table: TableSpec
    metadata: Metadata
    metadata_files: MetadataFiles
    branch: str
    key: tuple[str, ...]
    tracking: Tracking
    driver: Driver
    rejects: bool = False
    """The table takes the rejected records of the rows, in a partition of the branch's name."""


@dataclass(frozen=True)
class Written:
    """What tasks found in the rows, and their files, without rejected records. The `manifests` name
    them for the snapshot of this id."""

    report: RowsReport
    files: tuple[FileResult, ...]
    snapshot_id: int
    manifests: tuple[Manifest, ...]


def write_files(given: Target, write: DirectWrite) -> Written:
    """Write the rows and the manifest of their files, which no snapshot names yet.

    Raises `RetryLoad` where the columns of the table have changed, and `LoadFailed` for a table
    that gets no files from lakeload, and where an upload was aborted by someone else. No upload is
    left open then.
    """
    _check_unchanged(given, write)
    # Catalogs that choose locations may do so in another bucket than the destination's.
    where = urlsplit(data_location(write.written.location, write.written.properties))
    objects = given.driver.objects.in_bucket(where.netloc)
    given = replace(given, driver=replace(given.driver, objects=objects))
    with committable(given.table.target):
        check_can_add(given.metadata)
    registry = UploadRegistry(_registry(given))
    staged: list[StagedFile] = []
    try:
        reports = _staged(given, write, registry)
        staged += [file for report in reports for file in report.files]
        _complete(given, staged)
    except BaseException:
        abort_uploads(objects, registry, staged)
        raise
    number = new_snapshot_id()
    found = [
        _data_file(given, file, facts)
        for report in reports
        for file, facts in zip(report.files, report.facts, strict=True)
    ]
    manifests: tuple[Manifest, ...] = ()
    if found:
        manifests = (write_added(given.metadata_files, given.metadata, number, found),)
    return Written(
        sum((report.rows for report in reports), NO_ROWS),
        tuple(FileResult(file.key, file.rows, file.bytes) for file in staged),
        number,
        manifests,
    )


def _data_file(given: Target, file: StagedFile, facts: str) -> Json:
    """Return what a manifest says of a file. `facts` are those of `IcebergFiles.encode`, and its
    partition."""
    found, metadata = json.loads(facts), given.metadata
    schema = schema_of(metadata)
    fields = partition_fields_of(schema, spec_of(metadata)["fields"])
    values = zip(fields, found.get("partition", ()), strict=True)
    written = WrittenFile(
        location=given.driver.objects.url(file.key),
        size=file.bytes,
        rows=file.rows,
        footer=zlib.decompress(base64.b64decode(found["footer"])),
        floats={int(number): floats for number, floats in found["floats"].items()},
        partition={field.name: value for field, value in values},
    )
    return data_file(schema, metadata.get("properties", {}), written)


def _check_unchanged(given: Target, write: DirectWrite) -> None:
    if schema_of(given.metadata) != write.written.schema:
        raise RetryLoad(f"another writer has changed the columns of `{given.table.target}`")
    if _partitions(given.metadata) != write.written.partitions:
        raise RetryLoad(f"another writer has changed the partitions of `{given.table.target}`")


def _registry(given: Target) -> Path:
    """Return a folder of this round's own: tasks of an earlier one may come late."""
    number = given.spec.tables.index(given.table)
    run = Path(given.spec.result_path).parent
    return run / "uploads" / str(number) / uuid.uuid4().hex


def _staged(given: Target, write: DirectWrite, registry: UploadRegistry) -> list[PartitionReport]:
    spec, parts = given.spec, write.rows.parts
    written = write.written
    settings = file_settings(written.properties)
    where = urlsplit(data_location(written.location, written.properties))
    schema = json.dumps(written.schema)
    files = IcebergFiles(
        prefix=f"{where.path.removeprefix('/')}/",
        branch=given.branch,
        schema=schema,
        source=given.table.source,
        key_columns=given.key,
        target_size=settings.target_size,
        encoding=Encoding(
            settings.codec,
            settings.level,
            min(settings.row_group_size or ROW_GROUP_BYTES, ROW_GROUP_BYTES),
            {_SCHEMA_KEY: schema},
            whole_statistics=settings.long_bounds,
            bloom_filters=settings.bloom_filters,
        ),
    )
    shared = spec.runtime.tasks_share_driver
    writer = PartitionWriter(
        destination=replace(spec.destination, bucket=where.netloc),
        files=files,
        tracking=given.tracking,
        partitions=len(parts),
        registry=str(registry.folder) if shared else None,
        on_executor=not shared,
        progress=None if given.rejects else new_progress_file(spec, given.table),
        writes_rejects=False,
    )
    if written.partitions and not given.rejects:
        fields = partition_fields(written.partitions)
        reports = stage_partitions(given.spark, write.rows, writer, fields)
        told = sum(report.rows.rows for report in reports)
        counts = given.tracking.counts
        expected = told if counts is None else sum(counts)
    else:
        stager = RejectsWriter(writer, given.branch) if given.rejects else writer
        reports = stage_parts(given.driver, write.rows, stager)
        told, expected = len(reports), len(parts)
    if told != expected:
        what = "rows" if written.partitions and not given.rejects else "partitions"
        raise LoadFailed(
            f"tasks reported {told:,} of {expected:,} {what}",
            hint="the source changed while it was read; run again",
            retryable=True,
        )
    return sorted(reports, key=lambda report: report.partition)


def _complete(given: Target, staged: Sequence[StagedFile]) -> None:
    """Make the files visible in the bucket; no metadata names them yet."""

    def complete(file: StagedFile) -> None:
        done = given.driver.objects.complete_upload(
            file.key, file.upload_id, file.parts, if_absent=False
        )
        # An earlier request may have completed it, although its answer was lost.
        if done is not Completion.COMPLETED and given.driver.objects.find(file.key) is None:
            raise LoadFailed(
                f"the upload of `{given.driver.objects.url(file.key)}` was aborted during the load",
                hint="run again: nothing was committed",
                retryable=True,
            )

    with ThreadPoolExecutor(given.spec.destination.parquet.upload_parallelism) as pool:
        for _ in pool.map(complete, staged):
            pass
