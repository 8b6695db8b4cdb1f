"""`partition_by` of a table that exists: new files follow it, beside files of earlier specs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.contract.spec import PartitionField, TableSpec
from lakeload_jobs.formats.iceberg.catalogs.reading import facts_of
from lakeload_jobs.formats.iceberg.load.tables import load
from tests.integration.formats.iceberg.conftest import Loads, Row
from tests.integration.formats.iceberg.test_publish_races import before_publishing

REGION = PartitionField("identity", "region")
BUCKET = PartitionField("bucket", "id", 2)
FANOUT = {"write.spark.fanout.enabled": "true"}


def row(number: int, region: str = "eu", name: str = "first") -> Row:
    return {"id": number, "region": region, "name": name}


def merged(loads: Loads, *rows: Row, **changes: Any) -> TableSpec:
    changes = {"mode": "UPSERT", "primary_key": ("id",)} | changes
    return loads.table(loads.file(rows), **changes)


def spec_now(loads: Loads) -> list[str]:
    table = loads.read()
    names = {field.field_id: field.name for field in table.schema().fields}
    return [f"{field.transform}({names[field.source_id]})" for field in table.spec().fields]


def specs_of_files(loads: Loads) -> set[int]:
    return {task.file.spec_id for task in loads.read().scan().plan_files()}


def test_new_files_follow_a_changed_spec_and_rows_of_old_files_are_merged(loads: Loads) -> None:
    rows = [row(1), row(2, "us"), row(3), row(4, "us")]
    loads.loaded(merged(loads, *rows, partition_by=(REGION,)))

    changed = loads.loaded(merged(loads, row(1, "us", "b"), row(5), partition_by=(BUCKET,)))
    kept = loads.loaded(merged(loads, row(2, "us", "c"), row(1, "eu", "c")))
    refused = loads.load(merged(loads, row(9), partition_by=(REGION,)), schema_changes="FAIL")
    wider = loads.loaded(
        merged(loads, row(6) | {"kind": "k"}, partition_by=(PartitionField("identity", "kind"),))
    )

    said = "partitions new files by `bucket(2, id)`, no longer by `region`"
    assert (said in changed.notes, kept.notes) == (True, ())
    assert any("by `kind`" in note for note in wider.notes)
    assert refused.error is not None
    assert "by `bucket(2, id)`, but `partition_by` is `region`" in refused.error.message
    now = [row(1, "eu", "c"), row(2, "us", "c"), row(3), row(4, "us"), row(5), row(6)]
    assert loads.rows() == [one | {"kind": "k" if one["id"] == 6 else None} for one in now]
    assert (spec_now(loads), specs_of_files(loads)) == (["identity(kind)"], {0, 1, 2})


def test_rows_staged_before_a_spec_change_are_published_unchanged(
    loads: Loads, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other(*rows: Row, **changes: Any) -> Any:
        return loads.loaded(merged(loads, *rows, **changes), pipeline="shop")

    loads.loaded(merged(loads, row(1), row(2, "us"), partition_by=(REGION, BUCKET)))
    # The head moves with the spec: the append hands over its files once more.
    before_publishing(monkeypatch, lambda: other(row(2, "us", "b"), partition_by=(BUCKET, REGION)))
    loads.loaded(merged(loads, row(3), mode="APPEND"))
    appended = specs_of_files(loads)

    # The spec alone moves: the MERGE brings rows of the old spec to the head it has seen.
    def by_hand() -> None:
        java_table: Any = load(loads.spark, loads.schema, "orders")
        java_table.updateSpec().removeField("region").commit()

    before_publishing(monkeypatch, by_hand)
    loads.loaded(merged(loads, row(1, "eu", "c"), row(4)))

    now = [row(1, "eu", "c"), row(2, "us", "b"), row(3), row(4)]
    assert loads.rows() == now
    assert appended == {0, 1}
    assert spec_now(loads) == ["bucket[2](id)"]
    assert list(loads.read().metadata.refs) == ["main"]


def test_an_overwrite_changes_the_spec_and_keeps_what_fits_of_it_with_replaced_columns(
    loads: Loads,
) -> None:
    loads.loaded(merged(loads, row(1), row(2, "us"), mode="OVERWRITE", partition_by=(REGION,)))

    loads.loaded(merged(loads, row(3), mode="OVERWRITE", partition_by=(BUCKET, REGION)))
    changed = spec_now(loads)
    texts = [{"id": "one", "region": "eu", "name": 7}]
    loads.loaded(merged(loads, *texts, mode="OVERWRITE"))
    replaced = spec_now(loads)
    numbers = [{"id": 1.5, "region": 1.5, "name": 7}]
    lost = loads.loaded(merged(loads, *numbers, mode="OVERWRITE", primary_key=("name",)))
    left = spec_now(loads)
    loads.loaded(merged(loads, *numbers, mode="OVERWRITE", primary_key=(), partition_by=()))

    assert (changed, replaced) == (["bucket[2](id)", "identity(region)"],) * 2
    assert left == ["identity(region)"]
    assert any("no longer by `bucket(2, id)`" in note for note in lost.notes)
    assert (loads.rows(), spec_now(loads)) == (numbers, [])
    known = loads.tables.read(loads.schema, "orders")
    assert known is not None
    assert facts_of(known).partitions == ()


TABLES, LOWER = ("Order_ID", "Seen_At", "Region_Name"), ("order_id", "seen_at", "region_name")
SOURCES, NEITHER = ("Order ID", "Seen At", "Region Name"), ("ORDER_ID", "seen at", "Region name")


@pytest.mark.parametrize(
    "spellings",
    [(TABLES, LOWER, SOURCES), (NEITHER, NEITHER, TABLES)],
    ids=["of the table first", "of neither first"],
)
def test_settings_name_columns_in_any_spelling(
    loads: Loads, spellings: Sequence[tuple[str, str, str]]
) -> None:
    def spelled(number: int, seen: int, region: str) -> Row:
        return {"id": number, "Order ID": number, "Seen At": seen, "Region Name": region}

    def renamed(number: int, seen: int, region: str) -> Row:
        return {"id": number, "order id": number, "seen_at": seen, "REGION_NAME": region}

    remaining = iter(spellings)

    def load_rows(*rows: Row) -> TableResult:
        key, cursor, field = next(remaining)
        settings = {"primary_key": (key,), "cursor": cursor}
        partitions = (PartitionField("identity", field),)
        return loads.loaded(merged(loads, *rows, **settings, partition_by=partitions))

    load_rows(spelled(1, 10, "eu"), spelled(2, 10, "us"))
    late = load_rows(spelled(1, 5, "late"), spelled(2, 20, "ap"))
    other = load_rows(renamed(1, 20, "ap"), renamed(2, 15, "late"), renamed(3, 1, "eu"))

    assert loads.rows() == [
        {"id": 1, "Order_ID": 1, "Seen_At": 20, "Region_Name": "ap"},
        {"id": 2, "Order_ID": 2, "Seen_At": 20, "Region_Name": "ap"},
        {"id": 3, "Order_ID": 3, "Seen_At": 1, "Region_Name": "eu"},
    ]
    assert spec_now(loads) == ["identity(Region_Name)"]
    assert [note for result in (late, other) for note in result.notes if "partition" in note] == []
    assert [note for result in (late, other) for note in result.notes if "is new" in note] == []


@pytest.mark.parametrize(("more", "sorts"), [({}, True), (FANOUT, False)], ids=["plain", "fanout"])
def test_spark_sorts_rows_by_partition_so_that_few_files_are_open(
    loads: Loads, more: dict[str, str], *, sorts: bool
) -> None:
    """An open file for each of 500 partitions needs a heap of 4 GB."""
    executions = loads.spark._jsparkSession.sharedState().statusStore()
    table = loads.table(
        loads.file([row(1), row(2, "us"), row(3)]),
        partition_by=(REGION,),
        table_properties={"write.object-storage.enabled": "true", **more},
    )
    before = executions.executionsCount()
    loads.loaded(table)

    listed = executions.executionsList(before, executions.executionsCount() - before)
    plans = [listed.apply(at).physicalPlanDescription() for at in range(listed.size())]
    (written,) = [plan for plan in plans if "AppendData" in plan]
    assert ("Sort (" in written) is sorts
