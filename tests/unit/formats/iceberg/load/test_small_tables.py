"""Rows of small tables: found by the ids of their columns, or left to Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeload_jobs.formats.iceberg.commits.manifests import read_list, write_list
from lakeload_jobs.formats.iceberg.commits.metadata import Json
from lakeload_jobs.formats.iceberg.load.arrow_schema import FIELD_ID
from lakeload_jobs.formats.iceberg.load.small_tables import UnreadableFiles, read_batches
from tests.unit.formats.iceberg.commits.own_table import BY_CITY, UNPARTITIONED, OwnTable, data_file

_FIELDS: Any = [("id", pa.int64()), ("city", pa.string()), ("late", pa.int32())]
COLUMNS = pa.schema(_FIELDS)


def write(table: OwnTable, name: str, rows: dict[str, list[Any]], **ids: int) -> Json:
    """Write a file whose columns have these ids, and return what a manifest says of it."""
    fields = [
        pa.field(
            column,
            pa.int32() if column == "number" else pa.array(values).type,
            metadata={FIELD_ID: str(ids[column])} if column in ids else None,
        )
        for column, values in rows.items()
    ]
    place = table.folder / f"{name}.parquet"
    pq.write_table(pa.table(rows, pa.schema(fields)), place)
    length = len(next(iter(rows.values())))
    return {**data_file(name, length, city=name), "file_path": str(place)}


def read(table: OwnTable, *cities: str) -> list[dict[str, Any]]:
    partition = ("city", lambda value: value in cities)
    batches = read_batches(table.files, table.metadata, COLUMNS, partition)
    return pa.Table.from_batches(batches, COLUMNS).to_pylist()


def test_rows_of_partitions_are_read_by_the_ids_of_columns(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path, spec=BY_CITY)
    assert read(table, "a") == []
    # The column has been renamed and widened since.
    old = write(table, "a", {"number": [1, 2], "city": ["a", "a"]}, number=1, city=2)
    table.append(old, write(table, "b", {"id": [3], "city": ["b"]}, id=1, city=2))
    table.append(write(table, "c", {"city": ["c"], "id": [4]}, city=2, id=1))
    gone = Path(str(table.folder / "b.parquet"))
    gone.unlink()
    assert read(table, "a", "c") == [
        {"id": 4, "city": "c", "late": None},
        {"id": 1, "city": "a", "late": None},
        {"id": 2, "city": "a", "late": None},
    ]


def test_files_of_an_unpartitioned_spec_are_all_read(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path, spec=UNPARTITIONED)
    table.append(write(table, "x", {"id": [1, 2], "city": ["a", "b"]}, id=1, city=2))
    assert [row["city"] for row in read(table, "a")] == ["a", "b"]


def test_what_only_spark_reads_is_left_to_it(tmp_path: Path) -> None:
    table = OwnTable.new(tmp_path, spec=BY_CITY)
    foreign = write(table, "a", {"id": [1], "city": ["a"]})
    table.append(foreign)
    with pytest.raises(UnreadableFiles, match="no field ids"):
        read(table, "a")
    Path(foreign["file_path"]).write_bytes(b"Obj\x01")
    with pytest.raises(UnreadableFiles, match="another format"):
        read(table, "a")
    snapshot = table.snapshot()
    rows = [{**row, "content": 1} for row in read_list(table.files, snapshot)]
    snapshot["manifest-list"] = write_list(
        table.files,
        table.metadata,
        rows,
        snapshot_id=snapshot["snapshot-id"],
        parent=None,
        sequence=1,
        first_row_id=None,
    )
    with pytest.raises(UnreadableFiles, match="rows are deleted"):
        read(table, "a")
