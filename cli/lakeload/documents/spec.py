"""Valid documents → the job's contract: names, absolute paths and fingerprints resolved."""

from __future__ import annotations

import glob
from dataclasses import replace
from pathlib import Path

from lakeload.config.references import absolute_path, absolute_reference
from lakeload.documents.columns import Columns
from lakeload.documents.destination import Credentials, Parquet
from lakeload.documents.fingerprints import load_fingerprint
from lakeload.documents.iceberg_spec import iceberg_spec
from lakeload.documents.load import DestinationDocument, PipelineDocument
from lakeload.documents.pipeline import Pipeline, Table
from lakeload.documents.targets import Target, glue_prefix, targets
from lakeload_jobs.contract.spec import (
    NO_OPTIONS,
    ColumnsSpec,
    CredentialsSpec,
    DestinationSpec,
    EncryptionSpec,
    EndpointsSpec,
    FileFormat,
    FilesInput,
    IcebergSpec,
    ParquetSpec,
    PartitionField,
    RunOptions,
    TableSpec,
)
from lakeload_jobs.formats.iceberg.rules.partitions import parse_partition_field
from lakeload_jobs.sources.files.local_listing import normal_path


def destination_spec(document: DestinationDocument) -> DestinationSpec:
    """Return the contract's form of a destination; paths of secret files become absolute."""
    model = document.model
    return DestinationSpec(
        bucket=model.bucket,
        region=model.region,
        prefix=model.prefix,
        credentials=_credentials(model.credentials, document.path.parent),
        endpoints=EndpointsSpec(
            s3=model.endpoints.s3 or model.endpoint_url or None,
            sts=model.endpoints.sts or None,
            glue=model.endpoints.glue or None,
        ),
        addressing_style=model.addressing_style,
        single_writer=model.single_writer,
        encryption=EncryptionSpec(model.encryption.type, model.encryption.kms_key_id),
        target_file_size=model.target_file_size,
        parquet=_parquet(model.parquet) if model.table_format == "PARQUET" else ParquetSpec(),
        glue_database_prefix=glue_prefix(model) or "",
        table_format=model.table_format,
        iceberg=(
            iceberg_spec(model.iceberg, document.path.parent)
            if model.table_format == "ICEBERG"
            else IcebergSpec()
        ),
    )


def _parquet(model: Parquet) -> ParquetSpec:
    return ParquetSpec(
        partition_strategy=model.partition_strategy,
        file_name_pattern=model.file_name_pattern,
        upload_parallelism=model.upload_parallelism,
        update_glue_catalog=model.update_glue_catalog,
        partition_projection=model.partition_projection,
    )


def table_specs(
    document: PipelineDocument, options: RunOptions = NO_OPTIONS
) -> tuple[TableSpec, ...]:
    """Return every table with its target, in the document's order.

    `options` take part in the fingerprint only.
    """
    model, destination = document.model, destination_spec(document.destination)
    found = targets(
        model.tables,
        namespace=model.namespace,
        destination_prefix=model.destination_prefix,
        glue_prefix=glue_prefix(document.destination.model),
    )
    specs = []
    for table, target in zip(model.tables, found, strict=True):
        written = _table_spec(model, table, target)
        mark = load_fingerprint(document, destination, written, options)
        # A folder called `[old]` is no pattern, whatever the path below it is.
        folder = Path(glob.escape(str(document.path.parent.absolute())))
        paths = tuple(_input_path(folder, path) for path in written.input.paths)
        read = replace(
            written.input,
            paths=paths,
            credentials=_source_credentials(document),
            folder=normal_path(str(document.path.parent.absolute())),
        )
        specs.append(replace(written, input=read, fingerprint=mark))
    return tuple(specs)


def _table_spec(model: Pipeline, table: Table, target: Target) -> TableSpec:
    """Return the table with paths as they are written, no fingerprint and no credentials."""
    return TableSpec(
        source=table.table,
        schema=target.schema,
        table=target.table,
        input=_input(model, table),
        fingerprint="",
        columns=_columns(table.columns),
        primary_key=table.primary_key,
        where=table.where,
        deleted_when=table.deleted_when,
        mode=table.mode,
        cursor=table.cursor,
        deletes=table.deletes,
        partition_by=_partition_by(table),
        table_properties=dict(table.table_properties) or None,
    )


def _partition_by(table: Table) -> tuple[PartitionField, ...] | None:
    """An empty list asks for a table without partitions; no list asks for nothing."""
    if "partition_by" not in table.model_fields_set:
        return None
    return tuple(map(parse_partition_field, table.partition_by))


def _input(model: Pipeline, table: Table) -> FilesInput:
    file_format: FileFormat = table.format or model.source.format
    inherited = model.source.options if file_format == model.source.format else {}
    # Spark reads the names of options without regard to case; the table's own come last.
    options = {name.lower(): (name, value) for name, value in inherited.items()}
    options |= {name.lower(): (name, value) for name, value in table.options.items()}
    incremental = model.source.incremental
    return FilesInput(file_format, table.path, dict(options.values()), incremental)


def _source_credentials(document: PipelineDocument) -> CredentialsSpec | None:
    given = document.model.source.credentials
    return None if given is None else _credentials(given, document.path.parent)


def _input_path(folder: Path, path: str) -> str:
    return path if path.startswith("s3://") else absolute_path(folder, path)


def _columns(columns: Columns) -> ColumnsSpec:
    return ColumnsSpec(
        include=columns.include,
        exclude=columns.exclude,
        rename=dict(columns.rename) or None,
        types=dict(columns.types) or None,
    )


def _credentials(model: Credentials, folder: Path) -> CredentialsSpec:
    return CredentialsSpec(
        role_arn=model.role_arn,
        external_id=absolute_reference(model.external_id, folder),
        session_duration=model.session_duration,
        session_tags=dict(model.session_tags) if model.session_tags else None,
        profile=model.profile,
        access_key_id=absolute_reference(model.access_key_id, folder),
        secret_access_key=absolute_reference(model.secret_access_key, folder),
        session_token=absolute_reference(model.session_token, folder),
    )
