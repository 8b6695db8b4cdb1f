"""The queries that engines share, run in DuckDB over Parquet files of two jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeload.policy.recipes import Engine, RecipeRequest, recipes
from lakeload_jobs.contract.spec import CatalogSpec, DestinationSpec
from lakeload_jobs.core.layout import partition_path
from lakeload_jobs.rows.tracking import add_tracking
from tests.unit.policy.recipe_cases import HOURS, NOW, ORDERS, PLAIN, with_catalog

FIRST = datetime(2026, 11, 21, 13, 5, tzinfo=UTC)
SECOND = datetime(2026, 11, 22, 0, 0, tzinfo=UTC)
TYPES: dict[str, pa.DataType] = {"id": pa.int64(), "name": pa.string(), "gone": pa.bool_()}
SCHEMA = pa.schema(TYPES)

DESTINATIONS: dict[Engine, DestinationSpec] = {
    "athena": HOURS,
    "duckdb": PLAIN,
    "snowflake": with_catalog(CatalogSpec("GLUE")),
}

Row = tuple[int, str, bool]


def write(folder: Path, job_id: str, synced: datetime, rows: Sequence[Row]) -> None:
    """Write one file of a job, with the tracking columns that a load adds."""
    data = dict(zip(SCHEMA.names, map(list, zip(*rows, strict=True)), strict=True))
    batch = add_tracking(
        pa.RecordBatch.from_pydict(data, schema=SCHEMA),
        first_index=1,
        synced=synced,
        job_id=job_id,
        key_columns=["id"],
        deleted="gone",
    )
    place = folder / partition_path("HOUR", synced, job_id)
    place.mkdir(parents=True)
    table = pa.Table.from_batches([batch])
    pq.write_table(table, place / f"part-{job_id}-00000.gzip.parquet", compression="gzip")


@pytest.fixture
def lake(tmp_path: Path) -> duckdb.DuckDBPyConnection:
    """A database with the view of the files of two jobs. Job b: 1 changes twice, 2 is deleted,
    4 is new."""
    write(tmp_path, "a", FIRST, [(1, "old", False), (2, "old", False), (3, "kept", False)])
    write(
        tmp_path,
        "b",
        SECOND,
        [(1, "newer", False), (2, "old", True), (4, "added", False), (1, "newest", False)],
    )
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    shown = recipes(PLAIN, "duckdb", RecipeRequest(NOW, tables=(ORDERS,)))
    (view,) = (one.text for one in shown if one.title.endswith("a view of its files"))
    place = f"s3://{PLAIN.bucket}/{PLAIN.prefix}/{ORDERS.schema}/{ORDERS.table}/"
    assert place in view
    view = view.replace(place, f"{tmp_path}/")
    # Athena has the partition as a column.
    key = r"regexp_extract(filename, '\d{4}/\d\d/\d\d/\d\d') AS lakeload_partition"
    view = view.replace("SELECT *", f"SELECT * EXCLUDE (filename), {key}")
    connection.execute(
        view.replace("union_by_name = true", "union_by_name = true, filename = true")
    )
    return connection


def ask(lake: duckdb.DuckDBPyConnection, engine: Engine, title: str) -> list[dict[str, Any]]:
    """Run the query of this title as it is written for the engine."""
    destination = DESTINATIONS[engine]
    found = recipes(destination, engine, RecipeRequest(NOW, tables=(ORDERS,)))
    (text,) = (snippet.text for snippet in found if snippet.title.endswith(title))
    rows: list[dict[str, Any]] = lake.sql(text).to_arrow_table().to_pylist()
    return rows


@pytest.mark.parametrize("engine", DESTINATIONS)
def test_the_newest_row_of_each_key_is_found_and_no_deleted_one(
    lake: duckdb.DuckDBPyConnection, engine: Engine
) -> None:
    rows = ask(lake, engine, "the newest version of each row")
    assert sorted((row["id"], row["name"]) for row in rows) == [
        (1, "newest"),
        (3, "kept"),
        (4, "added"),
    ]


@pytest.mark.parametrize("engine", DESTINATIONS)
def test_the_latest_sync_is_all_rows_of_the_last_job(
    lake: duckdb.DuckDBPyConnection, engine: Engine
) -> None:
    rows = ask(lake, engine, "the rows of the latest sync")
    assert sorted((row["id"], row["_supa_job_id"]) for row in rows) == [
        (1, "b"),
        (1, "b"),
        (2, "b"),
        (4, "b"),
    ]


@pytest.mark.parametrize("engine", DESTINATIONS)
def test_jobs_are_counted_the_latest_first(lake: duckdb.DuckDBPyConnection, engine: Engine) -> None:
    rows = ask(lake, engine, "how many rows each job brought")
    assert [tuple(row.values()) for row in rows] == [("b", 4, SECOND), ("a", 3, FIRST)]


def test_query_of_a_day_returns_its_partitions(lake: duckdb.DuckDBPyConnection) -> None:
    rows = ask(lake, "athena", "the loads of one day")
    assert {row["_supa_job_id"] for row in rows} == {"a"}
    assert len(rows) == 3


def test_the_columns_of_the_files_are_described(lake: duckdb.DuckDBPyConnection) -> None:
    rows = ask(lake, "duckdb", "its columns")
    types = {row["column_name"]: row["column_type"] for row in rows}
    assert types["id"] == "BIGINT"
    assert types["_supa_synced"] == "TIMESTAMP WITH TIME ZONE"
