"""Specs of valid documents: names, absolute paths and fingerprints resolved."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lakeload.config.model import spec_of
from lakeload.documents.cross import TableTarget, glue_prefix, targets
from lakeload.documents.format_rules import FORMAT_RULES
from lakeload.documents.load import DestinationDocument, PipelineDocument
from lakeload.documents.pipeline import Pipeline, Table
from lakeload.documents.rounds import loads_once_instead
from lakeload.sources.registry import SOURCES
from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.spec import (
    NO_OPTIONS,
    AppendAgain,
    ColumnsSpec,
    CredentialsSpec,
    DestinationSpec,
    EncryptionSpec,
    EndpointsSpec,
    OnAppendAgain,
    OnTypeConflict,
    PartitionField,
    RoundLimit,
    RunOptions,
    TableFormat,
    TableSpec,
)
from lakeload_jobs.formats.iceberg.rules.partitions import parse_partition_field


def destination_spec(document: DestinationDocument) -> DestinationSpec:
    """Return the contract's form of a destination; paths of secret files become absolute."""
    model, folder = document.model, document.path.parent
    spec = DestinationSpec(
        bucket=model.bucket,
        region=model.region,
        prefix=model.prefix,
        credentials=spec_of(CredentialsSpec, model.credentials, folder),
        endpoints=EndpointsSpec(
            s3=model.endpoints.s3 or model.endpoint_url or None,
            sts=model.endpoints.sts or None,
            glue=model.endpoints.glue or None,
        ),
        addressing_style=model.addressing_style,
        single_writer=model.single_writer,
        encryption=spec_of(EncryptionSpec, model.encryption, folder),
        target_file_size=model.target_file_size,
        glue_database_prefix=glue_prefix(model) or "",
        table_format=model.table_format,
    )
    return FORMAT_RULES[model.table_format].with_settings(spec, model, folder)


def specs_of(
    document: PipelineDocument | DestinationDocument,
) -> tuple[DestinationSpec, tuple[TableSpec, ...]]:
    """Return the destination and the tables of a document; a destination alone has no tables."""
    tables = table_specs(document) if isinstance(document, PipelineDocument) else ()
    return destination_spec(document.destination), tables


def table_specs(
    document: PipelineDocument, options: RunOptions = NO_OPTIONS
) -> tuple[TableSpec, ...]:
    """Return every table with its target, in the document's order.

    `options` take part in the fingerprint, and say whether rows are appended again on purpose.
    """
    model, destination = document.model, destination_spec(document.destination)
    found = targets(
        model.tables,
        namespace=model.namespace,
        destination_prefix=model.destination_prefix,
        glue_prefix=glue_prefix(document.destination.model),
    )
    source = SOURCES[model.source.type]
    specs = []
    for table, target in zip(model.tables, found, strict=True):
        written = _table_spec(model, table, target)
        mark = load_fingerprint(document, destination, written, options)
        read = source.resolved(written.input, model.source, document.path.parent)
        policy = table.on_append_again or model.on_append_again
        again = _append_again(written, policy, destination.table_format, options)
        limit = _round_limit(model, table, written)
        waits = table.commit_at or model.commit_at
        specs.append(
            replace(
                written,
                input=read,
                fingerprint=mark,
                append_again=again,
                round_limit=limit,
                commit_at=waits.spec if waits and written.input.incremental else None,
            )
        )
    return tuple(specs)


def _table_spec(model: Pipeline, table: Table, target: TableTarget) -> TableSpec:
    """Return the table with paths as they are written, no fingerprint and no credentials."""
    return TableSpec(
        source=table.table,
        schema=target.schema,
        table=target.table,
        input=SOURCES[model.source.type].written(model.source, table),
        fingerprint="",
        columns=spec_of(ColumnsSpec, table.columns, Path()),
        primary_key=table.primary_key,
        where=table.where,
        deleted_when=table.deleted_when,
        mode=table.mode,
        cursor=table.cursor if table.cursor_is_column else None,
        deletes=table.deletes,
        max_deleted=table.delete_limit,
        partition_by=_partition_by(table),
        table_properties=dict(table.table_properties) or None,
        bloom_filters=table.bloom_filters,
        schema_changes=table.schema_changes,
        on_type_conflict=table.on_type_conflict,
        on_bad_value=table.on_bad_value,
        max_rejected=table.max_rejected,
        on_same_key=table.on_same_key,
    )


def _round_limit(model: Pipeline, table: Table, written: TableSpec) -> RoundLimit | None:
    """Return the limit of a table that loads what is new; None for any other."""
    given = table.round_limit or model.round_limit
    if given is None or SOURCES[model.source.type].without_rounds(written.input) is not None:
        return None
    return given.spec


def _append_again(
    table: TableSpec, policy: OnAppendAgain, table_format: TableFormat, options: RunOptions
) -> AppendAgain | None:
    """Return what becomes of rows that are appended again; None where each is loaded once, or all
    were asked for."""
    instead = loads_once_instead(table.mode, table.input, table_format)
    if instead is None or options.starts_over or policy == "ALLOW":
        return None
    return AppendAgain(policy, instead)


def _partition_by(table: Table) -> tuple[PartitionField, ...] | None:
    """An empty list asks for a table without partitions; no list asks for nothing."""
    if "partition_by" not in table.model_fields_set:
        return None
    return tuple(map(parse_partition_field, table.partition_by))


def canonical_json(data: Any) -> str:
    """Return JSON that is equal for equal data: keys sorted, no spaces, ASCII only.

    Takes what `codec.to_json` takes; raises `ValueError` for NaN and infinities.
    """
    return json.dumps(to_json(data), sort_keys=True, separators=(",", ":"), allow_nan=False)


def fingerprint(data: Any) -> str:
    """Return the SHA-256 of `canonical_json(data)` as 64 lower-case hex digits."""
    return hashlib.sha256(canonical_json(data).encode()).hexdigest()


def load_fingerprint(
    document: PipelineDocument,
    destination: DestinationSpec,
    written: TableSpec,
    options: RunOptions,
) -> str:
    """Return the fingerprint of a table's load.

    `written` has its paths as in the document, no fingerprint and no credentials.
    """
    model, rules = document.model, FORMAT_RULES[destination.table_format]
    return fingerprint(
        {
            "bucket": destination.bucket,
            "prefix": destination.prefix,
            "pipeline": model.name,
            "nested": document.nested,
            "on_bad_value": written.on_bad_value or model.on_bad_value,
            "tracking_columns": model.tracking_columns,
            "table": {**_table(written), **rules.table_identity(written)},
            **_type_conflicts(written.on_type_conflict or model.on_type_conflict),
            **rules.destination_identity(destination),
            **_run(options),
        }
    )


def _table(table: TableSpec) -> Mapping[str, Any]:
    """Return what takes part whatever the format is."""
    return {
        "source": table.source,
        "schema": table.schema,
        "table": table.table,
        "input": SOURCES[table.input.type].identity(table.input),
        "columns": _columns(table.columns),
        "primary_key": table.primary_key,
        "where": table.where,
        "deleted_when": table.deleted_when,
        # As with `_run`.
        **({} if table.max_deleted is None else {"detect_deletes": True}),
        # Fingerprints have always covered the empty one of the table itself.
        "fingerprint": "",
    }


def _type_conflicts(policy: OnTypeConflict) -> Mapping[str, Any]:
    # As with `_run`.
    return {} if policy == "FAIL" else {"on_type_conflict": policy}


def _columns(columns: ColumnsSpec) -> Mapping[str, Any]:
    return {
        "include": columns.include,
        "exclude": columns.exclude,
        "rename": columns.rename,
        "types": columns.types,
    }


def _run(options: RunOptions) -> Mapping[str, Any]:
    # A key of its own only where it is asked for: older fingerprints are without it.
    refresh = {"full_refresh": True} if options.full_refresh else {}
    since = {} if options.since is None else {"from": options.since}
    return {"limit": options.limit, "reload": options.reload, **refresh, **since}
