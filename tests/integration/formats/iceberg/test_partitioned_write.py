"""Partitioned tables that tasks write: the same partitions as Spark's writer, for every transform
and type that tasks take."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeload_jobs.contract.spec import ColumnsSpec, FilesInput, PartitionField
from lakeload_jobs.formats.iceberg.load.transforms import by_partition, transformed
from lakeload_jobs.formats.iceberg.rules.partitions import parse_partition_field
from tests.integration.formats.iceberg.conftest import Loads
from tests.integration.formats.iceberg.test_direct_write import described

SPARKS = {"write.distribution-mode": "range"}
"""Spark writes such tables."""

INTEGERS = [0, 1, -1, 7, -7, 34, 2**31 - 1, -(2**31), None]
LONGS = [*INTEGERS[:-3], 2**63 - 1, -(2**63), None]
MOMENTS = [
    datetime.fromisoformat(text) if text else None
    for text in (
        *("0001-01-01", "1582-10-04T23:00", "1969-12-31T23:59:59.999999", "1970-01-01"),
        *("1970-01-01T00:59", "2024-02-29T12:00", "", "9999-12-31T23:00", "1968-03-01"),
    )
]


def _decimals(texts: str) -> list[Decimal | None]:
    return [*map(Decimal, texts.split()), None]


TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "flag": (pa.bool_(), [True, False, None, True, False, True, False, None, True]),
    "small": (pa.int32(), INTEGERS),
    "large": (pa.int64(), LONGS),
    "text": (pa.string(), ["", "a/b=c %", "é" * 5, "東🎁x", "null", None, "a\\b\n", "~*", " "]),
    "raw": (pa.binary(), [b"", b"\x00", b"\xff" * 5, None, b"a", b"b", b"cc", b"d", b"e"]),
    "money": (
        pa.decimal128(9, 2),
        _decimals("0.00 -0.01 1.27 -1.28 1.28 -1234567.89 9999999.99 -9999999.99"),
    ),
    "wide": (
        pa.decimal128(38, 10),
        _decimals("1E27 -1E27 0 1E-10 -1E-10 1180591620717411303424 -1180591620717411303424 12.8"),
    ),
    "day": (pa.date32(), [moment and moment.date() for moment in MOMENTS]),
    "local": (pa.timestamp("us"), MOMENTS),
    "at": (
        pa.timestamp("us", "UTC"),
        [moment and moment.replace(tzinfo=UTC) for moment in MOMENTS],
    ),
}
FIELDS = [
    *("flag", "small", "large", "text", "money", "wide", "day"),
    *(f"bucket(7, {name})" for name in TYPES if name != "flag"),
    *("truncate(10, small)", "truncate(10, large)", "truncate(2, text)"),
    *(f"{unit}({name})" for unit in ("year", "month", "day") for name in ("day", "local", "at")),
    *("hour(local)", "hour(at)"),
]


def _rows() -> pa.Table:
    columns = {name: pa.array(values, kind) for name, (kind, values) in TYPES.items()}
    return pa.table({"id": list(range(9)), **columns})


def test_transforms_are_icebergs(loads: Loads, tmp_path: Path) -> None:
    """All in one statement: Spark asks Iceberg's own functions."""
    # A load sets the catalog up.
    loads.loaded(loads.table(loads.file([{"id": 1}])))
    rows = _rows()
    pq.write_table(rows, tmp_path / "values.parquet")
    fields = [parse_partition_field(text) for text in FIELDS]
    others = [field for field in fields if field.transform != "identity"]
    asked = [_function(field) for field in others]
    frame = loads.spark.read.parquet(str(tmp_path / "values.parquet")).orderBy("id")
    expected = frame.selectExpr(*(f"{one} AS c{n}" for n, one in enumerate(asked))).collect()

    batch = rows.combine_chunks().to_batches()[0]
    for number, field in enumerate(others):
        found = transformed(batch.column(field.column), field).to_pylist()
        wanted = [_days(row[number]) for row in expected]
        assert found == wanted, asked[number]


def _function(field: PartitionField) -> str:
    width = f"{field.width}, " if field.width else ""
    plural = "" if field.width else "s"
    return f"lake.system.{field.transform}{plural}({width}{field.column})"


def _days(value: Any) -> Any:
    return value.toordinal() - 719_163 if isinstance(value, date) else value


def test_rows_of_many_fields_are_grouped_by_all_of_them() -> None:
    batch = _rows().combine_chunks().to_batches()[0]
    fields = [parse_partition_field(text) for text in FIELDS]

    found = list(by_partition(batch, fields))

    assert sum(rows.num_rows for _, rows in found) == batch.num_rows
    assert len({key for key, _ in found}) == len(found)
    flags = list(by_partition(batch, [parse_partition_field("flag")]))
    assert {key: rows.column("id").to_pylist() for key, rows in flags} == {
        "[true]": [0, 3, 5, 8],
        "[false]": [1, 4, 6],
        "[null]": [2, 7],
    }


@pytest.mark.parametrize(
    "fields",
    [
        ["bucket(4, id)", "day(at)"],
        ["flag", "small", "text", "money", "wide", "day"],
        ["truncate(2, text)", "truncate(10, large)", "year(local)", "hour(at)", "month(day)"],
    ],
    ids=["usual", "identity", "transforms"],
)
def test_partitions_and_metrics_are_those_of_sparks_writer(
    loads: Loads, tmp_path: Path, fields: Sequence[str]
) -> None:
    path = tmp_path / "values.parquet"
    pq.write_table(_rows(), path)
    partition_by = tuple(map(parse_partition_field, fields))
    own = loads.table(str(path), name="own", partition_by=partition_by)
    sparks = loads.table(
        str(path), name="sparks", partition_by=partition_by, table_properties=SPARKS
    )

    by_tasks = loads.loaded(own, job_id="job")
    by_spark = loads.loaded(sparks, job_id="job")

    assert (by_tasks.writer, by_tasks.index) == ("direct", "dense")
    assert by_spark.writer == "spark"
    assert _described(loads, "own") == _described(loads, "sparks")
    assert repr(loads.rows("own")) == repr(loads.rows("sparks"))


def _described(loads: Loads, name: str) -> list[str]:
    return sorted(json.dumps(one, sort_keys=True) for one in described(loads, name))


def test_tables_of_both_writers_are_one_and_are_overwritten(loads: Loads) -> None:
    rows = [{"id": n, "name": f"n{n % 3}"} for n in range(60)]
    partition_by = (parse_partition_field("name"),)
    own = loads.table(loads.file(rows[:30]), partition_by=partition_by)
    assert loads.loaded(own).writer == "direct"
    name, setting = f"lake.`{loads.schema}`.`orders`", "write.distribution-mode"
    loads.spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('{setting}'='range')")
    again = loads.table(loads.file(rows[30:]), partition_by=partition_by)
    assert loads.loaded(again).writer == "spark"
    loads.spark.sql(f"DELETE FROM {name} WHERE id % 10 = 3")
    loads.spark.sql(f"UPDATE {name} SET name = 'u' WHERE id = 4")
    found = [(row["id"], row["name"]) for row in loads.rows()]
    assert found == [(n, "u" if n == 4 else f"n{n % 3}") for n in range(60) if n % 10 != 3]
    loads.spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('{setting}')")

    result = loads.loaded(
        loads.table(loads.file(rows[:2]), partition_by=partition_by, mode="OVERWRITE")
    )

    assert (result.writer, len(result.files), len(loads.rows())) == ("direct", 2, 2)


def test_bad_values_that_become_null_are_counted_once(loads: Loads, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,n\n" + "".join(f"{n},{'x' if n % 10 == 0 else n}\n" for n in range(30)))
    table = loads.table(
        input=FilesInput("CSV", (str(path),), {"header": "true"}),
        columns=ColumnsSpec(types={"id": "int", "n": "int"}),
        partition_by=(parse_partition_field("truncate(10, n)"),),
    )

    result = loads.loaded(table, on_bad_value="NULL")

    assert (result.writer, len(result.files)) == ("direct", 4)
    assert any(warning.startswith("3 values or records") for warning in result.warnings)
    assert [row["n"] for row in loads.rows()] == [n if n % 10 else None for n in range(30)]
