"""Tables of JSON files: what docs/json-files.md says of them, and large files in parts."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import random
import time
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.contract.spec import ColumnsSpec
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER
from lakeload_jobs.sources.files.formats.json.values import (
    MAX_NESTED_TYPES,
    JsonEvidence,
)
from lakeload_jobs.sources.files.text.table import TextTable
from lakeload_jobs.sources.part_sizes import ONE_TASK, Parallelism
from lakeload_jobs.sources.paths.local_listing import local_files
from lakeload_jobs.sources.type_names import UnknownType, nested_type, spark_name
from tests.text_tables import json_table
from tests.unit.sources.files.formats.csv import test_table as csv_tests
from tests.unit.sources.files.formats.csv.test_table import here, rows_of, types
from tests.unit.sources.files.formats.json import json_texts as json_texts


class Folder(csv_tests.Folder):
    """Files of a test, and what is read of them."""

    def open(
        self,
        options: Mapping[str, str] | None = None,
        parallelism: Parallelism = ONE_TASK,
        *,
        lines: bool = True,
        **changes: Any,
    ) -> TextTable:
        """Open all files."""
        files = tuple(sorted(local_files([str(self.path)]), key=lambda file: file.path))
        return json_table(files, options or {}, lines=lines, **changes).split(here, parallelism)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_types_are_those_of_json(folder: Folder) -> None:
    folder.put(
        "a.ndjson",
        '{"id": 1, "price": 1.50, "ok": true, "day": "2026-01-02", "zip": "01234"}\n'
        '{"id": 2, "price": 3, "ok": null, "n": null}\n',
    )

    table = folder.open()

    assert types(table) == {
        "id": "int64",
        "price": "double",
        "ok": "bool",
        "day": "string",
        "zip": "string",
        "n": "string",
    }
    assert rows_of(table)[1] == {
        "id": 2,
        "price": 3.0,
        "ok": None,
        "day": None,
        "zip": None,
        "n": None,
    }


def test_nested_values_unite_their_keys(folder: Folder) -> None:
    folder.put("a.ndjson", '{"a": {"s": "x", "n": {"q": 1}}, "l": [{"k": 1}, null]}\n')
    folder.put("b.ndjson", '{"a": {"t": 2, "n": {"q": 1.5}}, "l": []}\n{"l": [{"m": "y"}]}\n')

    assert folder.rows() == [
        {"a": {"s": "x", "n": {"q": 1.0}, "t": None}, "l": [{"k": 1, "m": None}, None]},
        {"a": {"s": None, "n": {"q": 1.5}, "t": 2}, "l": []},
        {"a": None, "l": [{"k": None, "m": "y"}]},
    ]


@pytest.mark.parametrize(("opens", "closes"), [('{"a": ', "}"), ("[", "]")])
def test_values_nested_deeper_than_types_go_are_text(
    folder: Folder, opens: str, closes: str
) -> None:
    value = opens * 400 + "1" + closes * 400
    folder.put("a.ndjson", f'{{"a": {value}}}\n')

    table = folder.open()

    (row,) = rows_of(table)
    inner: Any = row["a"]
    for _ in range(MAX_NESTED_TYPES):
        inner = inner["a"] if isinstance(inner, dict) else inner[0]
    rest = 400 - MAX_NESTED_TYPES
    assert inner == opens * rest + "1" + closes * rest
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_batches(table.splits.read(table.splits.parts[0])), sink)
    assert pq.read_table(sink).to_pylist() == [row]


def test_a_value_under_text_is_as_it_is_written(folder: Folder) -> None:
    folder.put(
        "a.ndjson",
        '{"v": "x\\u00e9"}\n{"v": 1.10}\n{"v": {"z": 1.10,  "a": null}}\n'
        '{"v": true}\n{"v": [1,2]}\n',
    )

    assert [row["v"] for row in folder.rows()] == [
        "xé",
        "1.10",
        '{"z": 1.10,  "a": null}',
        "true",
        "[1,2]",
    ]


def test_nested_values_as_text_are_loaded_byte_for_byte(folder: Folder) -> None:
    folder.put("a.ndjson", '{"v": {"z": 1.10,"a":null, "k": "\\u00e9"}}\n{"v": {}}\n{"v": null}\n')

    table = folder.open(nested_as_text=True)

    assert types(table) == {"v": "string"}
    assert [row["v"] for row in rows_of(table)] == [
        '{"z": 1.10,"a":null, "k": "\\u00e9"}',
        "{}",
        None,
    ]


def test_text_holds_numbers_of_a_declared_type(folder: Folder) -> None:
    folder.put("a.ndjson", '{"n": "7", "t": "2026-01-02 03:04:05", "b": "w6k="}\n{"n": 8.00}\n')
    columns = ColumnsSpec(types={"n": "decimal(6,2)", "t": "timestamp", "b": "binary"})

    first, second = folder.rows(columns=columns)

    assert str(first["n"]) == "7.00"
    assert first["t"] == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert first["b"] == b"\xc3\xa9"
    assert str(second["n"]) == "8.00"


@pytest.mark.parametrize("value", ["true", "1234", "[]", '"123"'])
def test_a_binary_column_takes_base64_in_strings_alone(folder: Folder, value: str) -> None:
    folder.put("a.ndjson", f'{{"b": "1234"}}\n{{"b": null}}\n{{"b": {value}}}\n')
    columns = ColumnsSpec(types={"b": "binary"})

    with pytest.raises(LoadFailed, match=r"line 3, column `b`: .* is not Base64"):
        folder.rows(columns=columns)


def test_settings_may_name_columns_as_the_table_does(folder: Folder) -> None:
    folder.put("a.ndjson", '{"orderId": 7}\n')
    columns = ColumnsSpec(types={"orderid": "string", "later": "int"})

    assert folder.rows(columns=columns) == [{"orderId": "7", "later": None}]


def test_nested_types_may_be_declared(folder: Folder) -> None:
    folder.put("a.ndjson", '{"m": {"x": 1, "y": "2"}, "s": {"d": "2026-01-02", "more": 1}}\n')
    columns = ColumnsSpec(
        types={"m": "map<string, int>", "s": "struct<d: date, l: array<int>>", "later": "int"}
    )

    assert folder.rows(columns=columns) == [
        {
            "m": [("x", 1), ("y", 2)],
            "s": {"d": date(2026, 1, 2), "l": None},
            "later": None,
        }
    ]


def test_bad_values_are_named_where_they_are(folder: Folder) -> None:
    path = folder.put(
        "a.ndjson",
        '{"s": {"l": [{"n": 1}, {"n": "x"}]}, "i": 1}\n{"s": 5, "i": 1.5}\n{"s": null}\n',
    )
    columns = ColumnsSpec(types={"s": "struct<l:array<struct<n:int>>>", "i": "int"})

    failed = folder.failure(columns=columns)
    rows = folder.rows(columns=columns, on_bad_value="NULL")

    number = "a whole number from -2147483648 to 2147483647"
    assert failed.message.splitlines() == [
        "3 values or records cannot be loaded:",
        f"  reading `{path}`:",
        f"    line 1, column `s`: at `l[1].n`: `x` is not {number}",
        "    line 2, column `s`: `5` is not an object",
        f"    line 2, column `i`: `1.5` is not {number}",
    ]
    assert rows == [
        {"s": {"l": [{"n": 1}, {"n": None}]}, "i": 1, BAD_VALUES_HELPER: 1},
        {"s": None, "i": None, BAD_VALUES_HELPER: 2},
        {"s": None, "i": None, BAD_VALUES_HELPER: 0},
    ]


@pytest.mark.parametrize("on_bad_value", ["FAIL", "NULL"])
def test_broken_records_fail_with_the_first_ten_and_their_number(
    folder: Folder, on_bad_value: Any
) -> None:
    path = folder.put("a.ndjson", '{"a": 1}\n' + '{"a": 1,}\n' * 30)

    failed = folder.failure(on_bad_value=on_bad_value)

    _, file, *sentences, more = failed.message.splitlines()
    assert (file, more) == (f"  reading `{path}`:", "  and 20 more")
    assert len(sentences) == 10
    assert sentences[0].startswith("    line 2: it is not JSON: ")
    assert sentences[0].endswith('`{"a": 1,}`')


TYPES_BY_SPARK = {
    "id": "bigint",
    "price": "double",
    "name": "string",
    "place": "struct<city:string,zip_code:bigint>",
    "tags": "array<string>",
    "mixed": "string",
    "ok": "boolean",
    "empty": "string",
}


def test_a_table_of_an_earlier_version_keeps_its_types(folder: Folder) -> None:
    """What Spark inferred holds the values of another day: integers under double, numbers in
    lists of text, objects under text; and columns without a value."""
    folder.put(
        "a.ndjson",
        '{"id": 7, "price": 3, "name": 5, "place": {"city": "x", "zip code": 1}, "tags": [1],'
        ' "mixed": {"a": 1.0}, "ok": false, "empty": true}\n',
    )
    nulls = folder.put("b/a.ndjson", json.dumps(dict.fromkeys(TYPES_BY_SPARK)) + "\n")

    files = tuple(local_files([nulls]))
    of_nulls = json_table(files, {}, recorded=TYPES_BY_SPARK, lines=True).split(here)
    (Path(nulls)).unlink()
    Path(nulls).parent.rmdir()
    table = folder.open(recorded=TYPES_BY_SPARK)

    found = {field.name: spark_name(field.type) for field in of_nulls.schema}
    assert found == {name: spark_name(nested_type(kind)) for name, kind in TYPES_BY_SPARK.items()}
    found = {field.name: spark_name(field.type) for field in table.schema}
    assert found["place"] == "struct<`city`:string,`zip code`:bigint>"
    assert {**found, "place": ""} == {**TYPES_BY_SPARK, "place": ""}
    assert rows_of(table) == [
        {
            "id": 7,
            "price": 3.0,
            "name": "5",
            "place": {"city": "x", "zip code": 1},
            "tags": ["1"],
            "mixed": '{"a": 1.0}',
            "ok": False,
            "empty": "true",
        }
    ]


def test_values_that_a_type_of_the_table_does_not_hold_change_it_or_are_bad(
    folder: Folder,
) -> None:
    path = folder.put("a.ndjson", '{"n": 1.5, "b": 1}\n')
    recorded = {"n": "bigint", "b": "bigint"}
    assert types(folder.open(recorded=recorded)) == {"n": "double", "b": "int64"}

    folder.put("a.ndjson", '{"n": 1}\n{"n": "x"}\n')
    failed = folder.failure(recorded=recorded)
    assert f"reading `{path}`: line 2, column `n`: `x` is not a whole number" in failed.message
    rows = folder.rows(recorded=recorded, on_bad_value="NULL")
    assert [row["n"] for row in rows] == [1, None]
    assert types(folder.open(recorded=recorded, on_type_conflict="NEW_COLUMN")) == {"n": "string"}


def test_another_spelling_of_a_column_has_its_type(folder: Folder) -> None:
    folder.put("a.ndjson", '{"ORDER_ID": 7, "at": {"Zip Code": 1}}\n')

    table = folder.open(recorded={"Order ID": "decimal(12,2)", "at": "struct<zip_code:double>"})

    assert types(table)["ORDER_ID"] == "decimal128(12, 2)"
    assert rows_of(table)[0]["at"] == {"Zip Code": 1.0}


def test_json_text_types_are_inferred_by_setting(folder: Folder) -> None:
    folder.put("a.ndjson", '{"n": "7", "d": "2026-01-02", "m": 1.10, "s": {"k": 1}}\n')

    assert folder.rows({"infer": "FULL"}) == [
        {"n": 7, "d": date(2026, 1, 2), "m": 1.1, "s": {"k": 1}}
    ]
    assert folder.rows({"infer": "STRINGS"}) == [
        {"n": "7", "d": "2026-01-02", "m": "1.10", "s": {"k": "1"}}
    ]
    assert folder.rows({"primitivesAsString": "true"}) == folder.rows({"infer": "STRINGS"})


def test_json_options_set_the_text_formats(folder: Folder) -> None:
    folder.put("a.ndjson", '{"d": "31.12.2026", "t": "2026-01-02 00:30"}\n'.encode("utf-16-le"))
    options = {"encoding": "utf-16-le", "dateFormat": "dd.MM.yyyy", "timeZone": "Europe/Berlin"}

    assert folder.rows(options, columns=ColumnsSpec(types={"d": "date", "t": "timestamp"})) == [
        {"d": date(2026, 12, 31), "t": datetime(2026, 1, 1, 23, 30, tzinfo=UTC)}
    ]


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(b'{"a": 1}\n{"a": 2}\n', mtime=0),
        bz2.compress(b'{"a": 1}\n{"a": 2}\n'),
        '\ufeff{"a": 1}\n{"a": 2}\n'.encode("utf-16-be"),
        '\ufeff{"a": 1}\n{"a": 2}\n'.encode("utf-32-le"),
        b'\xef\xbb\xbf{"a": 1}\r\n\r\n{"a": 2}',
    ],
    ids=["gz", "bz2", "utf-16", "utf-32", "bom"],
)
@pytest.mark.parametrize("lines", [True, False])
def test_compression_and_encoding_are_known_by_the_content(
    folder: Folder, content: bytes, *, lines: bool
) -> None:
    folder.put("a.json", content)

    assert folder.rows(lines=lines) == [{"a": 1}, {"a": 2}]


def test_records_without_keys_are_rows(folder: Folder) -> None:
    folder.put("a.ndjson", '{}\n{"a": 1}\n{}\n')
    assert folder.rows() == [{"a": None}, {"a": 1}, {"a": None}]

    folder.put("a.ndjson", "{}\n{}\n")
    assert "rows but no columns" in folder.failure().message

    folder.put("a.ndjson", "\n")
    assert folder.open().names == ()


def test_folders_are_columns(folder: Folder) -> None:
    folder.put("year=2025/a.ndjson", '{"a": 1}\n')
    folder.put("year=2026/a.ndjson", '{"a": 2, "b": "x"}\n')

    assert folder.rows() == [
        {"a": 1, "b": None, "year": 2025},
        {"a": 2, "b": "x", "year": 2026},
    ]


def test_columns_that_are_not_loaded_are_not_kept(folder: Folder) -> None:
    folder.put("a.ndjson", '{"a": 1, "b": {"x": 1}}\n')
    assert folder.rows(columns=ColumnsSpec(exclude=("b",))) == [{"a": 1}]

    folder.put("a.ndjson", '{"a": 1, "b": {"x": 1, "x": 2}}\n')
    assert "it has the key `x` twice" in folder.failure(columns=ColumnsSpec(exclude=("b",))).message


def test_invalid_json_column_type_is_named(folder: Folder) -> None:
    folder.put("a.ndjson", '{"a": 1}\n')

    for kind in ("struct<a int", "map<int,int>", "whole"):
        with pytest.raises(InvalidInput, match=r"`columns\.types` gives column `a`"):
            folder.open(columns=ColumnsSpec(types={"a": kind}))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("struct<a:bigint,b c:int>", None),
        ("STRUCT<`a b`: DECIMAL(12, 2), c array<int> NOT NULL>", None),
        ("struct<`a b`:decimal(12,2),c:array<int>>", "struct<`a b`:decimal(12,2),`c`:array<int>>"),
        ("struct<a:int not null>", "struct<`a`:int>"),
        ("array< map<string , array<date>> >", "array<map<string,array<date>>>"),
        ("struct<>", "struct<>"),
        ("struct<a``b:int>", "struct<`a````b`:int>"),
    ],
)
def test_names_of_types_are_read(name: str, kind: str | None) -> None:
    if kind is None:
        with pytest.raises(UnknownType):
            nested_type(name)
    else:
        assert spark_name(nested_type(name)) == kind
        assert spark_name(nested_type(kind)) == kind


def test_large_files_are_read_in_parts(folder: Folder) -> None:
    random_ = random.Random(3)  # noqa: S311
    records = [{"id": number, **json_texts.record(random_)} for number in range(200)]
    content = json_texts.written(random_, records, lines=True)
    folder.put("a.ndjson", content)

    whole = folder.open()
    parts = folder.open(parallelism=Parallelism(4, 700, 64))

    assert len(parts.splits.parts) > 10
    assert types(parts) == types(whole)
    assert rows_of(parts) == rows_of(whole)
    lines = content.splitlines(keepends=True)
    lines[-7] = "nonsense\n"
    folder.put("a.ndjson", "".join(lines))
    failed = folder.failure(parallelism=Parallelism(4, 700, 64))
    assert f"line {content.count(chr(10)) - 6:,}: " in failed.message


def test_a_file_that_changes_between_two_reads_fails(folder: Folder) -> None:
    path = folder.put("a.ndjson", '{"a": 1}\n{"a": 2}\n')
    table = folder.open()
    folder.put("a.ndjson", '{"a": 1}\n')

    with pytest.raises(LoadFailed, match=f"`{path}` was written to"):
        rows_of(table)


def test_the_types_of_thousands_of_fields_are_known_in_no_time() -> None:
    """It takes seconds for as many, and hours for more, where each field costs all others."""
    names = [f"key_{number}" for number in range(3_000)]
    values = json.dumps(dict.fromkeys(names, 1)).encode()
    recorded = f"struct<{','.join(f'{name}:bigint' for name in names)}>"
    seen = JsonEvidence(recorded=recorded)

    started = time.process_time()
    seen.add(pa.array([values], pa.binary()))

    assert nested_type(seen.infer()) == nested_type(recorded)
    assert time.process_time() - started < 10


def test_files_of_one_load_spell_a_key_in_two_ways(folder: Folder) -> None:
    folder.put("a.ndjson", '{"orderId": 1, "n": {"a": 1}}\n')
    folder.put("b.ndjson", '{"N": {"b": 2}, "orderid": 2}\n')

    assert folder.rows(columns=ColumnsSpec(types={"OrderId": "string"})) == [
        {"orderId": "1", "n": {"a": 1, "b": None}},
        {"orderId": "2", "n": {"a": None, "b": 2}},
    ]


def test_file_without_a_key_of_the_table_is_refused(folder: Folder) -> None:
    path = folder.put("b.ndjson", '{"x": 1}\n')

    failed = folder.failure(recorded={"id": "bigint"})

    assert f"`{path}` has no column in common with the table" in failed.message


@pytest.mark.parametrize(("text", "lines"), [("", True), ("\n", True), ("[]", False), ("", False)])
def test_file_without_records_has_no_column_that_types_could_name_wrongly(
    folder: Folder, text: str, lines: bool
) -> None:
    folder.put("a.json", text)

    assert folder.open(columns=ColumnsSpec(types={"id": "bigint"}), lines=lines).names == ()


def test_times_of_declared_types_keep_what_the_migrating_page_says(folder: Folder) -> None:
    times = {"closes": "string", "at": "timestamp", "local": "timestamp_ntz"}
    folder.put(
        "a.ndjson",
        '{"closes": "20:00:00+02:00", "at": "2026-02-28T10:00:00+02:00", "local": null}\n'
        '{"closes": "20:00", "at": "2026-02-28T10:00:00", "local": "2026-02-28T10:00:00"}\n',
    )

    table = folder.open(columns=ColumnsSpec(types=times))

    hours = {row["at"].hour: row["closes"] for row in rows_of(table)}
    assert hours == {8: "20:00:00+02:00", 10: "20:00"}

    folder.put("b.ndjson", '{"local": "2026-02-28T10:00:00+02:00"}\n')
    with pytest.raises(LoadFailed, match="`local`"):
        folder.open(columns=ColumnsSpec(types=times))
