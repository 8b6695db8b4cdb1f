"""Hints about tables that Glue has otherwise, followed literally in the documents: the same rows
are then loaded, and Athena reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from lakeload.documents.spec import destination_spec, table_specs
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.formats.parquet.glue import GlueCatalog
from tests.hints import follow, follows
from tests.integration.formats.parquet.glue.loader import PATIENT, SCHEMA, Loader
from tests.integration.formats.parquet.glue.test_conflicts import change_table
from tests.servers.glue import LOAD_ACTIONS, allow_glue, glue_of
from tests.unit.documents.documents import pipeline

Document = dict[str, Any]
Event = Callable[[Loader], None]
ROWS = {"id": [1], "_supa_index": [1]}
TYPES = {"id": "bigint", "_supa_index": "bigint"}
BY_DAY = {"partition_strategy": "DAY"}


def written(loader: Loader, **parquet: Any) -> Document:
    """Return a pipeline that loads what the loader loads, with these settings of Parquet tables."""
    own = loader.destination
    return {
        "version": 1, "name": "shop", "namespace": "shop", "on_append_again": "ALLOW",
        "source": {"type": "FILES", "format": "PARQUET"},
        "tables": [{"table": "orders", "path": "orders.parquet"}],
        "destination": {
            "version": 1, "bucket": own.bucket, "region": own.region, "prefix": own.prefix,
            "glue_database_prefix": "supaflow",
            "parquet": {"update_glue_catalog": True, **parquet},
        },
    }  # fmt: skip


def load(loader: Loader, document: Document, folder: Path, job: str) -> Loader:
    """Run a whole job of a pipeline, and return the process that did. Raises why it failed."""
    read = pipeline(folder, yaml.safe_dump(document, sort_keys=False))
    destination, [table] = destination_spec(read.destination), table_specs(read)
    other = loader.again(parquet=destination.parquet, table=table.table)
    other.destination = replace(other.destination, prefix=destination.prefix)
    other.catalog = GlueCatalog(loader.session, other.destination, waits=PATIENT)
    other.location = TableLocation(destination.prefix, table.schema, table.table)
    columns = read.model.tracking_columns
    types = {name: kind for name, kind in TYPES.items() if name == "id" or name in columns}
    done = other.load(job, {name: ROWS[name] for name in types}, types)
    assert done.catalog_error is None
    return other


def drop(loader: Loader) -> None:
    """Drop the table from Glue, as a user with a console does."""
    glue_of(loader.lake).delete_table(DatabaseName=SCHEMA, Name="orders")


def empty_bucket(loader: Loader) -> None:
    """Delete the files and the log: nothing is loaded, and Glue still has the table."""
    keys = loader.lake.keys()
    for key in keys:
        loader.lake.server.s3.delete_object(Bucket=loader.destination.bucket, Key=key)


def change(edit: Callable[[dict[str, Any]], object]) -> Event:
    """Return what changes the table in Glue."""

    def act(loader: Loader) -> None:
        change_table(loader, edit)

    return act


def type_of(column: str) -> Event:
    """Return what gives a column another type in Glue."""

    def edit(table: dict[str, Any]) -> None:
        for one in table["StorageDescriptor"]["Columns"]:
            one["Type"] = "string" if one["Name"] == column else one["Type"]

    return change(edit)


NEW = empty_bucket
"""Nothing is loaded yet where Glue has the table."""
FORMER = "restore the former `bucket`, `prefix` and `glue_database_prefix`"


class Case(NamedTuple):
    """Settings that made the table, those of now, what happened between, and clauses of the hint,
    each of which lets the rows be loaded, with what they leave open."""

    before: Document
    now: Document
    events: tuple[Event, ...]
    clauses: Document


CASES = {
    "a table without partitions": Case(
        {"partition_strategy": "NONE"}, BY_DAY, (NEW,), {"set `partition_strategy: NONE`": {}}
    ),
    "a table of other folders": Case(
        BY_DAY, {"partition_strategy": "HOUR"}, (NEW,), {"set `partition_strategy: DAY`": {}}
    ),
    "a table with partitions": Case(
        BY_DAY, {"partition_strategy": "NONE"}, (NEW,), {"set `partition_strategy: DAY`": {}}
    ),
    "a table whose partitions are computed": Case(
        {**BY_DAY, "partition_projection": True}, BY_DAY, (NEW,),
        {"set `partition_projection: true`": {}},
    ),
    "a table of other computed folders": Case(
        {**BY_DAY, "partition_projection": True},
        {"partition_strategy": "HOUR", "partition_projection": True}, (NEW,),
        {"set `partition_strategy: DAY`": {}},
    ),
    "a tracking column of another type": Case(
        BY_DAY, BY_DAY, (NEW, type_of("_supa_index")),
        {"leave `_supa_index` out of `tracking_columns`": {"tracking_columns": ["_supa_id"]}},
    ),
    "a table at another prefix": Case(
        BY_DAY, {**BY_DAY, "prefix": "other"}, (),
        {FORMER: {"prefix": ""}, "or load into another `namespace`": {"namespace": "own"}},
    ),
    "a database at another prefix": Case(
        BY_DAY, {**BY_DAY, "prefix": "other"}, (drop,),
        {FORMER: {"prefix": ""}, "or load into another `namespace`": {"namespace": "own"}},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "case"), CASES.items(), ids=CASES.keys())
def test_a_hint_about_a_table_of_glue_lets_rows_be_loaded(
    loader: Loader, tmp_path: Path, name: str, case: Case
) -> None:
    before, now, events, clauses = case
    # A partition gets the types of its table.
    allow_glue(loader.lake, [*LOAD_ACTIONS, "BatchUpdatePartition"])
    load(loader, written(loader, **before), tmp_path, "job-0")
    for event in events:
        event(loader)
    document = written(loader, **{key: now[key] for key in now if key != "prefix"})
    own = document["destination"]["prefix"]
    if "prefix" in now:
        document["destination"]["prefix"] = f"{own}/other"
    with pytest.raises(LakeloadError) as failed:
        load(loader, document, tmp_path, "job-1")
    hint = failed.value.hint or ""
    follows(__file__, name, hint)
    for number, (clause, values) in enumerate(clauses.items()):
        assert clause in hint
        given = {key: own if key == "prefix" else value for key, value in values.items()}
        changed = follow(document, clause, "tables[0].table", **given)
        load(loader, changed, tmp_path, f"job-{number + 2}")


@pytest.mark.parametrize(
    "event",
    [
        type_of("id"),
        change(lambda table: table.update(PartitionKeys=[{"Name": "year", "Type": "int"}])),
        change(lambda table: table["Parameters"].update({"lakeload.partition-strategy": "HOUR"})),
        change(lambda table: table["Parameters"].update({"projection.enabled": "true"})),
        change(lambda table: table["StorageDescriptor"].update(Location="s3://elsewhere/orders/")),
    ],
    ids=["type", "keys", "strategy", "projection", "location"],
)
def test_a_table_that_was_changed_in_glue_is_dropped_as_the_hint_says(
    loader: Loader, tmp_path: Path, event: Event
) -> None:
    document = written(loader, **BY_DAY)
    load(loader, document, tmp_path, "job-0")
    event(loader)
    with pytest.raises(LakeloadError) as failed:
        load(loader, document, tmp_path, "job-1")

    assert "`" not in (failed.value.hint or "").partition("drop the table from Glue")[0]
    assert "drop the table from Glue (the files stay)" in (failed.value.hint or "")
    drop(loader)
    load(loader, document, tmp_path, "job-2")

    assert [row["id"] for row in loader.query()] == [1, 1]
