"""Each file format is read as it is written, types and mess included."""

from __future__ import annotations

import gzip
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeload_jobs.contract.spec import ColumnsSpec
from tests.integration.jobs.conftest import SYNCED, Job


def test_csv_types_are_inferred_and_every_row_is_tracked(job: Job) -> None:
    path = job.file("a.csv", 'id,name,amount,at\n1,"a, b",1.5,2026-01-02 03:04:05\n2,,,\n')

    result = job.load_one(job.table(path))

    assert (result.status, result.rows, result.error) == ("LOADED", 2, None)
    rows = job.rows(result)
    assert rows.schema.field("id").type == pa.int64()
    assert result.reader == "direct"
    assert rows.schema.field("at").type == pa.timestamp("us", "UTC")
    assert rows.drop_columns(["_supa_id", "_supa_job_id"]).to_pylist() == [
        {
            "id": 1,
            "name": "a, b",
            "amount": 1.5,
            "at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
            "_supa_synced": SYNCED,
            "_supa_deleted": False,
            "_supa_index": 1,
        },
        {
            **dict.fromkeys(("name", "amount", "at")),
            "id": 2,
            "_supa_synced": SYNCED,
            "_supa_deleted": False,
            "_supa_index": 2,
        },
    ]


def test_declared_types_override_inference(job: Job) -> None:
    path = job.file("a.csv", "zip,amount,n,day\n01234,10.10,7,2026-02-28\n")
    columns = ColumnsSpec(types={"zip": "string", "amount": "decimal(12,2)"})

    (row,) = job.values(job.load_one(job.table(path, columns=columns)))

    assert row == {
        "zip": "01234",
        "amount": Decimal("10.10"),
        "n": 7,
        "day": date(2026, 2, 28),
    }


def test_tables_of_earlier_versions_keep_their_types_and_names(job: Job) -> None:
    """Spark inferred `int`, made a number of 01234, and called columns `_c0` and `x4`."""
    types = {"_c0": "int", "n": "double", "day": "date", "zip": "int"}
    first = job.file("1.csv", "_c0,n,day,zip,x4,x5\n0,1.5,2026-01-01,1234,a,b\n")
    second = job.file("2.csv", ",n,day,zip,x,x\n1,7,2026-01-02,01234,c,d\n")
    before = job.load_one(job.table(first, columns=ColumnsSpec(types=types)))

    after = job.load_one(job.table(second))

    assert after.error is None
    assert job.rows(after).schema == job.rows(before).schema
    assert job.values(after) == [
        {"_c0": 1, "n": 7.0, "day": date(2026, 1, 2), "zip": 1234, "x4": "c", "x5": "d"}
    ]


def test_without_inference_csv_values_are_text(job: Job) -> None:
    path = job.file("a.csv", "a;b\n1;x\n")
    options = {"header": "true", "INFERSCHEMA": "false", "sep": ";"}

    assert job.values(job.load_one(job.table(path, options=options))) == [{"a": "1", "b": "x"}]


def test_csv_without_a_header_has_numbered_columns(job: Job) -> None:
    path = job.file("a.csv", "1,x\n")

    assert job.values(job.load_one(job.table(path, options={}))) == [{"_c0": 1, "_c1": "x"}]


def test_empty_text_is_null_unless_another_null_value_is_set(job: Job) -> None:
    path = job.file("a.csv", 'id,t\n1,""\n2,\n3,-\n')
    options = {"header": "true", "nullValue": "-"}

    default = job.values(job.load_one(job.table(path)))
    marked = job.values(job.load_one(job.table(path, name="marked", options=options)))

    assert [row["t"] for row in default] == [None, None, "-"]
    assert [row["t"] for row in marked] == ["", None, None]


@pytest.mark.parametrize("options", [{}, {"multiLine": "true"}, {"multiLine": "false"}])
def test_quoted_line_breaks_belong_to_one_row(job: Job, options: dict[str, str]) -> None:
    path = job.file("a.csv", 'id,t\n1,"two\nlines"\n2,x\n')
    other = job.file("b.csv", 'id,t\n3,"and\n\nthree"\n')

    result = job.load_one(job.table(path, other, options={"header": "true", **options}))

    assert [row["t"] for row in job.values(result)] == ["two\nlines", "x", "and\n\nthree"]
    assert job.rows(result)["_supa_index"].to_pylist() == [1, 2, 3]


def test_compressed_files_are_read(job: Job) -> None:
    path = job.file("a.csv.gz", gzip.compress(b"id\n1\n2\n"))

    assert job.values(job.load_one(job.table(path))) == [{"id": 1}, {"id": 2}]


@pytest.mark.parametrize(
    "name",
    ["with space.csv", "a[1].csv", "a{b}.csv", "50%25.csv", "a#b?.csv", "Größe-日本.csv", "a*.csv"],
)
def test_a_file_name_may_hold_any_character(job: Job, name: str) -> None:
    path = job.file(name, "id\n1\n")

    assert job.load_one(job.table(path)).rows == 1


@pytest.mark.parametrize("reader", ["AUTO", "JVM"])
def test_ndjson_has_one_record_a_line_with_nested_values(job: Job, reader: str) -> None:
    path = job.file(
        "a.ndjson",
        '{"id": 1, "tags": ["x", null], "at": {"la t": 1.5}}\n{"id": 2, "extra": "🚀"}\n',
    )

    rows = job.values(job.load_one(job.table(path, file_format="NDJSON"), reader=reader))

    assert rows == [
        {"at": {"la_t": 1.5}, "extra": None, "id": 1, "tags": ["x", None]},
        {"at": None, "extra": "🚀", "id": 2, "tags": None},
    ]


@pytest.mark.parametrize("reader", ["AUTO", "JVM"])
def test_tables_inferred_by_spark_from_json_take_another_load(job: Job, reader: str) -> None:
    """Its types, in alphabetical order: integers under double, absent fields, lists of nothing."""
    types = {
        "at": "struct<`Zip Code`:bigint,city:string>",
        "id": "bigint",
        "price": "double",
        "tags": "array<string>",
        "v": "string",
    }
    first = job.file("1.ndjson", '{"id": 1, "price": 1.5, "at": {"city": "x", "Zip Code": 5}}\n')
    second = job.file(
        "2.ndjson",
        '{"v": {"a": 1.10}, "price": 3, "id": 2, "at": {"city": "y"}, "tags": [7]}\n'
        '{"id": 3, "at": {"Zip Code": 7}, "tags": [], "v": 5}\n',
    )

    columns = ColumnsSpec(types=types, include=(*types,))
    job.load_one(job.table(first, file_format="NDJSON", columns=columns), reader=reader)
    result = job.load_one(job.table(second, file_format="NDJSON"), reader=reader)

    assert (result.error, result.warnings) == (None, ())
    assert job.values(result) == [
        {
            "at": {"Zip_Code": None, "city": "y"},
            "id": 2,
            "price": 3.0,
            "tags": ["7"],
            "v": '{"a": 1.10}',
        },
        {"at": {"Zip_Code": 7, "city": None}, "id": 3, "price": None, "tags": [], "v": "5"},
    ]


def test_nested_values_become_json_text_on_demand(job: Job) -> None:
    path = job.file("a.ndjson", '{"id": 1, "at": {"la t": 1.50, "n": null}}\n')

    rows = job.values(job.load_one(job.table(path, file_format="NDJSON"), nested="JSON"))

    assert rows == [{"at": '{"la t": 1.50, "n": null}', "id": 1}]


def test_json_is_one_value_or_more_in_a_file(job: Job) -> None:
    path = job.file("a.json", '[\n {"id": 1},\n {"id": 2}\n]\n')
    other = job.file("b.json", '{\n "id": 3\n}\n')

    result = job.load_one(job.table(path, other, file_format="JSON"))

    assert sorted(row["id"] for row in job.values(result)) == [1, 2, 3]


def test_a_json_field_that_no_record_has_yet_may_be_declared(job: Job) -> None:
    path = job.file("a.ndjson", '{"id": 1}\n')
    columns = ColumnsSpec(types={"later": "timestamp"})

    result = job.load_one(job.table(path, file_format="NDJSON", columns=columns))

    assert job.rows(result).schema.field("later").type == pa.timestamp("us", "UTC")
    assert job.values(result) == [{"id": 1, "later": None}]


def test_parquet_keeps_its_types_and_unites_columns_of_all_files(job: Job) -> None:
    first, second = Path(job.file("a.parquet", b"")), Path(job.file("b.parquet", b""))
    pq.write_table(
        pa.table(
            {
                "d": pa.array([Decimal("1.23")], pa.decimal128(20, 2)),
                "n": pa.array([datetime(2026, 1, 1)], pa.timestamp("us")),
                "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
            }
        ),
        first,
    )
    pq.write_table(
        pa.table({"d": pa.array([Decimal("9.99")], pa.decimal128(20, 2)), "x": [1]}), second
    )

    result = job.load_one(job.table(str(first), str(second), file_format="PARQUET"))

    rows = job.rows(result)
    assert rows.schema.field("d").type == pa.decimal128(20, 2)
    assert rows.schema.field("n").type == pa.timestamp("us")
    found = sorted(job.values(result), key=lambda row: str(row["d"]))
    assert found == [
        {"d": Decimal("1.23"), "n": datetime(2026, 1, 1), "m": [("k", 1)], "x": None},
        {"d": Decimal("9.99"), "n": None, "m": None, "x": 1},
    ]


def test_parquet_columns_are_cast_to_given_types(job: Job) -> None:
    path = Path(job.file("a.parquet", b""))
    pq.write_table(pa.table({"a": ["1", "2"]}), path)
    columns = ColumnsSpec(types={"a": "bigint"})

    result = job.load_one(job.table(str(path), file_format="PARQUET", columns=columns))

    assert job.values(result) == [{"a": 1}, {"a": 2}]


def test_a_folder_is_read_with_the_columns_of_its_subfolders(job: Job) -> None:
    job.file("t/region=eu/a.csv", "id\n1\n")
    path = job.file("t/region=us/b.csv", "id\n2\n")

    result = job.load_one(job.table(str(Path(path).parent.parent)))

    found = sorted((row["id"], row["region"]) for row in job.values(result))
    assert found == [(1, "eu"), (2, "us")]


@pytest.mark.parametrize("content", ["id,name\n", "id,name"])
def test_csv_header_without_rows_is_an_empty_table(job: Job, content: str) -> None:
    result = job.load_one(job.table(job.file("a.csv", content)))

    assert (result.status, result.rows, result.files) == ("LOADED", 0, ())
    assert job.lake.data_keys() == []
    assert "is made with the first ones" in result.notes[-1]
    later = job.load_one(job.table(job.file("a.csv", "id,name\n1,x\n")))
    assert (later.status, later.notes) == ("LOADED", ())


def test_an_empty_file_is_a_table_without_rows(job: Job) -> None:
    result = job.load_one(job.table(job.file("a.csv", "")))

    assert (result.status, result.rows, result.error) == ("LOADED", 0, None)


def test_where_and_deleted_when_use_source_names(job: Job) -> None:
    path = job.file("a.csv", "Id,gone at\n1,\n2,x\n3,\n")
    table = job.table(path, where="Id < 3", deleted_when="`gone at` is not null")

    rows = job.rows(job.load_one(table)).to_pylist()

    assert [(row["Id"], row["_supa_deleted"]) for row in rows] == [(1, False), (2, True)]


def test_columns_are_selected_renamed_and_kept_apart(job: Job) -> None:
    path = job.file("a.csv", "Crème,creme,Orders,orders,secret\n1,2,3,4,5\n")
    columns = ColumnsSpec(exclude=("secret",), rename={"orders": "older"})

    (row,) = job.values(job.load_one(job.table(path, columns=columns)))

    assert row == {"Creme": 1, "creme_1": 2, "Orders": 3, "older": 4}


def test_doubled_quotes_and_backslashes_are_read_as_rfc_4180_says(job: Job) -> None:
    path = job.file("a.csv", 'id,t\n1,"say ""hi"", you"\n2,"C:\\dir\\"\n')

    rows = job.values(job.load_one(job.table(path)))

    assert [row["t"] for row in rows] == ['say "hi", you', "C:\\dir\\"]


def test_another_escape_may_be_set(job: Job) -> None:
    path = job.file("a.csv", 'id,t\n1,"say \\"hi\\""\n')
    options = {"header": "true", "escape": "\\"}

    assert job.values(job.load_one(job.table(path, options=options)))[0]["t"] == 'say "hi"'
