"""Glue's tables as data: projection, locations, partitions found in a folder."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from typing import Any

import pytest

from lakeload_jobs.aws.glue_calls import GlueCalls
from lakeload_jobs.contract.spec import DestinationSpec, ParquetSpec, PartitionStrategy
from lakeload_jobs.core.comments import Comments, one_line
from lakeload_jobs.core.layout import TableLocation
from lakeload_jobs.core.names import PARTITION_KEY
from lakeload_jobs.formats.parquet.glue import glue_target
from lakeload_jobs.formats.parquet.glue.catalog import check_table, partitions_in
from lakeload_jobs.formats.parquet.glue.tables import (
    CatalogConflict,
    WantedTable,
    projection_parameters,
    same_location,
    united,
    widened_range,
)
from lakeload_jobs.formats.parquet.glue.tables import table_input as make_input
from lakeload_jobs.formats.parquet.log.records import GlueTarget
from tests.servers.glue import LOAD_ACTIONS

RANGE = f"projection.{PARTITION_KEY}.range"


def wanted(*columns: tuple[str, str], strategy: PartitionStrategy = "HOUR") -> WantedTable:
    """Return a wanted table of these columns."""
    key = None if strategy == "NONE" else PARTITION_KEY
    return WantedTable("shop", "orders", "s3://lake/a/shop/orders/", columns, key, strategy, "p")


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ("2026/11/21/10,NOW", None),
        ("2026/11/20/10,NOW", None),
        ("2026/11/21/11,NOW", "2026/11/21/10,NOW"),
        ("2027/01/01/00, 2028/01/01/00", "2026/11/21/10, 2028/01/01/00"),
        ("NOW-3YEARS,NOW", None),
        (None, "2026/11/21/10,NOW"),
    ],
)
def test_a_range_only_ever_grows_towards_the_past(there: str | None, expected: str | None) -> None:
    ours = projection_parameters("HOUR", "s3://lake/orders/", "2026/11/21/10")
    found = widened_range({} if there is None else {RANGE: there}, ours)
    assert found == ({} if expected is None else {RANGE: expected})


def test_glue_table_has_the_partition_projection_of_athena() -> None:
    assert projection_parameters("DAY", "s3://lake/orders/", "2026/11/21") == {
        "projection.enabled": "true",
        "projection.lakeload_partition.type": "date",
        "projection.lakeload_partition.format": "yyyy/MM/dd",
        "projection.lakeload_partition.range": "2026/11/21,NOW",
        "projection.lakeload_partition.interval": "1",
        "projection.lakeload_partition.interval.unit": "DAYS",
        "storage.location.template": "s3://lake/orders/${lakeload_partition}/",
    }
    injected = projection_parameters("SYNC_ID", "s3://lake/orders/", "job-1")
    assert injected["projection.lakeload_partition.type"] == "injected"
    assert RANGE not in injected


def test_partitions_are_found_by_the_shape_of_their_path() -> None:
    keys = [
        "a/orders/2026/11/21/10/part-1.gzip.parquet",
        "a/orders/2026/11/21/10/part-2.gzip.parquet",
        "a/orders/2026/11/21/part-3.gzip.parquet",
        "a/orders/2026/11/21/11/notes.txt",
        "a/orders/year=2026/part-4.gzip.parquet",
        "a/orders/job-1/part-5.gzip.parquet",
        "a/orders/part-6.gzip.parquet",
    ]
    assert partitions_in(keys, "a/orders/", "HOUR") == {"2026/11/21/10"}
    assert partitions_in(keys, "a/orders/", "DAY") == {"2026/11/21"}
    assert partitions_in(keys, "a/orders/", "SYNC_ID") == {"job-1"}
    assert partitions_in(keys, "a/orders/", "NONE") == set()


def test_a_location_is_the_same_however_a_client_writes_it() -> None:
    assert same_location("s3a://lake/a/orders", "s3://lake/a/orders/")
    assert not same_location("s3://lake/a/orders/", "s3://lake/a/Orders/")
    assert not same_location("hdfs://lake/a/orders/", "s3://lake/a/orders/")
    assert not same_location("", "s3://lake/a/orders/")


def test_glue_update_keeps_user_parameters_and_omits_read_only_fields() -> None:
    table: Any = {
        **make_input(wanted(("id", "bigint"))),
        "DatabaseName": "shop",
        "VersionId": "7",
        "CreatedBy": "somebody",
        "Owner": "",
        "ViewOriginalText": None,
        "Description": "orders of the shop",
    }
    table["Parameters"]["team"] = "sales"
    table["StorageDescriptor"]["Columns"].append(
        {"Name": "Note", "Type": "string", "Comment": "by hand"}
    )
    ours = wanted(("b", "int"), ("ID".lower(), "bigint"), ("note", "string"))
    check_table(table, ours)
    changed: Any = united(table, ours)
    assert changed["Description"] == "orders of the shop"
    assert changed["Parameters"] == table["Parameters"]
    assert changed["StorageDescriptor"]["Columns"] == [
        {"Name": "id", "Type": "bigint"},
        {"Name": "Note", "Type": "string", "Comment": "by hand"},
        {"Name": "b", "Type": "int"},
    ]
    assert not {"DatabaseName", "VersionId", "CreatedBy", "Owner", "ViewOriginalText"} & set(
        changed
    )
    assert united(table, wanted(("id", "bigint"))) is None


def test_comments_fill_those_that_glue_lacks_and_change_no_other() -> None:
    comments = Comments("all orders", {"id": "the key", "note": "of the source", "b": "new"})
    ours = replace(wanted(("id", "bigint"), ("note", "string")), comments=comments)
    made: Any = make_input(ours)
    assert made["Description"] == "all orders"
    assert [column.get("Comment") for column in made["StorageDescriptor"]["Columns"]] == [
        "the key",
        "of the source",
    ]
    assert united(made, ours) is None
    assert united(made, wanted(("id", "bigint"))) is None

    by_hand: Any = {**made, "Description": "by hand"}
    columns = [{"Name": "ID", "Type": "bigint"}, {"Name": "note", "Type": "string", "Comment": "x"}]
    by_hand["StorageDescriptor"] = {**made["StorageDescriptor"], "Columns": columns}
    changed: Any = united(by_hand, replace(wanted(*ours.columns, ("b", "int")), comments=comments))
    assert changed["Description"] == "by hand"
    assert changed["StorageDescriptor"]["Columns"] == [
        {"Name": "ID", "Type": "bigint", "Comment": "the key"},
        {"Name": "note", "Type": "string", "Comment": "x"},
        {"Name": "b", "Type": "int", "Comment": "new"},
    ]


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        (" two\r\n\tlines\x00 \u2028", 20, "two lines"),
        ("", 20, ""),
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abcde…"),
        ("\U0001f600" * 4, 6, "\U0001f600\U0001f600…"),
    ],
)
def test_a_comment_is_one_line_as_long_as_glue_takes(text: str, most: int, expected: str) -> None:
    assert one_line(text, most) == expected


@pytest.mark.parametrize(
    ("parquet", "expected"),
    [
        (ParquetSpec(), None),
        (
            ParquetSpec(update_glue_catalog=True),
            GlueTarget("supaflow_shop", "orders", PARTITION_KEY, projection=False),
        ),
        (
            ParquetSpec(update_glue_catalog=True, partition_projection=True),
            GlueTarget("supaflow_shop", "orders", PARTITION_KEY, projection=True),
        ),
        (
            ParquetSpec(
                partition_strategy="NONE", update_glue_catalog=True, partition_projection=True
            ),
            GlueTarget("supaflow_shop", "orders", None, projection=False),
        ),
    ],
)
def test_the_glue_table_is_named_as_the_target(
    parquet: ParquetSpec, expected: GlueTarget | None
) -> None:
    destination = DestinationSpec("lake", "us-east-1", parquet=parquet)
    assert glue_target(destination, TableLocation("a", "supaflow_shop", "orders")) == expected


def test_load_needs_no_action_missing_in_published_policies() -> None:
    """But for the partition that a struct gets new fields in: the types of others stay."""
    published = {
        "GetDatabase",
        "GetDatabases",
        "CreateDatabase",
        "UpdateDatabase",
        "GetTable",
        "GetTables",
        "CreateTable",
        "UpdateTable",
        "GetPartition",
        "GetPartitions",
        "CreatePartition",
        "BatchCreatePartition",
        "DeleteTable",
        "BatchDeleteTable",
        "DeleteDatabase",
    }
    source = inspect.getsource(GlueCalls)
    called = set(re.findall(r'"((?:Get|Create|Update|Delete|Batch)[A-Za-z]+)", ', source))
    assert called == {*LOAD_ACTIONS, "DeleteTable", "BatchUpdatePartition"}
    assert called - {"BatchUpdatePartition"} <= published


def test_structs_of_a_table_get_their_new_fields_at_the_end() -> None:
    table: Any = make_input(wanted(("id", "bigint"), ("s", "struct<b:int>")))
    table["StorageDescriptor"]["Columns"][1] = {
        "Name": "S",
        "Type": "struct<B: integer>",
        "Comment": "kept",
    }

    changed: Any = united(table, wanted(("s", "struct<a:int,b:int>")))
    same = united(table, wanted(("s", "struct<b:int>")))

    assert changed["StorageDescriptor"]["Columns"] == [
        {"Name": "id", "Type": "bigint"},
        {"Name": "S", "Type": "struct<b:int,a:int>", "Comment": "kept"},
    ]
    assert same is None
    with pytest.raises(CatalogConflict, match=r"`s\.b` is `int` in Glue and `string`"):
        check_table(table, wanted(("s", "struct<b:string,a:int>")))
