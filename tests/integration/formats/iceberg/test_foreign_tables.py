"""Tables that other programs have made: loaded as documented, or refused before they change."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField, StringType, TimeType

from lakeload_jobs.contract.result import RowChanges, TableResult
from lakeload_jobs.contract.spec import ColumnsSpec, Mode, RunOptions, TableSpec
from tests.integration.formats.iceberg.conftest import Loads, Row

APPEND = RunOptions(table_handling="APPEND")
ID = NestedField(1, "id", LongType())
NAME = NestedField(2, "name", StringType())


def made(
    loads: Loads, columns: Sequence[NestedField], rows: Sequence[Row] = (), **properties: str
) -> Table:
    """Make the table with pyiceberg's defaults and append rows to it."""
    catalog = load_catalog("maker", type="rest", uri=loads.uri, **loads.store)
    catalog.create_namespace_if_not_exists((loads.schema,))
    name = (loads.schema, "orders")
    table = catalog.create_table(name, Schema(*columns), properties=properties)
    if rows:
        table.append(pa.Table.from_pylist(list(rows), table.schema().as_arrow()))
    return table


def test_upsert_into_a_copy_on_write_table_merges(loads: Loads) -> None:
    def upsert(*rows: Row) -> TableResult:
        keyed = loads.table(loads.file(rows), mode="UPSERT", primary_key=("id",))
        return loads.load(keyed, options=APPEND)

    first = [{"id": number, "name": "old"} for number in (1, 2, 3)]
    made(loads, [ID, NAME], first, **{"format-version": "2"})
    changed = [{"id": 2, "name": "new"}, {"id": 3, "name": "new"}, {"id": 4, "name": "new"}]

    assert upsert(*changed).changes == RowChanges(1, 2, 0, unchanged=0, ignored=0)
    again = upsert(changed[0], {"id": 3, "name": "newer"}, {"id": 5, "name": "new"})
    assert again.changes == RowChanges(1, 1, 0, unchanged=1, ignored=0)
    failed = upsert({"id": 6, "name": "x"}, {"id": None, "name": "x"})
    assert failed.error is not None
    assert "primary key column `id` is null" in failed.error.message
    assert [row["name"] for row in loads.rows()] == ["old", "new", "newer", "new", "new"]
    assert loads.read().metadata.refs.keys() == {"main"}


def test_a_table_keeps_the_spelling_of_its_columns(loads: Loads) -> None:
    names = ("first name", "émail", "a-b")
    columns = [NestedField(number, name, StringType()) for number, name in enumerate(names, 1)]
    made(loads, columns, [dict.fromkeys(names, "1")])

    loaded = loads.loaded(loads.table(loads.file([dict.fromkeys(names, "2")])), options=APPEND)
    assert loaded.warnings == ()
    changed = {"First Name": "3", "émail": "2", "a-b": "2"}
    keyed = loads.table(loads.file([changed]), mode="UPSERT", primary_key=("émail", "a-b"))
    merged = loads.loaded(keyed)

    assert (merged.warnings, merged.changes) == ((), RowChanges(0, 1, 0, unchanged=0, ignored=0))
    assert loads.rows(order="émail") == [
        dict.fromkeys(names, "1"),
        {"first name": "3", "émail": "2", "a-b": "2"},
    ]


def test_a_table_with_a_time_column_is_refused_before_it_changes(loads: Loads) -> None:
    before = made(loads, [ID, NestedField(2, "at", TimeType())]).metadata_location
    paths = loads.file([{"id": 1, "at": "10:00:00", "new": 1}])

    for changes in ({"on_type_conflict": "NEW_COLUMN"}, {"columns": ColumnsSpec(exclude=("at",))}):
        refused = loads.load(loads.table(paths, **changes), options=APPEND)
        assert refused.error is not None
        assert "`at` is `time` in the table, a type that Spark cannot read" in refused.error.message
    assert loads.read().metadata_location == before

    loads.loaded(loads.table(paths, mode="OVERWRITE"), options=APPEND)
    assert loads.rows() == [{"id": 1, "at": "10:00:00", "new": 1}]


@pytest.mark.parametrize("mode", ["APPEND", "UPSERT"])
def test_a_load_that_fails_at_its_rows_changes_no_column(loads: Loads, mode: Mode) -> None:
    columns = [ID, NestedField(2, "name", StringType(), required=True)]
    before = made(loads, columns).metadata.schema()
    rows = loads.file([{"id": 1, "new": "1"}, {"id": 2, "new": "x"}])

    def table(kind: str) -> TableSpec:
        keyed = ("id",) if mode == "UPSERT" else ()
        types = ColumnsSpec(types={"new": kind})
        return loads.table(rows, mode=mode, primary_key=keyed, columns=types)

    failed = loads.load(table("int"), options=APPEND)
    assert failed.error is not None
    assert "column `new`" in failed.error.message
    assert loads.read().schema() == before

    loads.loaded(table("string"), options=APPEND)
    assert loads.rows() == [
        {"id": 1, "name": None, "new": "1"},
        {"id": 2, "name": None, "new": "x"},
    ]
