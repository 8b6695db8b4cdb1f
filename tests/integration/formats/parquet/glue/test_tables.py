"""What a load makes in Glue, read as Athena would read it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakeload_jobs.contract.spec import ParquetSpec, PartitionStrategy
from lakeload_jobs.core.types import TYPE_RULES
from tests.athena import HiveError
from tests.integration.formats.parquet.glue.loader import SCHEMA, TEN, Loader
from tests.servers.glue import LOAD_ACTIONS, allow_glue, glue_of

Rows = dict[str, list[Any]]

ID = {"id": "bigint"}
BOTH = {"id": "bigint", "name": "string"}


def test_the_first_load_makes_database_table_and_partition(loader: Loader) -> None:
    done = loader.load("job-1", {"id": [1, 2]}, ID)
    assert done.catalog_error is None
    assert loader.cataloged() == [1]
    database = glue_of(loader.lake).get_database(Name=SCHEMA)["Database"]
    assert database["LocationUri"] == loader.url.removesuffix("orders/")
    table = loader.glue_table()
    assert table["TableType"] == "EXTERNAL_TABLE"
    assert table["Parameters"] == {
        "EXTERNAL": "TRUE",
        "classification": "parquet",
        "lakeload.created-by": "shop",
        "lakeload.partition-strategy": "HOUR",
    }
    assert table["PartitionKeys"] == [{"Name": "lakeload_partition", "Type": "string"}]
    assert table["StorageDescriptor"]["Location"] == loader.url
    assert loader.partitions() == {"2026/11/21/10": f"{loader.url}2026/11/21/10/"}
    assert loader.query() == [
        {"id": 1, "lakeload_partition": "2026/11/21/10"},
        {"id": 2, "lakeload_partition": "2026/11/21/10"},
    ]


def test_added_columns_come_last_and_are_null_in_older_files(loader: Loader) -> None:
    loader.load("job-1", {"name": ["a"], "id": [1]}, {"name": "string", "id": "bigint"})
    same_hour: Rows = {"id": [2], "extra": [True], "name": ["b"]}
    loader.load("job-2", same_hour, {"id": "bigint", "extra": "boolean", "name": "string"})
    loader.load("job-3", {"id": [3]}, ID, synced=TEN + timedelta(hours=1))
    assert loader.columns() == [("name", "string"), ("id", "bigint"), ("extra", "boolean")]
    assert [(row["id"], row["name"], row["extra"]) for row in loader.query()] == [
        (1, "a", None),
        (2, "b", True),
        (3, None, None),
    ]
    assert len(loader.partitions()) == 2


NARROW, WIDE = {**ID, "s": "struct<a:int>"}, {**ID, "s": "struct<a:int,b:string>"}
ONE: Any = pa.struct([("a", pa.int32())])
TWO: Any = pa.struct([("a", pa.int32()), ("b", pa.string())])


def nested(number: int, kind: Any) -> pa.Table:
    value = {"a": number, "b": "x"}
    return pa.table({"id": [number], "s": pa.array([value], kind)})


def test_new_struct_fields_are_null_in_older_files_only(loader: Loader) -> None:
    """Athena reads the files of a partition with the types that the partition has."""
    allow_glue(loader.lake, [*LOAD_ACTIONS, "BatchUpdatePartition"])
    for number, hours, kind in ((1, 0, ONE), (2, 1, ONE), (3, 1, TWO), (4, 2, TWO), (5, 2, ONE)):
        # As a load writes it: with the fields that the table has.
        types = NARROW if number < 3 else WIDE
        rows = nested(number, kind)
        loader.load(f"job-{number}", rows, types, synced=TEN + timedelta(hours=hours))

    assert loader.columns() == [*WIDE.items()]
    assert [(row["id"], row["s"]["b"]) for row in loader.query()] == [
        (1, None),
        (2, None),
        (3, "x"),
        (4, "x"),
        (5, None),
    ]
    glue = glue_of(loader.lake)
    partitions = glue.get_partitions(DatabaseName=SCHEMA, TableName="orders")["Partitions"]
    kinds = {one["Values"][0]: one["StorageDescriptor"]["Columns"][1]["Type"] for one in partitions}
    assert kinds == {
        "2026/11/21/10": "struct<a:int>",
        "2026/11/21/11": "struct<a:int,b:string>",
        "2026/11/21/12": "struct<a:int,b:string>",
    }


def test_a_partition_that_may_not_be_changed_is_reported(loader: Loader) -> None:
    loader.load("job-1", nested(1, ONE), NARROW)

    done = loader.load("job-2", nested(2, TWO), WIDE)

    assert done.catalog_error is not None
    assert "changing the partition `2026/11/21/10`" in done.catalog_error.message
    assert "allow `glue:BatchUpdatePartition` on" in (done.catalog_error.hint or "")
    assert loader.cataloged() == [1]
    allow_glue(loader.lake, [*LOAD_ACTIONS, "BatchUpdatePartition"])
    assert loader.load("job-3", nested(3, TWO), WIDE).catalog_error is None
    assert loader.cataloged() == [1, 2, 3]
    assert [row["s"]["b"] for row in loader.query()] == [None, "x", "x"]


STRATEGIES: dict[PartitionStrategy, list[str | None]] = {
    "DAY": ["2026/11/21", "2026/11/22"],
    "HOUR": ["2026/11/21/10", "2026/11/22/10"],
    "SYNC_ID": ["job-1", "job-2"],
    "NONE": [None, None],
}


def test_every_strategy_shows_every_row_once(loader: Loader) -> None:
    for strategy, partitions in STRATEGIES.items():
        parquet = ParquetSpec(update_glue_catalog=True, partition_strategy=strategy)
        one = loader.again(parquet=parquet, table=f"by_{strategy.lower()}")
        for number, job in enumerate(("job-1", "job-2")):
            one.load(job, {"id": [number]}, ID, synced=TEN + timedelta(days=number))
        assert [row.get("lakeload_partition") for row in one.query()] == partitions
        assert [row["id"] for row in one.query()] == [0, 1]


def test_projected_partitions_are_found_and_none_is_registered(loader: Loader) -> None:
    projected = ParquetSpec(
        update_glue_catalog=True, partition_strategy="HOUR", partition_projection=True
    )
    by_hour = loader.again(parquet=projected)
    by_hour.load("job-2", {"id": [2]}, ID, synced=TEN + timedelta(hours=30))
    now = TEN + timedelta(days=3)
    assert by_hour.glue_table()["Parameters"]["projection.lakeload_partition.range"] == (
        "2026/11/22/16,NOW"
    )
    # An older job that comes late moves the beginning back, a newer one leaves it.
    by_hour.load("job-1", {"id": [1]}, ID, synced=TEN)
    by_hour.load("job-3", {"id": [3]}, BOTH | ID, synced=TEN + timedelta(hours=40))
    assert [row["lakeload_partition"] for row in by_hour.query(now=now)] == [
        "2026/11/21/10",
        "2026/11/22/16",
        "2026/11/23/02",
    ]
    assert by_hour.partitions() == {}

    by_day = loader.again(parquet=replace(projected, partition_strategy="DAY"), table="by_day")
    by_day.load("job-4", {"id": [4]}, ID)
    assert [row["lakeload_partition"] for row in by_day.query(now=now)] == ["2026/11/21"]

    by_job = loader.again(parquet=replace(projected, partition_strategy="SYNC_ID"), table="by_job")
    by_job.load("job-5", {"id": [5]}, ID)
    assert by_job.query(injected=["job-5", "job-6"]) == [{"id": 5, "lakeload_partition": "job-5"}]


def test_a_type_of_every_rule_is_read_back(loader: Loader) -> None:
    instant = datetime(2026, 11, 21, 10, 0, 0, 123456)
    inner: Any = pa.struct([("at", pa.timestamp("us")), ("d", pa.decimal128(10, 2))])
    outer: Any = pa.struct([("a", pa.int32()), ("b", inner)])
    element: Any = pa.struct([("x", pa.int64())])
    samples: dict[str, tuple[str, Any, Any]] = {
        "boolean": ("boolean", pa.bool_(), True),
        "byte": ("tinyint", pa.int8(), -1),
        "short": ("smallint", pa.int16(), 300),
        "integer": ("int", pa.int32(), 70_000),
        "long": ("bigint", pa.int64(), 2**40),
        "float": ("float", pa.float32(), 0.5),
        "double": ("double", pa.float64(), 0.1),
        "decimal": ("decimal(38,6)", pa.decimal128(38, 6), Decimal("1.500000")),
        "string": ("string", pa.string(), "crème"),
        "binary": ("binary", pa.binary(), b"\x00\xff"),
        "date": ("date", pa.date32(), instant.date()),
        "timestamp": ("timestamp", pa.timestamp("us", "UTC"), instant.replace(tzinfo=UTC)),
        "timestamp_ntz": ("timestamp_ntz", pa.timestamp("us"), instant),
        "struct": (
            "struct<a:int,b:struct<at:timestamp_ntz,d:decimal(10,2)>>",
            outer,
            {"a": 1, "b": {"at": instant, "d": Decimal("2.50")}},
        ),
        "array": ("array<struct<x:bigint>>", pa.list_(element), [{"x": 1}]),
        "map": ("map<string,array<date>>", pa.map_(pa.string(), pa.list_(pa.date32())), []),
    }
    kept = {rule.spark for rule in TYPE_RULES if rule.written in ("AS_IS", "NESTED")}
    assert set(samples) == kept, "every type that is written as itself has a sample here"
    fields = [pa.field("id", pa.int64()), *(pa.field(n, s[1]) for n, s in samples.items())]
    row = {"id": 1} | {name: value for name, (_, _, value) in samples.items()}
    rows = pa.Table.from_pylist([row], pa.schema(fields))
    done = loader.load("job-1", rows, ID | {name: s[0] for name, s in samples.items()})
    assert done.catalog_error is None
    expected = row | {"timestamp": instant, "lakeload_partition": "2026/11/21/10"}
    assert loader.query() == [expected]


def test_athena_model_rejects_what_athena_rejects(loader: Loader) -> None:
    loader.load("job-1", {"id": [1]}, ID)
    glue = glue_of(loader.lake)
    table = loader.glue_table()
    storage = table["StorageDescriptor"]
    storage["Columns"] = [{"Name": "id", "Type": "int"}]
    changed = {"Name": "orders", "TableType": "EXTERNAL_TABLE", "StorageDescriptor": storage}
    glue.update_table(DatabaseName=SCHEMA, TableInput=changed)  # type: ignore[arg-type]
    with pytest.raises(HiveError, match="HIVE_PARTITION_SCHEMA_MISMATCH"):
        loader.query()
    glue.delete_partition(
        DatabaseName=SCHEMA, TableName="orders", PartitionValues=["2026/11/21/10"]
    )
    unpartitioned = {**changed, "PartitionKeys": []}
    glue.update_table(DatabaseName=SCHEMA, TableInput=unpartitioned)  # type: ignore[arg-type]
    with pytest.raises(HiveError, match="HIVE_BAD_DATA"):
        loader.query()


def test_a_load_without_rows_makes_no_table_and_later_no_partition(loader: Loader) -> None:
    assert loader.load("job-0", {"id": []}, ID).catalog_error is None
    databases = glue_of(loader.lake).get_databases()["DatabaseList"]
    assert loader.target.database not in {database["Name"] for database in databases}
    loader.load("job-1", {"id": [1]}, ID)
    loader.load("job-2", {"id": []}, ID, synced=TEN + timedelta(hours=5))
    assert list(loader.partitions()) == ["2026/11/21/10"]
    assert loader.cataloged() == [1, 2, 3]
