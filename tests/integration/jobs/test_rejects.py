"""`on_bad_value: QUARANTINE`: good records are loaded, and the others lie in the side table."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeload_jobs.contract.result import TableResult
from lakeload_jobs.contract.spec import (
    ColumnsSpec,
    EndpointsSpec,
    ParquetSpec,
    RejectLimit,
    TableSpec,
)
from lakeload_jobs.rows.rejects import SIDE_SCHEMA
from tests import athena
from tests.integration.jobs.conftest import Job
from tests.integration.jobs.test_incremental import csv, records
from tests.integration.jobs.test_incremental import table as incremental
from tests.servers.glue import allow_glue, glue_of

ALL = RejectLimit(percent=100)
HALF = RejectLimit(percent=50)
NUMBERS = ColumnsSpec(types={"n": "bigint"})


def load(job: Job, table: TableSpec, **changes: Any) -> TableResult:
    given = {"on_bad_value": "QUARANTINE", "max_rejected": ALL, **changes}
    result = job.load_one(table, **given)
    assert result.error is None, result.error
    return result


def side_keys(job: Job) -> list[str]:
    return [key for key in job.lake.data_keys() if "/orders_rejected/" in key]


def side_rows(job: Job) -> list[dict[str, Any]]:
    """Return the rows of the side table in the order of the source, without what is null."""
    tables = [pq.read_table(pa.BufferReader(job.lake.read(key))) for key in side_keys(job)]
    assert all(table.schema.names == SIDE_SCHEMA.names for table in tables)
    rows = pa.concat_tables(tables).sort_by("_supa_index").to_pylist()
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def test_good_records_are_loaded_and_bad_ones_are_in_the_side_table(job: Job) -> None:
    path = job.file("a.csv", "id,n\n1,10\n2\n3,x\n4,40\n")
    spec = job.spec(job.table(path, columns=NUMBERS), on_bad_value="QUARANTINE", max_rejected=HALF)

    (result,) = job.run(spec).tables

    assert (result.status, result.rows, result.rejected) == ("LOADED", 2, 2)
    assert result.index == "sparse"
    assert job.rows(result)["_supa_index"].to_pylist() == [1, 4]
    assert job.values(result) == [{"id": 1, "n": 10}, {"id": 4, "n": 40}]
    common = {
        "source_file": path,
        "source_columns": '["id", "n"]',
        "attempt_id": spec.attempt_id,
        "_supa_job_id": spec.job_id,
        "_supa_synced": spec.synced,
    }
    first, second = side_rows(job)
    assert first == common | {
        "source_line": 3,
        "reason": "it has 1 value, and 2 are expected",
        "raw_record": "2",
        "_supa_index": 2,
    }
    assert second.pop("reason").startswith("`x` is not a whole number")
    assert second == common | {
        "source_line": 4,
        "column_name": "n",
        "column_value": "x",
        "raw_record": "3,x",
        "_supa_index": 3,
    }
    said = " ".join(result.warnings)
    assert "2 of 4 records were set aside in `shop.orders_rejected`, such as: reading `" in said
    (record,) = records(job)
    assert record["format"] == 2
    assert [file["key"] for file in record["rejected"]["files"]] == side_keys(job)


@pytest.mark.parametrize("reader", ["AUTO", "JVM"])
def test_json_records_are_rejected_into_the_side_table(job: Job, reader: str) -> None:
    lines = ['{"n": 1, "s": {"a": [1]}}', '{"n": "x", "s": {"a": []}}', '{"n": 3,}', '{"n": 4}']
    path = job.file("a.ndjson", "\n".join(lines))
    table = job.table(path, file_format="NDJSON", columns=NUMBERS)

    result = load(job, table, reader=reader)

    assert (result.rows, result.rejected) == (2, 2)
    assert job.values(result) == [{"n": 1, "s": {"a": [1]}}, {"n": 4, "s": None}]
    first, second = side_rows(job)
    assert (first["source_line"], first["column_name"]) == (2, "n")
    assert (first["column_value"], first["raw_record"]) == ('"x"', lines[1])
    assert (second["source_line"], second["raw_record"]) == (3, lines[2])
    assert second["reason"].startswith("it is not JSON: ")


def test_quarantine_load_without_bad_records_equals_a_plain_load(job: Job) -> None:
    result = load(job, job.table(job.file("a.csv", "id,n\n1,10\n"), columns=NUMBERS))

    assert (result.rejected, result.index) == (0, "dense")
    (record,) = records(job)
    assert record["format"] == 1
    assert "rejected" not in record
    assert side_keys(job) == []


def test_more_rejects_than_allowed_fail_and_leave_nothing(job: Job) -> None:
    path = job.file("a.csv", "id,n\n" + "1,x\n" * 12 + "1,2\n" * 12)

    result = job.load_one(
        job.table(path, columns=NUMBERS), on_bad_value="QUARANTINE", max_rejected=RejectLimit(11)
    )

    assert result.error is not None
    assert result.error.type == "TooManyRejected"
    assert "12 of 24 records (50 %) cannot be read, and `max_rejected` is 11" in (
        result.error.message
    )
    assert result.error.message.count("column `n`: `x` is not a whole number") == 10
    assert result.error.message.endswith("; and 2 more")
    assert job.lake.data_keys() == job.lake.uploads_left() == []
    assert records(job) == []


def test_all_records_may_be_bad(job: Job) -> None:
    result = load(job, job.table(job.file("a.csv", "id,n\n1,x\n"), columns=NUMBERS))

    assert (result.rows, result.rejected, result.files) == (0, 1, ())
    assert len(side_rows(job)) == 1


def test_condition_is_not_evaluated_on_a_rejected_record(job: Job) -> None:
    path = job.file("a.csv", "id,n\n1,10\n2\n3,x\n4,40\n")

    result = load(job, job.table(path, columns=NUMBERS, where="n > 20"))

    assert job.values(result) == [{"id": 4, "n": 40}]
    assert [row["raw_record"] for row in side_rows(job)] == ["2", "3,x"]


def test_a_poison_file_does_not_block_the_files_behind_it(job: Job) -> None:
    orders = incremental(job, columns=NUMBERS)
    job.file("a.csv", "n\nx\ny\n")
    first = load(job, orders)
    job.file("b.csv", csv(7))
    second = load(job, orders)
    third = load(job, orders)

    assert [(one.rows, one.rejected) for one in (first, second)] == [(0, 2), (1, 0)]
    assert third.status == "NO_OP"
    assert job.values(second) == [{"n": 7}]


def test_rerun_of_a_job_reports_its_rejected_records(job: Job) -> None:
    table = job.table(job.file("a.csv", "id,n\n1,10\n2\n"))
    load(job, table, job_id="twice")

    again = load(job, table, job_id="twice")

    assert (again.status, again.rows, again.rejected) == ("NO_OP", 1, 1)
    assert len(side_keys(job)) == 1


def test_a_cast_that_does_not_fit_rejects_the_row(job: Job) -> None:
    path = job.folder / "a.parquet"
    rows = pa.table(
        {
            "id": [1, 2, 3],
            "n": ["10", "x", "30"],
            "at": pa.array([1, 2, 3], pa.timestamp("us", tz="UTC")),
            "raw": [b"a", b"\xff", None],
        }
    )
    pq.write_table(rows, path, row_group_size=1)

    result = load(job, job.table(str(path), file_format="PARQUET", columns=NUMBERS))

    assert [(row["id"], row["n"]) for row in job.values(result)] == [(1, 10), (3, 30)]
    (row,) = side_rows(job)
    assert (row["source_file"], row["row_group"], row["row_number"]) == (str(path), 2, 1)
    assert (row["column_name"], row["column_value"]) == ("n", "x")
    assert row["reason"] == "the value `x` is no bigint"
    raw = json.loads(row["raw_record"])
    assert raw == {"id": 2, "n": "x", "at": "1970-01-01T00:00:00.000002Z", "raw": "/w=="}
    assert row["_supa_index"] == 2


def test_a_value_that_loses_digits_rejects_the_row(job: Job) -> None:
    path = job.folder / "a.parquet"
    instants: Any = pa.array([1_000, 1_001, None], pa.timestamp("ns"))
    pq.write_table(pa.table({"id": [1, 2, 3], "at": instants}), path)

    result = load(job, job.table(str(path), file_format="PARQUET"))

    assert result.reader == "direct"
    assert job.values(result) == [
        {"id": 1, "at": dt.datetime(1970, 1, 1, 0, 0, 0, 1)},
        {"id": 3, "at": None},
    ]
    (row,) = side_rows(job)
    assert json.loads(row["raw_record"]) == {"id": 2, "at": "1970-01-01 00:00:00.000001001"}
    assert row["column_name"] == "at"


def test_side_table_name_of_an_existing_table_is_rejected(job: Job) -> None:
    other = job.table(job.file("b.csv", "id\n1\n"), name="orders_rejected")
    assert job.load_one(other).status == "LOADED"

    result = job.load_one(
        job.table(job.file("a.csv", "id,n\n1,10\n2\n")),
        on_bad_value="QUARANTINE",
        max_rejected=ALL,
    )

    assert result.error is not None
    assert "`orders_rejected`, which is another table" in result.error.message
    assert job.lake.uploads_left() == []
    assert len(side_keys(job)) == 1


@pytest.fixture
def glue_job(job: Job) -> Iterator[Job]:
    allow_glue(job.lake)
    yield job
    glue = glue_of(job.lake)
    for database in glue.get_databases()["DatabaseList"]:
        glue.delete_database(Name=database["Name"])


def test_glue_has_the_table_and_its_side_table(glue_job: Job) -> None:
    job, place = glue_job, glue_job.lake.server.endpoint
    destination = {
        "parquet": ParquetSpec(update_glue_catalog=True),
        "endpoints": EndpointsSpec(s3=place, sts=place, glue=place),
        "glue_database_prefix": "supaflow",
    }
    table = replace(job.table(job.file("a.csv", "id,n\n1,10\n2\n")), schema="supaflow_shop")

    result = load(job, table, destination=destination)

    assert result.status == "LOADED"
    glue, s3 = glue_of(job.lake), job.lake.server.s3
    loaded = athena.query(glue, s3, "supaflow_shop", "orders")
    aside = athena.query(glue, s3, "supaflow_shop", "orders_rejected")
    assert loaded["id"].to_pylist() == [1]
    assert aside["raw_record"].to_pylist() == ["2"]
    assert aside["_supa_index"].to_pylist() == [2]
