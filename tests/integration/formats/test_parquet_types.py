"""Types of Parquet that Spark's reader does not know, and files of other columns: both formats load
the same values, which pyarrow reads back."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from lakeload_jobs.contract.spec import ColumnsSpec
from tests.inputs import files_of
from tests.integration.formats.worlds import World, load

UUID = uuid.UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")
INNER = pa.struct([("t", pa.list_(pa.time64("us"))), ("n", pa.uint64())])


def written(world: World, name: str, columns: dict[str, Any], **options: Any) -> str:
    path = Path(world.folder(), name)
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), path, **options)
    return str(path)


def loaded(world: World) -> list[dict[str, Any]]:
    """Return the rows in the order of the source, without tracking columns."""
    rows = sorted(world.rows(), key=lambda row: row["_supa_index"])
    return [{k: v for k, v in row.items() if not k.startswith("_supa_")} for row in rows]


def test_types_that_spark_does_not_read_are_loaded_by_arrow(
    world: World, through_spark: set[str]
) -> None:
    path = written(
        world,
        "a.parquet",
        {
            "ns": pa.array([1_000, None], pa.timestamp("ns")),
            "instant": pa.array([2_000, None], pa.timestamp("ns", "UTC")),
            "t": pa.array([time(1, 2, 3, 4), None], pa.time64("us")),
            "u": pa.array([UUID.bytes, None], pa.uuid()),
            "half": pa.array([1.5, None], pa.float16()),
            "wide": pa.array([Decimal("1" * 40), None], pa.decimal256(40, 0)),
            "s": pa.array([{"t": [time(5), None], "n": 2**64 - 1}, None], INNER),
        },
    )
    duckdb.sql(
        f"copy (select interval '3 days' i, uuid '{UUID}' u) "
        f"to '{world.folder()}/b.parquet' (format parquet)"
    )

    result = load(world, world.table(path, f"{world.folder()}/b.parquet"), nested="NATIVE")

    assert (result.error, result.reader, result.index) == (None, "direct", "dense")
    assert through_spark == set()
    nothing = dict.fromkeys(("ns", "instant", "t", "u", "half", "wide", "s", "i"))
    first, empty, last = loaded(world)
    assert first == nothing | {
        "instant": datetime(1970, 1, 1, 0, 0, 0, 2, tzinfo=UTC),
        "ns": datetime(1970, 1, 1, 0, 0, 0, 1),
        "t": "01:02:03.000004",
        "u": str(UUID),
        "half": 1.5,
        "wide": "1" * 40,
        "s": {"t": ["05:00:00.000000", None], "n": Decimal(2**64 - 1)},
    }
    assert empty == nothing
    assert last == nothing | {"i": "P3D", "u": str(UUID)}


def test_conditions_casts_and_json_text_use_values_read_by_arrow(
    world: World, through_spark: set[str]
) -> None:
    path = written(
        world,
        "a.parquet",
        {
            "id": pa.array([1, 2, 3], pa.int32()),
            "t": pa.array([time(1), time(2), time(3)], pa.time64("us")),
            "s": pa.array([{"t": time(4)}] * 3, pa.struct([("t", pa.time64("ns"))])),
            "hidden": pa.array([1_000, 2_000, 1], pa.timestamp("ns")),
        },
        row_group_size=1,
    )
    table = world.table(
        path,
        where="t < '03:00'",
        deleted_when="hidden > timestamp_ntz'1970-01-01 00:00:00.000001'",
        columns=ColumnsSpec(exclude=("hidden",), types={"id": "string"}),
    )

    refused = load(world, table, nested="JSON")
    cut = replace(files_of(table), options={"on_loss": "TRUNCATE"})
    result = load(world, replace(table, input=cut), nested="JSON")

    assert refused.error is not None
    assert f"reading `{path}`, row group 3, row 1: column `hidden`" in refused.error.message
    assert (result.error, result.reader, result.rows) == (None, "direct", 2)
    assert through_spark == {"orders"}
    # The cast is Arrow's; Spark knows the condition.
    assert loaded(world) == [
        {"id": "1", "t": "01:00:00.000000", "s": '{"t":"04:00:00.000000"}'},
        {"id": "2", "t": "02:00:00.000000", "s": '{"t":"04:00:00.000000"}'},
    ]
    assert [row["_supa_deleted"] for row in world.rows()] == [False, True]


def test_files_with_other_columns_and_wider_types_are_merged(world: World) -> None:
    paths = [
        written(world, "1.parquet", {"id": pa.array([1], pa.int32()), "a": ["x"]}),
        written(world, "2.parquet", {"b": [1.5], "id": pa.array([2**40])}),
        written(world, "3.parquet", {"id": pa.array([3], pa.int8())}),
    ]

    first = load(world, world.table(*paths))
    second = load(world, world.table(paths[0]))
    apart = written(world, "4.parquet", {"id": [b"x"]})
    refused = load(world, world.table(paths[0], apart))

    assert (first.error, first.rows, second.error, second.rows) == (None, 3, None, 1)
    assert sorted((row["id"], row["a"], row.get("b")) for row in loaded(world)) == [
        (1, "x", None),
        (1, "x", None),
        (3, None, None),
        (2**40, None, 1.5),
    ]
    assert refused.error is not None
    assert refused.error.message == (
        f"the column `id` is int in `{paths[0]}` and binary in `{apart}`"
    )


def test_bad_value_with_null_setting_is_null_and_counted(world: World) -> None:
    path = written(
        world,
        "a.parquet",
        {"ns": pa.array([1_000, 1], pa.timestamp("ns")), "n": ["7", "x"], "id": [1, 2]},
    )
    table = world.table(path, columns=ColumnsSpec(types={"n": "int"}))

    refused = load(
        world, world.table(path, columns=ColumnsSpec(exclude=("ns",), types={"n": "int"}))
    )
    result = load(world, table, on_bad_value="NULL")

    assert refused.error is not None
    message = f"reading `{path}`, row group 1, row 2: column `n`: the value `x` is no int"
    assert message in refused.error.message
    assert (result.error, result.rows) == (None, 2)
    assert any(warning.startswith("2 values") for warning in result.warnings)
    assert loaded(world) == [
        {"ns": datetime(1970, 1, 1, 0, 0, 0, 1), "n": 7, "id": 1},
        {"ns": None, "n": None, "id": 2},
    ]


def test_load_without_values_or_fields_keeps_the_table_types(world: World) -> None:
    wide = pa.struct([("a", pa.int64()), ("b", pa.string())])
    day1 = written(
        world,
        "1.parquet",
        {"n": [2**40], "t": ["x"], "s": pa.array([{"a": 1, "b": "y"}], wide)},
    )
    day2 = written(
        world,
        "2.parquet",
        {
            "n": pa.array([7], pa.int32()),
            "t": pa.nulls(1),
            "s": pa.array([{"a": 2}], pa.struct([("a", pa.int32())])),
        },
    )

    first = load(world, world.table(day1), nested="NATIVE")
    second = load(world, world.table(day2), nested="NATIVE")

    assert (first.error, second.error) == (None, None)
    assert sorted(loaded(world), key=lambda row: row["n"]) == [
        {"n": 7, "t": None, "s": {"a": 2, "b": None}},
        {"n": 2**40, "t": "x", "s": {"a": 1, "b": "y"}},
    ]
