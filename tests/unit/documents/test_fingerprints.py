"""Fingerprints are in the logs and tables of every load so far: they never change."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, make_dataclass, replace
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from lakeload.documents.format_rules import FORMAT_RULES as FORMATS
from lakeload.documents.load import PipelineDocument
from lakeload.documents.pipeline import Pipeline
from lakeload.documents.spec import destination_spec, load_fingerprint, table_specs
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import (
    NO_OPTIONS,
    AppendAgain,
    CatalogSpec,
    ColumnsSpec,
    CommitAt,
    CredentialsSpec,
    DestinationSpec,
    EncryptionSpec,
    EndpointsSpec,
    FilesInput,
    IcebergSpec,
    ParquetSpec,
    PartitionField,
    RejectLimit,
    RoundLimit,
    RunOptions,
    SigV4Spec,
    TableFormat,
    TableSpec,
)
from tests.inputs import files_of
from tests.unit.documents.documents import PIPELINE, TABLES, pipeline

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "cases" / "fingerprints.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]
"""What the lakeload of before fingerprints were made setting by setting computed."""


@pytest.mark.parametrize("case", [pytest.param(case, id=case["case"]) for case in CASES])
def test_fingerprint_of_kept_cases_is_unchanged(case: dict[str, Any], tmp_path: Path) -> None:
    text = yaml.safe_dump(case["pipeline"], sort_keys=False, allow_unicode=True)
    environment = {"A": "a", "B": "b", "C": "a:b", "H": "h", "T": "t", "X": "x"}
    document = pipeline(tmp_path, text, **environment)

    specs = table_specs(document, RunOptions(**case["options"]))

    assert [spec.fingerprint for spec in specs] == case["fingerprints"]


def test_fingerprint_cases_have_descriptions() -> None:
    assert len(CASES) == len({case["case"] for case in CASES})
    assert len({mark for case in CASES for mark in case["fingerprints"]}) > len(CASES) / 2


@dataclass(frozen=True)
class Load:
    """Everything that a fingerprint is made of, but for the document."""

    destination: DestinationSpec
    table: TableSpec
    options: RunOptions = NO_OPTIONS

    def fingerprint(self, document: PipelineDocument) -> str:
        return load_fingerprint(document, self.destination, self.table, self.options)


FULL = Load(
    DestinationSpec(
        "my-data-lake",
        "us-east-1",
        iceberg=IcebergSpec(CatalogSpec(headers={"X": SecretReference("env", "X")})),
    ),
    TableSpec(
        "orders",
        "web",
        "orders",
        FilesInput("CSV", ("orders.csv",), {"header": "true"}),
        "",
        ColumnsSpec(rename={"a": "b"}),
        partition_by=(PartitionField("day", "at"),),
    ),
)


@pytest.fixture
def document(tmp_path: Path) -> PipelineDocument:
    return pipeline(tmp_path, PIPELINE + TABLES)


def loads() -> dict[TableFormat, Load]:
    return {
        name: replace(FULL, destination=replace(FULL.destination, table_format=name))
        for name in FORMATS
    }


def test_every_format_declares_its_fingerprint_fields() -> None:
    assert set(FORMATS) == set(get_args(TableFormat))


def with_a_new_field(value: Any) -> Any:
    """Return a value as it is in a later lakeload: every class has one more field."""
    if isinstance(value, tuple):
        return tuple(map(with_a_new_field, value))
    if not is_dataclass(value) or isinstance(value, type):
        return value
    later = make_dataclass(
        type(value).__name__,
        [("added_later", str, field(default="its default"))],
        bases=(type(value),),
        frozen=True,
    )
    known = {f.name: with_a_new_field(getattr(value, f.name)) for f in fields(value)}
    return later(**known)


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_new_setting_with_its_default_changes_no_fingerprint(
    table_format: TableFormat, document: PipelineDocument
) -> None:
    load = loads()[table_format]
    later = Load(
        with_a_new_field(load.destination),
        with_a_new_field(load.table),
        with_a_new_field(load.options),
    )
    given: Any = later.table.input
    assert given.added_later == "its default"

    assert later.fingerprint(document) == load.fingerprint(document)


ALWAYS, NEVER = frozenset(FORMATS), frozenset[TableFormat]()
PARQUET, ICEBERG = frozenset({"PARQUET"}), frozenset({"ICEBERG"})
_KEYS = CredentialsSpec(profile="p")
_SECRET = SecretReference("env", "S")

Change = tuple[Any, frozenset[Any]]
"""Another value of a field, and the formats in which it makes another load."""

CHANGES: Mapping[type, Mapping[str, Change]] = {
    RunOptions: {
        "reload": (True, ALWAYS),
        "full_refresh": (True, ALWAYS),
        "limit": (7, ALWAYS),
        "table_handling": ("APPEND", NEVER),
        "since": ("41", ALWAYS),
    },
    TableSpec: {
        "source": ("x", ALWAYS),
        "schema": ("x", ALWAYS),
        "table": ("x", ALWAYS),
        "primary_key": (("id",), ALWAYS),
        "where": ("a", ALWAYS),
        "deleted_when": ("a", ALWAYS),
        "mode": ("UPSERT", ICEBERG),
        "cursor": ("a", ALWAYS),
        "input_bytes": (9, NEVER),
        "deletes": ("DELETE", ICEBERG),
        "max_deleted": (RejectLimit(rows=1), ALWAYS),
        "partition_by": ((), ICEBERG),
        "table_properties": ({"a": "b"}, NEVER),
        # How files are written does not change their rows.
        "bloom_filters": (("id",), NEVER),
        "schema_changes": ("FAIL", NEVER),
        "on_type_conflict": ("NEW_COLUMN", ALWAYS),
        "on_bad_value": ("NULL", ALWAYS),
        # As the pipeline's.
        "max_rejected": (RejectLimit(rows=1), NEVER),
        # It fails a load, or not.
        "on_same_key": ("WARN", NEVER),
        "append_again": (AppendAgain("FAIL", ""), NEVER),
        # It decides which job loads a row, not which rows are loaded.
        "round_limit": (RoundLimit(files=1), NEVER),
        "commit_at": (CommitAt(age=60), NEVER),
        "fingerprint": ("f", NEVER),
        "inspected": ("x", NEVER),
    },
    FilesInput: {
        "format": ("JSON", ALWAYS),
        "paths": (("a", "b"), ALWAYS),
        "options": ({}, ALWAYS),
        "incremental": (True, ALWAYS),
        "on_changed_file": ("SKIP", ALWAYS),
        "content_hash": (True, NEVER),
        "credentials": (_KEYS, NEVER),
        "folder": ("/elsewhere", NEVER),
    },
    ColumnsSpec: {
        "include": (("a",), ALWAYS),
        "exclude": (("a",), ALWAYS),
        "rename": (None, ALWAYS),
        "types": ({"a": "int"}, ALWAYS),
    },
    PartitionField: {
        "transform": ("bucket", ICEBERG),
        "column": ("x", ICEBERG),
        "width": (4, ICEBERG),
    },
    DestinationSpec: {
        "bucket": ("x", ALWAYS),
        "prefix": ("x", ALWAYS),
        "table_format": (None, ALWAYS),
        "region": ("eu-west-1", NEVER),
        "credentials": (_KEYS, NEVER),
        "endpoints": (EndpointsSpec("https://h"), NEVER),
        "addressing_style": ("PATH", NEVER),
        "single_writer": (True, NEVER),
        "encryption": (EncryptionSpec("SSE_S3"), NEVER),
        "target_file_size": (1 << 20, NEVER),
        # Part of the schema of each table already.
        "glue_database_prefix": ("x", NEVER),
    },
    ParquetSpec: {
        "partition_strategy": ("DAY", PARQUET),
        "file_name_pattern": ("{uuid}", PARQUET),
        "update_glue_catalog": (True, PARQUET),
        "partition_projection": (True, PARQUET),
        "upload_parallelism": (1, NEVER),
    },
    IcebergSpec: {
        "warehouse_location": ("s3://b/x", ICEBERG),
        "branch": ("x", ICEBERG),
        # How a table is made does not change its rows.
        "format_version": (3, NEVER),
        "table_properties": ({"a": "b"}, NEVER),
    },
    CatalogSpec: {
        "type": ("REST", ICEBERG),
        "glue_id": ("123456789012", ICEBERG),
        "uri": ("https://h", ICEBERG),
        "warehouse": ("w", ICEBERG),
        "ref": ("x", ICEBERG),
        # How the catalog is spoken to: it is the same catalog.
        "client_id": (_SECRET, NEVER),
        "client_secret": (_SECRET, NEVER),
        "credential": (_SECRET, NEVER),
        "token": (_SECRET, NEVER),
        "scope": ("x", NEVER),
        "oauth2_server_uri": ("https://h", NEVER),
        "access_delegation": ("NONE", NEVER),
        "sigv4": (SigV4Spec(), NEVER),
        "headers": (None, NEVER),
        "api": ("REST", NEVER),
        "catalog_region": ("eu-west-1", NEVER),
    },
}
"""Every field of every class that a fingerprint can be made of: a new one has to be put here."""

PARTS: Mapping[type, frozenset[str]] = {
    TableSpec: frozenset({"input", "columns"}),
    FilesInput: frozenset({"type"}),
    DestinationSpec: frozenset({"parquet", "iceberg"}),
    IcebergSpec: frozenset({"catalog"}),
}
"""Fields whose own fields are in `CHANGES`, and the one that says which class an input is of."""

PLACES: Mapping[type, Callable[[Load, dict[str, Any]], Load]] = {
    RunOptions: lambda load, to: replace(load, options=replace(load.options, **to)),
    TableSpec: lambda load, to: _table(load, **to),
    FilesInput: lambda load, to: _table(load, input=replace(load.table.input, **to)),
    ColumnsSpec: lambda load, to: _table(load, columns=replace(load.table.columns, **to)),
    PartitionField: lambda load, to: _table(
        load, partition_by=(replace((load.table.partition_by or ())[0], **to),)
    ),
    DestinationSpec: lambda load, to: _destination(load, **to),
    ParquetSpec: lambda load, to: _destination(
        load, parquet=replace(load.destination.parquet, **to)
    ),
    IcebergSpec: lambda load, to: _destination(
        load, iceberg=replace(load.destination.iceberg, **to)
    ),
    CatalogSpec: lambda load, to: _destination(
        load,
        iceberg=replace(
            load.destination.iceberg, catalog=replace(load.destination.iceberg.catalog, **to)
        ),
    ),
}


def _table(load: Load, **to: Any) -> Load:
    return replace(load, table=replace(load.table, **to))


def _destination(load: Load, **to: Any) -> Load:
    return replace(load, destination=replace(load.destination, **to))


@pytest.mark.parametrize("kind", CHANGES, ids=lambda kind: kind.__name__)
def test_every_spec_field_is_in_the_fingerprint_or_listed_as_excluded(kind: type) -> None:
    names = {f.name for f in fields(kind)}
    assert names == set(CHANGES[kind]) | PARTS.get(kind, frozenset())


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        pytest.param(kind, name, id=f"{kind.__name__}.{name}")
        for kind, changes in CHANGES.items()
        for name in changes
    ],
)
def test_changed_field_changes_the_fingerprint_as_declared(
    kind: type, name: str, document: PipelineDocument
) -> None:
    value, counts = CHANGES[kind][name]
    for table_format, load in loads().items():
        if name == "table_format":
            value = next(other for other in FORMATS if other != table_format)
        changed = PLACES[kind](load, {name: value})
        assert changed != load
        differs = changed.fingerprint(document) != load.fingerprint(document)
        assert differs == (table_format in counts), table_format


def test_every_pipeline_setting_is_in_the_fingerprint_or_listed_as_excluded() -> None:
    by_itself = {"name", "nested", "on_bad_value", "on_type_conflict", "tracking_columns"}
    in_the_specs = {"destination", "destination_prefix", "namespace", "source", "tables"}
    not_at_all = {
        "version",
        "max_rejected",
        "concurrency",
        "table_handling",
        "schema_changes",
        "on_append_again",
        "upload_interval",
        "round_limit",
        "commit_at",
        "metrics_file",
        "history",
        "freshness",
        "lineage",
        "notify",
        "opentelemetry",
        "spark",
    }

    assert set(Pipeline.model_fields) == by_itself | in_the_specs | not_at_all


def test_fingerprint_input_equals_the_job_spec(tmp_path: Path) -> None:
    document = pipeline(tmp_path, PIPELINE + TABLES)
    destination = destination_spec(document.destination)
    [spec] = table_specs(document)
    read = replace(files_of(spec), paths=("orders.csv",), folder="")
    written = replace(spec, input=read, fingerprint="")

    mark = load_fingerprint(document, destination, written, RunOptions())

    assert mark == spec.fingerprint
