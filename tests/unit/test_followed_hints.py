"""Hints of what is decided without Spark, followed literally in the pipeline: the same then passes,
or says something else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import yaml

from lakeload.documents.load import PipelineDocument, inspect_all
from lakeload.documents.spec import destination_spec, table_specs
from lakeload.launch.run_folder import RunFolder
from lakeload.launch.spec import check_options
from lakeload_jobs.contract.errors import InvalidInput, LakeloadError
from lakeload_jobs.contract.spec import RunOptions
from lakeload_jobs.contract.traits import vends
from lakeload_jobs.core.append_again import LastLoad, append_again_warnings
from lakeload_jobs.core.file_names import render_file_name
from lakeload_jobs.core.layout import TableLocation, data_key
from lakeload_jobs.formats.deletes import source_keys
from lakeload_jobs.formats.iceberg.catalogs.errors import advice
from lakeload_jobs.formats.iceberg.load.definition import table_properties
from lakeload_jobs.formats.iceberg.rules.admission import check_only_pipeline
from lakeload_jobs.rows.columns import ColumnMapping
from lakeload_jobs.rows.row_id import row_ids
from tests.hints import follow, follows
from tests.unit.documents.documents import pipeline
from tests.unit.formats.iceberg.rules.table import JOB, Table
from tests.unit.launch.specs import job_spec

Document = dict[str, Any]
Run = Callable[[PipelineDocument], str | None]
"""What is done with a pipeline; returns the hint, None for a pipeline that passes."""

POSTGRES = {"type": "JDBC", "url": "postgresql://db.example.com/shop", "user": "reader"}
ICEBERG = {"table_format": "ICEBERG", "glue_database_prefix": "lake"}
VENDED = {
    "table_format": "ICEBERG",
    "iceberg": {"catalog": {"type": "REST", "uri": "http://catalog.example.com"}},
}
CSV = {"type": "FILES", "format": "CSV"}
NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)
LAST = LastLoad("monday", NOON, 5)


def _reload(read: PipelineDocument) -> str | None:
    destination = destination_spec(read.destination)
    try:
        check_options(table_specs(read), destination.table_format, RunOptions(reload=True))
    except LakeloadError as error:
        return error.hint
    return None


def _append(read: PipelineDocument) -> str | None:
    [table] = table_specs(read)
    return next(iter(append_again_warnings(table.append_again, LAST, table.source)), None)


def _key(read: PipelineDocument) -> str | None:
    destination, [table] = destination_spec(read.destination), table_specs(read)
    location = TableLocation(destination.prefix, table.schema, table.table)
    pattern, uuid = destination.parquet.file_name_pattern, "0" * 36
    file_name = render_file_name(pattern, seq=0, uuid=uuid, synced=NOON, job_id="job")
    try:
        data_key(location, "2026/11/26/08", file_name)
    except LakeloadError as error:
        return error.hint
    return None


def _hidden(read: PipelineDocument) -> str | None:
    [inspection] = inspect_all([read.path], {})
    return next((one.hint for one in inspection.problems if one.code == "hidden"), None)


def _vended(read: PipelineDocument) -> str | None:
    """Polaris without a storage configuration refuses whoever asks it for credentials."""
    if not vends(destination_spec(read.destination).iceberg.catalog):
        return None
    return advice("Credential vending was requested for table shop.orders, but no storage")


def _shared(read: PipelineDocument) -> str | None:
    """Two pipelines load one table, and one of them compares its keys."""
    [spec] = table_specs(read)
    table = Table()
    if spec.table == "orders":
        table.publish(replace(JOB, pipeline="sales"))
    if spec.max_deleted is None:
        return None
    try:
        check_only_pipeline(table.facts, replace(JOB, pipeline=read.model.name))
    except LakeloadError as error:
        return error.hint
    return None


def _id_of_duration(read: PipelineDocument) -> str | None:
    """Rows with a column `id`, and `took`, a type that no reader brings."""
    [table] = table_specs(read)
    columns: dict[str, Any] = {"id": pa.array([1]), "took": pa.array([1], pa.duration("s"))}
    if (table.columns.types or {}).get("took") == "bigint":
        columns["took"] = columns["took"].cast(pa.int64())
    try:
        row_ids([columns[name] for name in table.primary_key])
    except LakeloadError as error:
        return error.hint
    return None


def _without_keys(read: PipelineDocument) -> str | None:
    """A source that reads rows and cannot read their keys alone."""
    [table] = table_specs(read)
    if table.max_deleted is None:
        return None
    prepared: Any = SimpleNamespace(rows=SimpleNamespace(keys=None))
    spec: Any = None
    try:
        source_keys(spec, table, prepared, ColumnMapping((), ()), lower=False)
    except LakeloadError as error:
        return error.hint
    return None


@dataclass(frozen=True)
class Case:
    """A pipeline of one table, what is done with it, and clauses of the hint, each of which lets it
    pass; with what is filled in."""

    run: Run
    clauses: dict[str, dict[str, Any]]
    table: Document = field(default_factory=dict)
    source: Document = field(default_factory=lambda: POSTGRES)
    destination: Document = field(default_factory=dict)


CASES = {
    "rows of rounds, loaded again at once": Case(
        _reload, {"remove `round_limit`": {}},
        {"cursor": "id", "mode": "UPSERT", "primary_key": ["id"], "round_limit": {"rows": 5}},
        destination=ICEBERG,
    ),
    "rows that are appended again": Case(
        _append, {"set `mode: OVERWRITE`": {}, "set `on_append_again: ALLOW`": {}},
        destination=ICEBERG,
    ),
    "a key that is too long": Case(
        _key,
        {
            "shorten `prefix`": {"prefix": "p"},
            "the table's `name`": {"name": "t"},
            "or `namespace`": {"namespace": "n"},
            "or `file_name_pattern`": {"file_name_pattern": "{uuid}"},
        },
        {"name": "t" * 255, "namespace": "n" * 255},
        destination={
            "prefix": "p" * 195 + "/" + "p" * 195,
            "parquet": {"file_name_pattern": "f" * 90 + "{uuid}"},
        },
    ),
    "a name that readers skip": Case(
        _hidden, {"set `name: t_04_sp500`": {}}, {"table": "04_sp500", "path": "a.csv"}, CSV
    ),
    "a catalog that lends no keys": Case(
        _vended, {"set `access_delegation: NONE`": {}}, destination=VENDED
    ),
    "keys that are compared with rows of another pipeline": Case(
        _shared,
        {"remove `detect_deletes`": {}, "load into a table of another `name`": {"name": "own"}},
        {"name": "orders", "detect_deletes": True, "primary_key": ["id"], "mode": "UPSERT"},
        destination=ICEBERG,
    ),
    "a source that cannot read keys alone": Case(
        _without_keys, {"remove `detect_deletes`": {}},
        {"detect_deletes": True, "primary_key": ["id"], "mode": "UPSERT"}, destination=ICEBERG,
    ),
    "a key of a type without an id": Case(
        _id_of_duration,
        {
            "choose another `primary_key`": {"primary_key": ["id"]},
            "cast the column with `columns.types`": {"columns.types": {"took": "bigint"}},
        },
        {"primary_key": ["took"]},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "case"), CASES.items(), ids=CASES.keys())
def test_a_hint_that_is_followed_lets_the_pipeline_pass(
    tmp_path: Path, name: str, case: Case
) -> None:
    table = {"table": "public.orders", **case.table}
    document: Document = {
        "version": 1, "name": "shop", "source": dict(case.source), "tables": [table],
        "destination": {
            "version": 1, "bucket": "my-data-lake", "region": "us-east-1", **case.destination,
        },
    }  # fmt: skip

    def run(changed: Document) -> str | None:
        return case.run(pipeline(tmp_path, yaml.safe_dump(changed, sort_keys=False)))

    hint = run(document)
    assert hint
    follows(__file__, name, hint)
    for clause, values in case.clauses.items():
        assert clause in hint
        changed = follow(document, clause, "tables[0].table", **values)
        assert run(changed) is None, clause


def test_a_property_of_lakeloads_own_is_removed_as_the_hint_says(tmp_path: Path) -> None:
    """The document refuses it too: this is what the job says of a spec."""
    spec = job_spec(RunFolder(tmp_path))
    [table, _] = spec.tables
    owned = replace(table, table_properties={"lakeload.owner": "me", "write.parquet.level": "1"})
    with pytest.raises(InvalidInput, match="is reserved by lakeload") as failed:
        table_properties(spec, owned)
    hint = failed.value.hint or ""
    follows(__file__, "a property of lakeload's own", hint)
    assert hint == "remove it from `table_properties`"
    left = {"write.parquet.level": "1"}

    assert left.items() <= table_properties(spec, replace(owned, table_properties=left)).items()
