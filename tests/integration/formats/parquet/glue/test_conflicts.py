"""What Glue may hold under our name: what is refused names both sides, what fits is used."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.plan import CatalogPlan
from lakeload_jobs.formats.parquet.glue import CatalogConflict
from lakeload_jobs.formats.parquet.log.records import Column
from tests.integration.formats.parquet.glue.loader import SCHEMA, TEN, Loader
from tests.servers.glue import LOAD_ACTIONS, allow_glue, glue_of

ID = {"id": "bigint"}
COLUMNS = (Column("id", "bigint"),)
Edit = Callable[[dict[str, Any]], object]


def change_table(loader: Loader, edit: Edit) -> None:
    """Change the table as somebody with a console would."""
    table = loader.glue_table()
    names = ("Name", "TableType", "Parameters", "StorageDescriptor", "PartitionKeys")
    kept = {name: table[name] for name in names}
    edit(kept)
    update: Any = glue_of(loader.lake).update_table
    update(DatabaseName=SCHEMA, TableInput=kept)


def iceberg(table: dict[str, Any]) -> None:
    table["Parameters"] = {"table_type": "ICEBERG", "metadata_location": "s3://x/y.json"}


def view(table: dict[str, Any]) -> None:
    table["TableType"] = "VIRTUAL_VIEW"


def delta(table: dict[str, Any]) -> None:
    table["Parameters"]["spark.sql.sources.provider"] = "delta"


def csv(table: dict[str, Any]) -> None:
    serde = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
    table["StorageDescriptor"]["SerdeInfo"]["SerializationLibrary"] = serde


def moved(table: dict[str, Any]) -> None:
    table["StorageDescriptor"]["Location"] = "s3://elsewhere/orders/"


def other_key(table: dict[str, Any]) -> None:
    table["PartitionKeys"] = [{"Name": "year", "Type": "int"}]


def other_type(table: dict[str, Any]) -> None:
    table["StorageDescriptor"]["Columns"][0]["Type"] = "string"


def by_day(table: dict[str, Any]) -> None:
    table["Parameters"]["lakeload.partition-strategy"] = "DAY"


def projected(table: dict[str, Any]) -> None:
    table["Parameters"]["projection.enabled"] = "true"


CONFLICTS: tuple[tuple[Edit, str, str], ...] = (
    (iceberg, "an Iceberg table", "an external Parquet table"),
    (view, "`VIRTUAL_VIEW`", "an external Parquet table"),
    (delta, "`delta`", "an external Parquet table"),
    (csv, "LazySimpleSerDe", "an external Parquet table"),
    (moved, "`s3://elsewhere/orders/`", "data-lake/test/supaflow_shop/orders/`"),
    (other_key, "`year` int", "`lakeload_partition` string"),
    (other_type, "`id` is `string` in Glue", "`bigint` in the files of this table"),
    (by_day, "`partition_strategy: DAY`", "`HOUR`"),
    (projected, "projected partitions", "registered partitions"),
)


def test_glue_table_of_another_definition_is_rejected_and_both_are_named(loader: Loader) -> None:
    record = loader.stage("job-1", {"id": [1]}, COLUMNS, TEN)
    loader.catalog.bring_into_step([record], COLUMNS)
    original = loader.glue_table()
    for edit, theirs, ours in CONFLICTS:
        change_table(loader, edit)
        with pytest.raises(CatalogConflict) as caught:
            loader.again().catalog.check(loader.target, COLUMNS)
        assert theirs in caught.value.message, edit
        assert ours in caught.value.message, edit
        assert caught.value.hint
        # The same after the commit point: the data is in, and the next run does step 6.
        with pytest.raises(CatalogConflict):
            loader.catalog.bring_into_step([record], COLUMNS)
        change_table(loader, lambda table: table.update({n: original[n] for n in table}))
    loader.again().catalog.check(loader.target, COLUMNS)


def test_glue_database_in_another_location_is_rejected_only_for_new_tables(loader: Loader) -> None:
    glue = glue_of(loader.lake)
    glue.create_database(DatabaseInput={"Name": SCHEMA, "LocationUri": "s3://elsewhere/shop/"})
    with pytest.raises(CatalogConflict, match=r"s3://elsewhere/shop/.*data-lake/test/supaflow"):
        loader.catalog.check(loader.target, COLUMNS)
    glue.delete_database(Name=SCHEMA)
    glue.create_database(DatabaseInput={"Name": SCHEMA})
    assert loader.again().load("job-1", {"id": [1]}, ID).catalog_error is None
    glue.update_database(Name=SCHEMA, DatabaseInput={"Name": SCHEMA, "LocationUri": "s3://other/"})
    assert loader.again().load("job-2", {"id": [2]}, ID).catalog_error is None


def test_glue_partition_in_another_location_is_reported_and_kept(loader: Loader) -> None:
    loader.load("job-1", {"id": [1]}, ID)
    later = TEN + timedelta(hours=1)
    elsewhere: Any = {
        "Values": ["2026/11/21/11"],
        "StorageDescriptor": {"Location": "s3://elsewhere/11/"},
    }
    glue_of(loader.lake).create_partition(
        DatabaseName=SCHEMA, TableName="orders", PartitionInput=elsewhere
    )
    done = loader.load("job-2", {"id": [2]}, ID, synced=later)
    assert "s3://elsewhere/11/" in str(done.catalog_error)
    assert f"{loader.url}2026/11/21/11/" in str(done.catalog_error)
    assert loader.cataloged() == [1]


def test_types_that_athena_cannot_read_are_rejected_before_the_load(loader: Loader) -> None:
    for kind in ("struct<>", "map<struct<a:int>,int>", "interval", "array<void>", "struct<a:int"):
        with pytest.raises(CatalogConflict, match="column `odd` is"):
            loader.catalog.check(loader.target, (Column("odd", kind),))


def test_equal_glue_table_of_another_creator_is_used(
    loader: Loader,
) -> None:
    first, second = loader.again(pipeline="one"), loader.again(pipeline="two")
    first.load("job-1", {"id": [1]}, ID)

    def by_hand(table: dict[str, Any]) -> None:
        table["Parameters"] = {"comment": "ours"}
        table["StorageDescriptor"]["Location"] = first.url.replace("s3://", "s3a://").rstrip("/")
        table["StorageDescriptor"]["Columns"] += [{"Name": "Notes", "Type": "VARCHAR(10)"}]

    change_table(first, by_hand)
    assert second.catalog.foresee(second.target, (*COLUMNS, Column("extra", "int"))) == (
        CatalogPlan(SCHEMA, "orders", False, False, ("extra",))
    )
    done = second.load("job-2", {"id": [2], "extra": [1]}, ID | {"extra": "int"})
    assert done.catalog_error is None
    assert second.glue_table()["Parameters"] == {"comment": "ours"}
    assert [name for name, _ in second.columns()] == ["id", "Notes", "extra"]
    # It is not ours to delete.
    assert not second.catalog.drop_table(second.target, second.location)


def test_dropped_glue_table_is_recreated_with_all_partitions(
    loader: Loader,
) -> None:
    two = ID | {"b": "bigint"}
    loader.load("job-1", {"id": [1]}, ID)
    loader.load("job-2", {"id": [2], "b": [2]}, two, synced=TEN + timedelta(hours=3))
    with pytest.raises(AwsError) as caught:
        loader.catalog.drop_table(loader.target, loader.location)
    assert "`glue:DeleteTable`" in (caught.value.hint or "")
    allow_glue(loader.lake, (*LOAD_ACTIONS, "DeleteTable"))
    assert loader.catalog.drop_table(loader.target, loader.location)
    assert not loader.catalog.drop_table(loader.target, loader.location)
    assert loader.catalog.foresee(loader.target, COLUMNS).creates_table
    loader.again().load("job-3", {"id": [3]}, ID, synced=TEN + timedelta(hours=6))
    assert [row["id"] for row in loader.query()] == [1, 2, 3]
    assert [name for name, _ in loader.columns()] == ["id", "b"]


def test_recreated_glue_table_is_marked_until_its_partitions_are_restored(loader: Loader) -> None:
    for hour in range(3):
        later = TEN + timedelta(hours=hour)
        loader.load(f"job-{hour}", {"id": [hour]}, ID, synced=later)
    allow_glue(loader.lake, [a for a in LOAD_ACTIONS if a != "BatchCreatePartition"])
    glue_of(loader.lake).delete_table(DatabaseName=SCHEMA, Name="orders")
    stale = loader.again().load("job-3", {"id": [3]}, ID)
    assert isinstance(stale.catalog_error, AwsError)
    assert loader.glue_table()["Parameters"]["lakeload.incomplete"] == "true"
    allow_glue(loader.lake)
    loader.again().load("job-4", {"id": [4]}, ID)
    assert [row["id"] for row in loader.query()] == [0, 1, 2, 3, 4]
    assert "lakeload.incomplete" not in loader.glue_table()["Parameters"]
