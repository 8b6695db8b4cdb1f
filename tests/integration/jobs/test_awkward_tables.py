"""Awkward tables: each file reads in pyarrow, DuckDB and Spark with equal rows and types."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from lakeload_jobs.contract.result import RunResult
from lakeload_jobs.contract.spec import TableSpec
from lakeload_jobs.core.names import normalize, unique_names
from tests.integration.jobs.awkward_cases import CASES, LONG, Case
from tests.integration.jobs.conftest import Job


@pytest.fixture(scope="module")
def names() -> list[str]:
    """Target names as `sync` gives them: numbered over all tables of the pipeline."""
    return unique_names([case.source for case in CASES])


def tables(job: Job, names: list[str]) -> Iterator[TableSpec]:
    for number, (case, name) in enumerate(zip(CASES, names, strict=True)):
        path = Path(job.file(f"{number}.data", b""))
        file_format = case.write(path)
        table = job.table(str(path), name=name, file_format=file_format, columns=case.columns)
        yield TableSpec(case.source, "shop", name, table.input, table.fingerprint, case.columns)


def test_awkward_table_has_equal_values_in_every_reader(job: Job, names: list[str]) -> None:
    assert len(CASES) >= 20
    result: RunResult = job.load(*tables(job, names), concurrency=4)
    assert [(t.table, t.error) for t in result.tables if t.status != "LOADED"] == []
    files = {path.parent: path for path in job.lake.download(job.folder / "lake")}
    assert len(files) == len(CASES)

    for case, name, table in zip(CASES, names, result.tables, strict=True):
        assert "/".join(table.files[0].key.split("/")[:4]) == f"data-lake/test/shop/{name}"
        path = job.folder / "lake" / table.files[0].key
        arrow = pq.read_table(path, partitioning=None)
        check_values(case, arrow)
        check_duckdb(path, arrow)
        check_spark(job.spark, path, arrow)


def check_values(case: Case, arrow: pa.Table) -> None:
    data = arrow.select([c for c in arrow.column_names if not c.startswith("_supa_")])
    if case.source == LONG:
        first, second = data.column_names
        assert (len(first), len(second)) == (255, 255)
        assert first == normalize(LONG)
        assert second.endswith("_1")
        assert [list(row.values()) for row in data.to_pylist()] == [[1, 2]]
        return
    assert data.to_pylist() == case.expected, case.source
    for column in arrow.schema:
        if pa.types.is_timestamp(column.type):
            assert column.type.unit == "us"


def check_duckdb(path: Path, arrow: pa.Table) -> None:
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    read = connection.read_parquet(str(path), hive_partitioning=False).to_arrow_table()
    assert read.column_names == arrow.column_names
    for name in arrow.column_names:
        ours, theirs = arrow.schema.field(name).type, read.schema.field(name).type
        assert same_type(ours, theirs), f"{path}: {name} is {ours} and in DuckDB {theirs}"
    assert read.to_pylist() == arrow.to_pylist()


def check_spark(spark: SparkSession, path: Path, arrow: pa.Table) -> None:
    read = spark.read.parquet(f"file:{path}").toArrow()
    assert read.column_names == arrow.column_names
    for name in arrow.column_names:
        ours, theirs = arrow.schema.field(name).type, read.schema.field(name).type
        assert same_type(ours, theirs), f"{path}: {name} is {ours} and in Spark {theirs}"
    assert read.to_pylist() == arrow.to_pylist()


def same_type(ours: pa.DataType, theirs: pa.DataType) -> bool:
    """Equal, whatever the inner fields of lists and maps are called."""
    if pa.types.is_timestamp(ours):
        return pa.types.is_timestamp(theirs) and (ours.tz is None) == (theirs.tz is None)
    if ours.num_fields:
        return ours.num_fields == theirs.num_fields and all(
            same_type(ours.field(i).type, theirs.field(i).type) for i in range(ours.num_fields)
        )
    return ours == theirs
