"""Rejected records in the place of their files: columns, lines and bytes are those of the files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import (
    ColumnsSpec,
    FileFormatName,
    FilesInput,
    OnBadValue,
    RejectLimit,
)
from lakeload_jobs.rows.rejects import REJECTED_HELPER
from lakeload_jobs.sources.files.spark.rejected import root_of, stored_texts
from lakeload_jobs.sources.files.text.stored import StoredFiles
from lakeload_jobs.sources.files.text.table import TextTable
from lakeload_jobs.sources.part_sizes import Parallelism
from lakeload_jobs.sources.paths.file_state import FileState
from tests.text_tables import csv_table, json_table
from tests.unit.sources.files.formats.csv.test_table import here, rows_of

NUMBERS = ColumnsSpec(types={"n": "bigint"})


def record(index: int, line: int, raw: str, **more: Any) -> dict[str, Any]:
    given = {"source_file": "/in/a.csv", "source_columns": '["id", "n"]', "raw_bytes": None, **more}
    return {"_supa_index": index, "source_line": line, "raw_record": raw, **given}


def opened(
    records: list[dict[str, Any]],
    options: Mapping[str, str] | None = None,
    *,
    file_format: FileFormatName = "CSV",
    on_bad_value: OnBadValue = "QUARANTINE",
    columns: ColumnsSpec = NUMBERS,
) -> TextTable:
    given = FilesInput(file_format, ("/in",), dict(options or {}))
    stored = StoredFiles(texts=stored_texts(records, given))
    files = tuple(FileState(path, len(text.data), 0) for path, text in stored.texts.items())
    settings: dict[str, Any] = {
        "columns": columns,
        "on_bad_value": on_bad_value,
        "opener": stored,
        "max_rejected": RejectLimit(percent=100),
    }
    table = (
        csv_table(files, given.options, **settings)
        if file_format == "CSV"
        else json_table(files, given.options, lines=file_format == "NDJSON", **settings)
    )
    return table.split(here, Parallelism(4, 1, 1))


def rejects(table: TextTable) -> list[tuple[str, int, str]]:
    found = [row[REJECTED_HELPER] for row in rows_of(table)]
    names = ("source_file", "source_line", "raw_record")
    return [tuple(one[name] for name in names) for one in found if one]


@pytest.mark.parametrize("line_break", ["\\n", "\\r\\n"])
def test_records_of_a_dump_end_as_in_its_files(line_break: str) -> None:
    raw = "1\t5\\\n" if line_break == "\\n" else "1\t5\n"
    records = [record(1, 5, raw), record(2, 9, "2\t7")]
    options = {"backslash_escapes": "true", "separator": "\\t", "line_break": line_break}

    table = opened(records, options, columns=ColumnsSpec(types={"n": "string"}))

    assert [(row["id"], row["n"]) for row in rows_of(table)] == [(1, "5\n"), (2, "7")]


def test_the_columns_are_those_of_the_file_and_rows_begin_at_once() -> None:
    records = [record(7, 12, "2;1.000"), record(3, 5, '1;"5"')]

    rows = rows_of(
        opened(
            records,
            {"header": "true", "skip_rows": "3", "separator": ";", "thousands_mark": "."},
        )
    )

    assert [(row["id"], row["n"]) for row in rows] == [(1, 5), (2, 1000)]


def test_rejected_again_record_keeps_its_line() -> None:
    records = [
        record(1, 10, '1,"a\nb"'),
        record(2, 30, "2,2"),
        record(3, 40, "3"),
        record(4, 50, "4,x", source_file="/in/b.csv"),
    ]

    assert rejects(opened(records)) == [
        ("/in/a.csv", 10, '1,"a\nb"'),
        ("/in/a.csv", 40, "3"),
        ("/in/b.csv", 50, "4,x"),
    ]
    with pytest.raises(LoadFailed, match=r"(?s)/in/a.csv`:\n    line 10, .*line 40: it has 1"):
        opened(records, on_bad_value="FAIL")


def test_lines_swallowed_by_a_quote_are_separate_records_on_retry() -> None:
    records = [record(1, 10, '1,"2\n3,4\n5,x')]

    table = opened(records, {"quote": ""}, columns=ColumnsSpec(types={"id": "bigint"}))

    assert [row["n"] for row in rows_of(table)] == ['"2', "4", "x"]
    again = opened(records, {"quote": ""}, columns=NUMBERS)
    assert rejects(again) == [("/in/a.csv", 10, '1,"2'), ("/in/a.csv", 12, "5,x")]


def test_rejected_bytes_are_decoded_with_the_current_encoding() -> None:
    records = [record(1, 2, "caf\\xe9,1", raw_bytes=b"caf\xe9,1"), record(2, 3, "th\u00e9,x")]

    rows = rows_of(opened(records, {"encoding": "windows-1252"}))
    assert (rows[0]["id"], rows[0]["n"]) == ("caf\u00e9", 1)
    assert rows[1][REJECTED_HELPER]["raw_record"] == "th\u00e9,x"

    (first, _) = rows_of(opened(records))
    assert first[REJECTED_HELPER]["raw_bytes"] == b"caf\xe9,1"


@pytest.mark.parametrize("file_format", ["JSON", "NDJSON"])
def test_records_of_json_have_their_own_keys(file_format: FileFormatName) -> None:
    raw = '{"n": "5", "s":  "x"}'
    more = {"source_columns": "[]", "source_file": "/in/a.json"}
    records = [record(1, 3, '{"n": "y"}', **more), record(2, 9, raw, **more)]

    table = opened(records, {"records": "$.data[*]"}, file_format=file_format)

    assert rows_of(table)[1] == {"n": 5, "s": "x", REJECTED_HELPER: None}
    assert rejects(table) == [("/in/a.json", 3, '{"n": "y"}')]


@pytest.mark.parametrize(
    ("path", "patterns", "root"),
    [
        ("/in/day=1/a.csv", ("/in",), "/in"),
        ("/in/day=1/a.csv", ("/i*/day=1/",), "/in/day=1"),
        ("/in/day=1/a.csv", ("/in/day=1/a.csv",), ""),
        ("/in/day=1/a.csv", ("/in/*/*.csv",), ""),
        ("s3://b/in/day=1/a.csv", ("/in", "s3://c/in/", "s3://b/in/"), "s3://b/in"),
    ],
)
def test_the_folder_that_a_path_names_gives_the_columns_of_folders_as_before(
    path: str, patterns: tuple[str, ...], root: str
) -> None:
    assert root_of(path, patterns) == root
