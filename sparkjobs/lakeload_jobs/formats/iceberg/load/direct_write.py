"""Data files that tasks write themselves: planned, uploaded, completed, and added to the staging
branch in one commit. Spark's writer sees none of their rows."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
from pyspark.sql import SparkSession

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.result import FileResult
from lakeload_jobs.contract.spec import DestinationSpec, JobSpec, TableSpec
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
from lakeload_jobs.formats.iceberg.load.arrow_schema import arrow_schema
from lakeload_jobs.formats.iceberg.load.branches import branch_is_gone, until_committed
from lakeload_jobs.formats.iceberg.load.catalog_settings import catalog_properties
from lakeload_jobs.formats.iceberg.load.data_files import DataFileBuilder
from lakeload_jobs.formats.iceberg.load.file_tasks import IcebergFiles
from lakeload_jobs.formats.iceberg.load.partitioned import stage_partitions
from lakeload_jobs.formats.iceberg.load.prepare import FittedRows
from lakeload_jobs.formats.iceberg.load.tables import Java, add_files, jvm, load_existing
from lakeload_jobs.formats.iceberg.rules.partitions import spec_field
from lakeload_jobs.formats.iceberg.rules.writers import (
    EXTERNAL_ID_SETTING,
    FILE_IO,
    KEY_SETTING,
    LENT_SETTING,
    SECRET_SETTING,
    WrittenTable,
    data_location,
    file_settings,
    only_spark,
    only_spark_by_settings,
    partition_fields,
    secrets_elsewhere,
)
from lakeload_jobs.rows.counting import NO_ROWS, RowsReport
from lakeload_jobs.rows.progress import new_progress_file
from lakeload_jobs.rows.tracking import HELPER_PREFIX
from lakeload_jobs.storage.objects import Completion, Objects

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
    """Who writes the data files; `direct` None is Spark."""

    direct: DirectWrite | None = None

    @property
    def writer(self) -> Writer:
        """Who writes."""
        return "spark" if self.direct is None else "direct"


def plan_write(
    spark: SparkSession,
    spec: JobSpec,
    table: TableSpec,
    rows: FittedRows,
    java_table: Java,
    own_key: Callable[[], str],
) -> Plan:
    """Decide who writes the rows of a load into a table that is ready for them. `own_key` returns
    the access key id of the destination's own identity."""
    io = java_table.io()
    written = WrittenTable(
        schema=schema_json(spark, java_table.schema()),
        partitions=_partitions(java_table),
        sorted=bool(java_table.sortOrder().isSorted()),
        properties={str(k): str(v) for k, v in dict(java_table.properties()).items()},
        location=str(java_table.location()),
        version=int(jvm(spark).org.apache.iceberg.TableUtil.formatVersion(java_table)),
        io=str(io.getClass().getName()),
        io_settings=(
            *_io_settings(dict(io.properties()), spec.destination, own_key),
            *_lent_settings(io),
        ),
    )
    return plan_rows(spec, table, rows, written)


def schema_json(spark: SparkSession, schema: Java) -> dict[str, Any]:
    """Return one of Iceberg's schemas as its JSON."""
    text = jvm(spark).org.apache.iceberg.SchemaParser.toJson(schema)
    found: dict[str, Any] = json.loads(str(text))
    return found


def _partitions(java_table: Java) -> tuple[str, ...]:
    """Return the fields of the table's spec as `partition_by` writes them."""
    schema = java_table.schema()
    return tuple(
        spec_field(str(field.transform()), str(schema.findColumnName(field.sourceId())))
        for field in java_table.spec().fields()
    )


def _io_settings(
    settings: Mapping[str, str], destination: DestinationSpec, own_key: Callable[[], str]
) -> tuple[str, ...]:
    """Return the names of a FileIO's settings, but for the destination's own: some catalogs tell
    everyone the keys that they were started with."""
    given = {str(name): str(value) for name, value in settings.items()}
    properties = catalog_properties(destination)
    own = {name for name, value in given.items() if properties.get(name) == value}
    if destination.credentials.external_id:
        own.add(EXTERNAL_ID_SETTING)
    key = given.get(KEY_SETTING)
    if key is not None and LENT_SETTING not in given and key == own_key():
        own |= {KEY_SETTING, SECRET_SETTING}
    return tuple(name for name in given if name not in own)


def _lent_settings(io: Java) -> Iterator[str]:
    """Yield the names of the settings that the catalog lends for single locations."""
    if str(io.getClass().getName()) == FILE_IO:
        for credential in io.credentials():
            yield from map(str, dict(credential.config()))


def plan_rows(spec: JobSpec, table: TableSpec, rows: FittedRows, written: WrittenTable) -> Plan:
    """Decide who writes the rows of a load into a table that is as `written` says."""
    destination = spec.destination
    names = [column.name for column in rows.columns.fields]
    catalog, bucket = destination.iceberg.catalog, destination.bucket
    if reason := only_spark(written, table, catalog, bucket, names, rows.key):
        logger.info("Spark writes the data files of %s: %s", table.target, reason)
        return Plan()
    if not _fits(spec, table, rows, written):
        return Plan()
    return Plan(DirectWrite(rows.prepared.parts, written))


def plan_before(spec: JobSpec, table: TableSpec) -> Plan | None:
    """Return the plan of a table that Spark writes whatever it is; None where that is open."""
    if secrets_elsewhere(spec):
        return Plan()
    return Plan() if any(only_spark_by_settings(table, spec.destination.iceberg.catalog)) else None


def _fits(spec: JobSpec, table: TableSpec, rows: FittedRows, written: WrittenTable) -> bool:
    """Whether the rows are those of the table as they are."""
    prepared = rows.prepared
    if not rows.columns.fields or not prepared.rows.names or table.retries is not None:
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
    """Where the rows go: a staging branch of a table, of a job in its attempt."""

    spark: SparkSession
    spec: JobSpec
    table: TableSpec
    objects: Objects
    branch: str
    key: tuple[str, ...]
    replaces: bool
    tracking: Tracking
    driver: Driver
    private: bool = False
    """Only this load sees the table: the publish makes its changes."""


@dataclass(frozen=True)
class Written:
    """What tasks found in the rows, and the files of the snapshot, without rejected records."""

    report: RowsReport
    files: tuple[FileResult, ...]


def write_files(
    given: Target,
    write: DirectWrite,
    java_table: Java,
    summary: Callable[[RowsReport], Mapping[str, str]],
) -> Written:
    """Write the rows and commit them to the branch, with the `summary` of what was found in them.

    Raises `RetryLoad` where the columns of the table have changed, and `LoadFailed` where an upload
    was aborted or the branch dropped by someone else. No upload is left open then.
    """
    _check_unchanged(given, write, java_table)
    registry = UploadRegistry(_registry(given))
    staged: list[StagedFile] = []
    try:
        reports = _staged(given, write, registry)
        staged += [file for report in reports for file in report.files]
        _complete(given, staged)
    except BaseException:
        abort_uploads(given.objects, registry, staged)
        raise
    written = sum((report.rows for report in reports), NO_ROWS)
    files = tuple(FileResult(file.key, file.rows, file.bytes) for file in staged)
    if staged or given.replaces:
        _commit(given, java_table, reports, summary(written))
    return Written(written, files)


def _check_unchanged(given: Target, write: DirectWrite, java_table: Java) -> None:
    if schema_json(given.spark, java_table.schema()) != write.written.schema:
        raise RetryLoad(f"another writer has changed the columns of `{given.table.target}`")
    if _partitions(java_table) != write.written.partitions:
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
        destination=spec.destination,
        files=files,
        tracking=given.tracking,
        partitions=len(parts),
        registry=str(registry.folder) if shared else None,
        on_executor=not shared,
        progress=new_progress_file(spec, given.table),
        writes_rejects=False,
    )
    if written.partitions:
        fields = partition_fields(written.partitions)
        reports = stage_partitions(given.spark, write.rows, writer, fields)
        told = sum(report.rows.rows for report in reports)
        counts = given.tracking.counts
        expected = told if counts is None else sum(counts)
    else:
        reports = stage_parts(given.driver, write.rows, writer)
        told, expected = len(reports), len(parts)
    if told != expected:
        what = "rows" if written.partitions else "partitions"
        raise LoadFailed(
            f"tasks reported {told:,} of {expected:,} {what}",
            hint="the source changed while it was read; run again",
            retryable=True,
        )
    return sorted(reports, key=lambda report: report.partition)


def _complete(given: Target, staged: Sequence[StagedFile]) -> None:
    """Make the files visible in the bucket; no metadata names them yet."""

    def complete(file: StagedFile) -> None:
        done = given.objects.complete_upload(file.key, file.upload_id, file.parts, if_absent=False)
        # An earlier request may have completed it, although its answer was lost.
        if done is not Completion.COMPLETED and given.objects.find(file.key) is None:
            raise LoadFailed(
                f"the upload of `{given.objects.url(file.key)}` was aborted during the load",
                hint="run again: nothing was committed",
                retryable=True,
            )

    with ThreadPoolExecutor(given.spec.destination.parquet.upload_parallelism) as pool:
        for _ in pool.map(complete, staged):
            pass


def _commit(
    given: Target,
    java_table: Java,
    reports: Sequence[PartitionReport],
    summary: Mapping[str, str],
) -> None:
    """Add the files to the branch. Raises `LoadFailed` where somebody has dropped it: a clean-up
    may have removed the files since."""
    target, name = given.table.target, given.branch
    begun = _head(java_table, name)
    builder = DataFileBuilder(given.spark, java_table, java_table.spec().specId())
    files = [
        builder.build(given.objects.url(file.key), file, facts)
        for report in reports
        for file, facts in zip(report.files, report.facts, strict=True)
    ]

    properties = {"spark.app.id": given.spark.sparkContext.applicationId, **summary}
    if given.private:
        add_files(given.spark, java_table, name, files, properties, replaces=given.replaces)
        return

    def once() -> None:
        # Others have committed since: their commits are the base of this one.
        transaction = load_existing(given.spark, given.table).newTransaction()
        head = _head(transaction.table(), name)
        if head is None or begun is None:
            raise branch_is_gone(target, name)
        if head != begun:
            # An earlier try came in unheard.
            return
        # Iceberg repeats a commit that others came before, and makes a missing branch anew. It does
        # not repeat a transaction with a change of references, even one to where they are.
        transaction.manageSnapshots().replaceBranch(name, begun).commit()
        add_files(given.spark, transaction, name, files, properties, replaces=given.replaces)
        transaction.commitTransaction()

    until_committed(once, f"adding files to the staging branch of `{target}`")


def _head(java_table: Java, branch: str) -> int | None:
    found = java_table.refs().get(branch)
    return None if found is None else int(found.snapshotId())
