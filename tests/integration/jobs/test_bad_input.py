"""What can be wrong with a source: each has its own message, and nothing of it stays behind."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeload_jobs.contract.result import ErrorInfo, TableResult
from lakeload_jobs.contract.spec import ColumnsSpec, ReaderChoice, TableSpec
from lakeload_jobs.sources.files.spark import text
from lakeload_jobs.sources.part_sizes import Parallelism
from tests.integration.jobs.conftest import Job
from tests.unit.sources.files.typed.typed_files import write_encrypted


def failure(job: Job, table: TableSpec, **changes: Any) -> ErrorInfo:
    """Load a table that must fail; check that nothing is left of it."""
    result = job.load_one(table, **changes)
    assert result.status == "FAILED"
    assert result.error is not None
    assert job.lake.data_keys() == []
    assert job.lake.uploads_left() == []
    return result.error


def warning(result: TableResult) -> str:
    assert result.error is None
    return " ".join(result.warnings)


def test_a_missing_file_is_named_with_what_is_there(job: Job) -> None:
    present = job.file("orders.csv", "id\n1\n")

    error = failure(job, job.table(present.replace("orders", "order")))

    assert "there is no file or folder" in error.message
    assert "order.csv" in error.message
    assert "`orders.csv`" in (error.hint or "")
    assert error.exit_code == 1


def test_a_value_that_does_not_fit_names_file_and_record(job: Job) -> None:
    good = job.file("a.csv", "id,n\n1,2\n")
    bad = job.file("the bad one.csv", "id,n\n3,4\n5,abc\n")
    columns = ColumnsSpec(types={"id": "int", "n": "int"})

    error = failure(job, job.table(good, bad, columns=columns))

    assert error.type == "MalformedRecord"
    assert f"reading `{bad}`: line 3, column `n`: `abc` is not a whole number" in error.message
    assert "on_bad_value" in (error.hint or "")


def test_csv_row_with_too_few_values_fails(job: Job) -> None:
    bad = job.file("a.csv", "a,b,c\n1,2,3\n4,5\n")

    error = failure(job, job.table(bad))

    assert error.type == "MalformedRecord"
    assert bad in error.message


def test_a_broken_json_line_fails_with_its_problem(job: Job) -> None:
    bad = job.file("a.ndjson", '{"a": 1}\n{"a": \n')

    error = failure(job, job.table(bad, file_format="NDJSON"))

    assert error.type == "MalformedRecord"
    assert f"reading `{bad}`: line 2: it is not JSON: expecting value" in error.message


@pytest.mark.parametrize("on_bad_value", ["FAIL", "NULL"])
def test_a_quote_without_an_end_names_file_line_and_setting(job: Job, on_bad_value: str) -> None:
    good = job.file("a.csv", 'key,comment\nk0,"5"" pipe"\nk,5" pipe\n')
    bad = job.file("b.csv.gz", gzip.compress(b'key,comment\nk1,x\nk2,"Dear,\nSir\n'))

    error = failure(job, job.table(good, bad), on_bad_value=on_bad_value)

    assert f"reading `{bad}`: line 3: a quote is opened that is never closed" in error.message
    assert "`quote: ''`" in (error.hint or "")


def test_quotes_without_meaning_are_loaded_as_they_are(job: Job) -> None:
    path = job.file("a.csv", 'id,size\n1,"5\n2,6"\n')

    options = {"header": "true", "quote": ""}

    assert job.values(job.load_one(job.table(path, options=options))) == [
        {"id": 1, "size": '"5'},
        {"id": 2, "size": '6"'},
    ]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", b'{"id": 1}\n{"id": 2}\n'),
        ("a.json.gz", gzip.compress(b'[{"id": 1},\n {"id": 2}]\n', mtime=0)),
        ("a.json.bz2", bz2.compress(b'\xef\xbb\xbf{"id": 1}{"id": 2}')),
        ("a.json", '{"id": 1}\n{"id": 2}\n'.encode("utf-16")),
    ],
)
def test_all_values_of_a_json_file_are_loaded(job: Job, name: str, content: bytes) -> None:
    zero = job.file("0.json", '[{"id": 0}]\n')
    path = job.file(name, content)

    result = job.load_one(job.table(zero, path, file_format="JSON"))

    assert (result.reader, result.rows) == ("direct", 3)
    assert job.values(result) == [{"id": 0}, {"id": 1}, {"id": 2}]


def test_large_files_are_inferred_in_tasks(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """CSV in parts, with line breaks in quotes that lie across their borders."""
    monkeypatch.setattr(text, "_SMALL", 0)
    monkeypatch.setattr(text, "_parallelism", lambda _: Parallelism(2, 300, 64))
    lines = [f'{number},"a ""b""\n",{"x" * number}' for number in range(40)]
    good = job.file("a.csv", "\n".join(lines))
    bad = job.file("b.csv", "\r\n".join([*lines, '40,"a', 'b"']))
    values = job.file("c.json", '[{"id": 1}]\n{"id": 2}\n')
    numbers = "".join(f'{{"id": {number}}}\n' for number in range(100))
    json_lines = job.file("d.ndjson", numbers)

    result = job.load_one(job.table(good, options={}, name="good"))
    lines_error = job.load_one(job.table(bad, options={})).error
    values_error = job.load_one(job.table(values, file_format="JSON")).error
    parts = job.load_one(job.table(json_lines, file_format="NDJSON", name="parts"))

    assert (result.status, result.rows, len(result.files) > 1) == ("LOADED", 40, True)
    assert [row["_c0"] for row in job.values(result)] == list(range(40))
    assert lines_error is not None
    assert f"`{bad}`: line 81: it has 2 values, and 3 are expected" in lines_error.message
    assert values_error is not None
    assert f"`{values}`: line 2: something follows the end of the list" in values_error.message
    assert (parts.rows, len(parts.files) > 1) == (100, True)
    assert [row["id"] for row in job.values(parts)] == list(range(100))


@pytest.mark.parametrize("reader", ["AUTO", "JVM"])
def test_records_of_separators_alone_are_rows_of_nulls(job: Job, reader: ReaderChoice) -> None:
    path = job.file("a.csv", "id,n\n1,2\n,,,,\n,\n3,4\n")

    result = job.load_one(job.table(path), reader=reader)

    assert [row["id"] for row in job.values(result)] == [1, None, None, 3]
    assert f"`{path}`: line 3 has nothing but separators" in warning(result)


def test_bad_values_become_null_and_are_counted_on_demand(job: Job) -> None:
    path = job.file("a.csv", "id,n\n1,2\n3,x\ny,4\n5,6.0\n")
    columns = ColumnsSpec(types={"id": "int", "n": "int"})

    result = job.load_one(job.table(path, columns=columns), on_bad_value="NULL")
    filtered = job.load_one(
        job.table(path, columns=columns, where="id is not null", name="filtered"),
        on_bad_value="NULL",
    )

    assert warning(result).startswith("3 values or records could not be read")
    assert warning(filtered).startswith("2 values or records could not be read")
    assert job.values(result) == [
        {"id": 1, "n": 2},
        {"id": 3, "n": None},
        {"id": None, "n": 4},
        {"id": 5, "n": None},
    ]


def test_a_broken_json_record_fails_also_where_bad_values_become_null(job: Job) -> None:
    bad = job.file("a.ndjson", '{"a": 1}\nnonsense\n{"a": 2}\n')
    values = job.file("b.ndjson", '{"a": 1}\n{"a": "x"}\n{"a": "2"}\n')
    columns = ColumnsSpec(types={"a": "int"})

    error = failure(job, job.table(bad, file_format="NDJSON"), on_bad_value="NULL")
    table = job.table(values, file_format="NDJSON", columns=columns)
    result = job.load_one(table, on_bad_value="NULL")

    assert f"reading `{bad}`: line 2: it is not JSON" in error.message
    assert warning(result).startswith("1 values")
    assert job.values(result) == [{"a": 1}, {"a": None}, {"a": 2}]


def test_bad_casts_of_parquet_are_counted_too(job: Job) -> None:
    path, other = Path(job.file("a.parquet", b"")), Path(job.file("b.parquet", b""))
    pq.write_table(pa.table({"a": ["1", "x", None], "b": ["1", "y", "2"]}), path)
    pq.write_table(pa.table({"a": ["z"] * 15, "b": ["1"] * 15}), other)
    columns = ColumnsSpec(types={"a": "int", "b": "int"})
    table = job.table(str(path), str(other), file_format="PARQUET", columns=columns)

    error = failure(job, table)
    by_spark = failure(job, table, reader="JVM")
    result = job.load_one(table, on_bad_value="NULL")

    texts = error.message.splitlines()
    assert texts[1:5] == [
        f"  reading `{path}`:",
        "    row group 1, row 2: column `a`: the value `x` is no int",
        f"  reading `{other}`:",
        "    row group 1, row 1: column `a`: the value `z` is no int",
    ]
    assert (len(texts), texts[-1]) == (14, "  and 7 more")
    numbered = [text.replace("row group 1, ", "") for text in texts]
    assert by_spark.message.splitlines()[1:5] == numbered[1:5]
    assert by_spark.message.endswith("\n  and 7 more")
    assert (error.type, error.hint) == ("BadValuesFound", "set `on_bad_value: 'NULL'`")
    assert warning(result).startswith("17 values")
    assert job.values(result)[:3] == [{"a": 1, "b": 1}, {"a": None, "b": None}, {"a": None, "b": 2}]


@pytest.mark.parametrize(
    "content", [b"no parquet at all", b"PAR1 and some bytes that are not PAR1"]
)
def test_an_unreadable_parquet_file_is_named(job: Job, content: bytes) -> None:
    bad = job.file("the bad.parquet", content)

    error = failure(job, job.table(bad, file_format="PARQUET"))

    assert error.type == "UnreadableFile"
    assert f"`{bad}`" in error.message
    assert error.exit_code == 1


def test_a_truncated_parquet_file_is_named(job: Job) -> None:
    path = Path(job.file("a.parquet", b""))
    pq.write_table(pa.table({"a": list(range(10_000))}), path)
    path.write_bytes(path.read_bytes()[:-200])

    error = failure(job, job.table(str(path), file_format="PARQUET"))

    assert error.type == "UnreadableFile"
    assert f"`{path}`" in error.message


@pytest.mark.parametrize(
    ("where", "said"),
    [("nope = 1", "nope"), ("id ==== 1 )", "Syntax error"), ("rand() < 0.5", "another result")],
)
def test_condition_rejected_by_spark_is_shown(job: Job, where: str, said: str) -> None:
    error = failure(job, job.table(job.file("a.csv", "id\n1\n"), where=where))

    assert f"`where: {where}`" in error.message
    assert said in error.message
    assert error.exit_code == 2


def test_condition_that_fails_on_a_value_is_reported(job: Job) -> None:
    error = failure(job, job.table(job.file("a.csv", "id\nx\n"), where="cast(id as int) > 0"))

    assert error.type == "CAST_INVALID_INPUT"
    assert "'x'" in error.message


def test_a_type_that_spark_does_not_know_is_shown(job: Job) -> None:
    columns = ColumnsSpec(types={"id": "inte"})

    error = failure(job, job.table(job.file("a.csv", "id\n1\n"), columns=columns))

    assert "column `id` the type `inte`" in error.message
    assert error.exit_code == 2


def test_type_for_a_missing_column_suggests_the_nearest_name(job: Job) -> None:
    columns = ColumnsSpec(types={"amuont": "int"})

    error = failure(job, job.table(job.file("a.csv", "id,amount\n1,2\n"), columns=columns))

    assert error.hint == "did you mean `amount`?"


def test_option_without_effect_is_rejected(job: Job) -> None:
    table = job.table(job.file("a.csv", "id\n1\n"), options={"delimeter": ";"})

    assert failure(job, table).hint == "did you mean `delimiter`?"


def test_files_whose_headers_disagree_are_not_loaded_by_position(job: Job) -> None:
    first = job.file("a.csv", "id,name\n1,x\n")
    second = job.file("b.csv", "name,id,new\ny,2,z\n")

    result = job.load_one(job.table(first, second))

    assert job.values(result) == [
        {"id": 1, "name": "x", "new": None},
        {"id": 2, "name": "y", "new": "z"},
    ]
    assert f"column `new` is not in `{first}`" in warning(result)


def test_folder_without_files_fails(job: Job) -> None:
    folder = job.folder / "empty"
    folder.mkdir()

    error = failure(job, job.table(str(folder)))

    assert "no files" in error.message


def test_changed_types_are_rejected_unless_the_load_has_no_rows(job: Job) -> None:
    assert job.load_one(job.table(job.file("a.csv", "id,n\n1,2\n"))).status == "LOADED"

    empty = job.load_one(job.table(job.file("a.csv", "id,n\n")))
    changed = job.load_one(job.table(job.file("a.csv", "id,n\n1,2.5\n")))

    assert (empty.status, empty.rows) == ("LOADED", 0)
    assert changed.status == "FAILED"
    assert changed.error is not None
    assert "`n` was `bigint` and is `double`" in changed.error.message


def test_a_column_without_values_keeps_the_type_it_had(job: Job) -> None:
    job.load_one(job.table(job.file("a.csv", "id,n\n1,2.5\n")))

    later = job.load_one(job.table(job.file("a.csv", "id,n\n2,\n3,7\n")))
    gone = job.load_one(job.table(job.file("a.csv", "id\n4\n")))

    assert job.values(later) == [{"id": 2, "n": None}, {"id": 3, "n": 7.0}]
    assert "`n` is no longer in the source" in warning(gone)


@pytest.mark.parametrize("reader", ["AUTO", "JVM"])
def test_an_encrypted_file_fails_its_table_alone(job: Job, reader: ReaderChoice) -> None:
    content = pa.table({"id": [1], "secret": ["x"]})
    path = write_encrypted(job.folder / "a.parquet", content, plaintext_footer=True)
    encrypted = job.table(str(path), file_format="PARQUET", name="encrypted")
    orders = job.table(job.file("orders.csv", "id\n1\n"))

    refused, loaded = job.load(encrypted, orders, reader=reader).tables

    assert refused.error is not None
    assert refused.error.message == f"reading `{path}`: it has encrypted columns"
    assert (loaded.status, loaded.rows) == ("LOADED", 1)
