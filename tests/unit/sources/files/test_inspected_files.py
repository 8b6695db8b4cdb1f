"""What is found out of files before they are loaded, and which of them are one table."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import zipfile
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from lakeload.sources.files import inspected_tables, inspection
from lakeload.sources.files.formats import text as text_files
from lakeload.sources.files.formats.base import InspectedFile
from lakeload.sources.files.inspected_tables import InspectedTable, inspect_paths
from lakeload.sources.paths import local_paths
from lakeload_jobs.aws import AwsError
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.contract.spec import DestinationSpec
from lakeload_jobs.sources.paths.file_bytes import FileBytes
from lakeload_jobs.sources.paths.file_state import FileState
from lakeload_jobs.sources.paths.local_listing import local_files

pytestmark = pytest.mark.usefixtures("inspected_here")
CSV = b"id,name,day\n1,anna,2024-02-29\n2,bert,2024-03-01\n3,,2024-03-02\n4,dora,\n"


def zipped(data: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("inside.csv", data)
    return target.getvalue()


def tables(folder: Path, *paths: str) -> tuple[InspectedTable, ...]:
    return inspect_paths(paths or (".",), folder, FileBytes(), lambda found: ())


def only(folder: Path, *paths: str) -> InspectedTable:
    (table,) = tables(folder, *paths)
    return table


@pytest.mark.parametrize(
    ("packed", "compression"),
    [(CSV, ""), (gzip.compress(CSV), "gz"), (bz2.compress(CSV), "bz2"), (lzma.compress(CSV), "xz"),
     (zipped(CSV), "zip")],
    ids=["plain", "gz", "bz2", "xz", "zip"],
)  # fmt: skip
def test_a_csv_file_is_known_by_its_content_whatever_its_name(
    packed: bytes, compression: str, tmp_path: Path
) -> None:
    (tmp_path / "people.dat").write_bytes(packed)

    table = only(tmp_path)

    assert table.error is None
    assert (table.format, table.first.compression) == ("CSV", compression)
    assert table.name == "people"
    assert table.paths == ("people.dat",)
    assert table.columns == {"id": "bigint", "name": "string", "day": "date"}
    assert table.first.rows[2] == ("3", None, "2024-03-02")
    assert (table.rows_read, table.complete) == (4, True)


def parquet(path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2], "t": ["a", None], "s": [{"a": 1}, None]}), path)


def orc(path: Path) -> None:
    pyarrow.orc.write_table(pa.table({"id": [1, 2], "t": ["a", None]}), path)


def avro(path: Path) -> None:
    fields: list[Any] = [
        {"name": "id", "type": "long"},
        {"name": "t", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ]
    schema = fastavro.parse_schema({"type": "record", "name": "row", "fields": fields})
    with path.open("wb") as file:
        fastavro.writer(file, schema, [{"id": 1, "t": None, "at": 0}], codec="deflate")


@pytest.mark.parametrize(
    ("write", "file_format", "columns"),
    [
        (parquet, "PARQUET", {"id": "bigint", "t": "string", "s": "struct<a:bigint>"}),
        (orc, "ORC", {"id": "bigint", "t": "string"}),
        (avro, "AVRO", {"id": "bigint", "t": "string", "at": "timestamp"}),
    ],
)
def test_a_file_with_types_of_its_own_is_known_by_its_content(
    write: Any, file_format: str, columns: dict[str, str], tmp_path: Path
) -> None:
    write(tmp_path / "data")

    table = only(tmp_path)

    assert (table.format, table.columns, table.error) == (file_format, columns, None)
    assert table.first.rows[0][:2] == ("1", None if file_format == "AVRO" else "a")


@pytest.mark.parametrize(
    ("text", "file_format", "columns"),
    [
        ('{"id":1,"x":1.5}\n{"id":2,"y":null}\n', "NDJSON",
         {"id": "bigint", "x": "double", "y": "string"}),
        ('[{"id":1},{"id":"a"}]', "JSON", {"id": "string"}),
        ('{"id": 1,\n "tags": ["a"]}', "JSON", {"id": "bigint", "tags": "array<string>"}),
        ('{"id": 1}{"id": 2}\n{"zip": "01234"}', "JSON", {"id": "bigint", "zip": "string"}),
    ],
)  # fmt: skip
def test_inspect_json_kind_is_detected_from_values(
    text: str, file_format: str, columns: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "data.txt").write_text(text, encoding="utf-8")

    table = only(tmp_path)

    assert (table.format, table.columns) == (file_format, columns)


def test_inspect_json_types_and_rows_equal_a_load(tmp_path: Path) -> None:
    """Also those of a file that is read in part, and of several files."""
    line = '{"n": 1.10, "o": {"z": 1.10,  "a": null}, "t": "é"}\n'
    (tmp_path / "part1.ndjson").write_text('{"n": 1}\n' + line * 4000, encoding="utf-8")
    more = '{"n": 2, "t": 7, "o": {"b": "x"}}\n' * 2
    (tmp_path / "part2.ndjson").write_text(more, encoding="utf-8")

    table = only(tmp_path)

    assert table.columns == {
        "n": "double",
        "o": "struct<z:double,a:string,b:string>",
        "t": "string",
    }
    assert table.first.rows[:2] == (("1", None, None), ("1.10", '{"z": 1.10,  "a": null}', "é"))


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"next": 2, "data": {"all items": [{"id": 1}, {"id": 2}]}}', "$.data['all items'][*]"),
        (
            '{"tags": [[{}], {}], "items": [\n' + ",".join(['{"id": 1}'] * 20_000) + "]}",
            "$.items[*]",
        ),
        ('{"id": 1, "tags": ["a"]}', None),
        ('[{"items": [{"id": 1}]}]', None),
    ],
    ids=["wrapped", "large", "object", "list"],
)
def test_the_list_in_an_object_is_named(tmp_path: Path, text: str, path: str | None) -> None:
    (tmp_path / "a.json").write_text(text, encoding="utf-8")

    guesses = {guess.option: guess for guess in only(tmp_path).guesses}

    if path is None:
        assert "records" not in guesses
    else:
        said = guesses["records"]
        assert (said.value, said.confidence) == ("$[*]", "LOW")
        assert said.instead == f'records: "{path}"'


@pytest.mark.parametrize(
    ("text", "records", "columns"),
    [
        ('{"n": 2, "data": [{"id": 1}, {"id": 2}], "next": null}', "$.data[*]", ["id"]),
        ('{"3166-1": [{"id": 1}, {"id": 2}]}', "$.3166-1[*]", ["id"]),
        ('{"all items": [{"id": 1}, {"id": 2}]}', "$['all items'][*]", ["id"]),
        ('{"data": [{"id": 1}]}', None, ["data"]),
        ('{"a": [{"id": 1}, {"id": 2}], "b": [{"x": 1}, {"x": 2}]}', None, ["a", "b"]),
        ('{"data": [{"id": 1}, 2]}', None, ["data"]),
        ('{"type": "X", "features": [' + '{"id": 1, "t": "aaaaaaaaaa"},' * 9000 + '{"id": 2}]}',
         "$.features[*]", ["id", "t"]),
        ('{"a": [' + '{"id": 1, "t": "aaaaaaaaaa"},' * 9000 + '{"id": 2}], "b": [{}, {}]}',
         None, ["a", "b"]),
    ],
    ids=["wrapped", "no word", "two words", "one record", "two lists", "mixed list", "large",
         "large and another"],
)  # fmt: skip
def test_the_records_of_a_wrapped_export_are_found(
    text: str, records: str | None, columns: list[str], tmp_path: Path
) -> None:
    (tmp_path / "data.json").write_text(text, encoding="utf-8")

    table = only(tmp_path)

    assert table.error is None
    assert table.options.get("records") == records
    assert list(table.columns) == columns


def test_inspect_large_json_object_reads_its_top_only(tmp_path: Path) -> None:
    """Its keys may be values: types of all that is nested in it would take minutes."""
    services = {
        f"service_{n}": {f"action_{n}_{m}": {"a": m} for m in range(20)} for n in range(300)
    }
    (tmp_path / "a.json").write_text(json.dumps({"version": 2, **services}), encoding="utf-8")

    table = only(tmp_path)

    assert (table.rows_read, len(table.columns)) == (1, 301)
    assert (table.columns["version"], table.columns["service_7"]) == ("bigint", "string")
    assert any("shown as text" in text for text in table.warnings)
    assert any("its 301 keys are columns of one row" in text for text in table.warnings)


def test_a_guess_from_a_later_file_is_one_of_the_table(tmp_path: Path) -> None:
    (tmp_path / "day1.csv").write_text("id,v\n1,5\n2,6\n", encoding="utf-8")
    (tmp_path / "day2.csv").write_text("id,v\n3,NA\n4,7\n", encoding="utf-8")

    table = only(tmp_path)

    assert table.options == {"header": True, "null_values": ("NA",)}
    assert [guess.value for guess in table.guesses if guess.option == "null_values"] == [("NA",)]


def test_a_zero_byte_in_a_value_is_no_mark_of_binary_data(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"id,name\n1,an\0na\n2,berta\n")

    table = only(tmp_path)

    assert (table.format, table.error) == ("CSV", None)
    assert table.first.rows == (("1", "an\0na"), ("2", "berta"))


def test_csv_whose_first_value_begins_like_json_is_csv(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("{id},[t]\n1,a\n2,b\n", encoding="utf-8")

    assert only(tmp_path).columns == {"{id}": "bigint", "[t]": "string"}


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ('{"script": """\n for (x in y) {}\n"""}\n', "line 1: it is not JSON"),
        ('{\n "a": 1, // first\n "b": 2\n}\n', "line 1: it is not JSON"),
    ],
)
def test_inspect_broken_json_is_json_by_its_name_with_a_warning(
    content: str, where: str, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text(content, encoding="utf-8")

    table = only(tmp_path)

    assert table.format == "JSON"
    assert any(where in text for text in table.warnings), table


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"SQLite format 3\0rest", "it is an SQLite database"),
        (b"%PDF-1.7", "it is a PDF"),
        (b"<?xml version='1.0'?><a/>", "it is XML"),
        (bytes(range(256)) * 20, "it is binary data of no known format"),
    ],
)
def test_inspect_non_data_file_is_an_error_with_its_kind(
    content: bytes, what: str, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_bytes(content)

    error = only(tmp_path).error

    assert isinstance(error, LoadFailed)
    assert what in error.message


@pytest.mark.parametrize(
    "name", ["parent", "PARENT", "PAR1", "ORC_ID", "Object", "gif8", "GIF87a", "ARROW1", "FEA1"]
)
def test_a_name_of_a_column_is_no_mark_of_a_format(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"{name},größe\n1,x\n", encoding="utf-8")

    table = only(tmp_path)

    assert (table.error, table.format) == (None, "CSV")


def test_orc_whose_data_begins_with_text_is_orc(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"ORC" + b"only text, " * 9 + b"\x00\x02ORC\x02")

    assert "the ORC file is damaged" in str(only(tmp_path).error)


@pytest.mark.parametrize("name", ["README.md", "LICENSE", "load.py", "config.yml"])
def test_inspect_ignores_files_beside_data(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("a,b\n1,2\n", encoding="utf-8")

    assert "text or code" in str(only(tmp_path).error)


def test_an_excel_workbook_is_named_as_one(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as archive:
        archive.writestr("[Content_Types].xml", "<x/>")
        archive.writestr("xl/workbook.xml", "<x/>")

    error = only(tmp_path).error

    assert error is not None
    assert "it is an Excel workbook" in error.message
    assert error.hint == "save its sheets as CSV"


def test_a_zip_file_of_several_files_is_an_error(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.csv", CSV)
        archive.writestr("b.csv", CSV)

    assert "contains 2 files" in str(only(tmp_path).error)


def test_a_large_file_is_read_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "MAX_BYTES", 1 << 20)
    with (tmp_path / "big.csv").open("w", encoding="utf-8") as file:
        file.write("id,t\n")
        file.writelines(f"{number},{'x' * 90}\n" for number in range(100_000))

    table = only(tmp_path)

    assert not table.complete
    assert 8_000 < table.rows_read < 60_000


@pytest.mark.parametrize("wide", [True, False])
def test_few_rows_of_very_many_columns_are_read(
    wide: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files, "_WIDE", 3 if wide else 4)
    monkeypatch.setattr(text_files, "_MOST_VALUES", 20)
    (tmp_path / "a.csv").write_text("a,b,c,d\n" + "1,2,3,x\n" * 9)

    table = only(tmp_path)

    assert (table.rows_read, table.complete) == ((5, False) if wide else (9, True))
    assert table.columns == {"a": "bigint", "b": "bigint", "c": "bigint", "d": "string"}


LATE = ["1,2024-05-06,x\n"] * 2_000


@pytest.mark.parametrize(
    ("line", "option", "columns"),
    [
        ("NA,NA,NA\n", {"null_values": ("NA",)}, ("bigint", "date", "string")),
        ("2,NULL,y\n", {"null_values": ("NULL",)}, ("bigint", "date", "string")),
        ("\\N,\\N,x\n", {"null_values": ("\\N",)}, ("bigint", "date", "string")),
        ("2,2024-05-06,NA\n", {}, ("bigint", "date", "string")),
        ("2,never,NA\n", {}, ("bigint", "string", "string")),
        (
            "\\N,\\N,x\n1,2024-05-06,a\\,b\n",
            {"backslash_escapes": True},
            ("bigint", "date", "string"),
        ),
    ],
)
def test_null_texts_far_from_the_beginning_are_found(
    line: str,
    option: dict[str, Any],
    columns: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inspection, "START_BYTES", 1 << 14)
    assert sum(map(len, LATE)) > 1 << 14
    (tmp_path / "a.csv").write_text("n,day,t\n" + "".join([*LATE, line, *LATE]))

    table = only(tmp_path)

    assert (table.options, tuple(table.columns.values())) == ({"header": True, **option}, columns)
    assert {guess.option for guess in table.guesses} >= option.keys()


def test_windows_1252_is_suggested_and_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("id;ort\n1;Nördlingen\n2;Köln\n".encode("cp1252"))

    table = only(tmp_path)

    assert table.options == {"separator": ";", "header": True, "encoding": "windows-1252"}
    assert table.first.rows[0] == ("1", "Nördlingen")


def test_ragged_and_mixed_and_doubled_columns_are_warnings(tmp_path: Path) -> None:
    lines = ["id,id,n", *(f"{n},{n},{n}" for n in range(20)), "1,2", "1,2,n/a or not"]
    (tmp_path / "a.csv").write_text("\n".join(lines), encoding="utf-8")

    warnings = only(tmp_path).warnings

    assert any("several columns named `id`" in text for text in warnings)
    assert (
        "line 22: it has 2 values, and 3 are expected: a load fails until it is fixed" in warnings
    )
    assert (
        f"column `n` is text: most of its values are numbers, and `n/a or not` in "
        f"`{tmp_path / 'a.csv'}`, line 23, is no `bigint`; "
        "with `columns.types: {n: bigint}` it is a bad value"
    ) in warnings


def test_records_of_separators_alone_are_a_warning(tmp_path: Path) -> None:
    rows = "".join(f"{n};b;{n}\n;;;;;;\n" for n in range(20))
    (tmp_path / "a.csv").write_text(f";;;;;;\nid;name;v\n{rows}", encoding="utf-8")

    table = only(tmp_path)

    assert table.options == {"separator": ";", "skip_rows": 1, "header": True}
    assert table.columns == {"id": "bigint", "name": "string", "v": "bigint"}
    assert table.rows_read == 40
    assert table.warnings == (
        "line 4 has nothing but separators, and not as many as the header: it is a row of nulls "
        "(and 19 more)",
    )


def test_value_that_makes_numbers_text_is_named(tmp_path: Path) -> None:
    """Null texts are no reason, and the value may be in a later file."""
    numbers = [f"{number},{number}.5" for number in range(20)]
    (tmp_path / "d1.csv").write_text("\n".join(["id,n", *numbers, "1,NA"]), encoding="utf-8")
    lines = ["id,n", *numbers, "1,NA", "2,0.12345678901234567890"]
    (tmp_path / "d2.csv").write_text("\n".join(lines), encoding="utf-8")
    records = [*(f'{{"n": {number}}}' for number in range(20)), '{"n": "x"}']
    (tmp_path / "j.json").write_text("\n".join(records), encoding="utf-8")

    csv, ndjson = tables(tmp_path)

    assert csv.warnings == (
        "column `n` is text: most of its values are numbers, and `0.12345678901234567890` in "
        f"`{tmp_path / 'd2.csv'}`, line 23, has more digits than a `double`; "
        "`columns.types: {n: double}` rounds it",
    )
    assert ndjson.warnings == (
        "column `n` is text: most of its values are numbers, and "
        f'`"x"` in `{tmp_path / "j.json"}`, line 21, is no `bigint`; '
        "with `columns.types: {n: bigint}` it is a bad value",
    )


def test_numbers_with_17_digits_are_doubles(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,n\n1,0.5\n2,40300.619960000004\n", encoding="utf-8")
    (tmp_path / "b.json").write_text('[{"n": 0.5}, {"n": 8.3945900000000009}]', encoding="utf-8")

    assert [table.columns["n"] for table in tables(tmp_path)] == ["double", "double"]


@pytest.mark.parametrize(
    ("days", "pattern"),
    [
        (["31.12.2024", "01.01.2025"], "dd.MM.yyyy"),
        (["12/31/2024", "1/2/2025"], "M/d/yyyy"),
        (["01/02/2024", "03/04/2024"], None),
        (["1/11/99", "12/31/99"], None),
        (["24.12.30", "25.01.31"], None),
    ],
)
def test_dates_get_a_pattern_where_it_is_clear(
    days: list[str], pattern: str | None, tmp_path: Path
) -> None:
    text = "id,day\n" + "".join(f"{n},{day}\n" for n, day in enumerate(days))
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")

    table = only(tmp_path)

    assert table.options.get("date_format") == pattern
    assert table.columns["day"] == ("date" if pattern else "string")


def test_inspect_years_of_two_digits_stay_text_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,day\n1,1/11/99\n2,12/31/18\n", encoding="utf-8")

    table = only(tmp_path)

    assert table.columns["day"] == "string"
    assert table.warnings == (
        "column `day` is text: its dates, such as `1/11/99`, have years of two digits, which "
        "`date_format` with `yy` would read as 2000 to 2099",
    )


def test_files_whose_names_differ_in_digits_are_one_table(tmp_path: Path) -> None:
    for month in ("01", "02", "03"):
        (tmp_path / f"orders_2024-{month}.csv").write_bytes(CSV)
    (tmp_path / "orders_2024-03.csv").write_bytes(b"id,name,day,extra\n9,x,2024-01-01,7\n")
    (tmp_path / "people.csv").write_text("who,age\na,1\nb,2\n", encoding="utf-8")

    orders, people = tables(tmp_path)

    assert (orders.name, orders.paths, orders.files) == ("orders", ("orders_*-*.csv",), 3)
    assert orders.columns == {"id": "bigint", "name": "string", "day": "date", "extra": "bigint"}
    assert (people.name, people.paths) == ("people", ("people.csv",))


def test_files_of_a_folder_with_the_same_columns_are_one_table(tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    folder.mkdir()
    for name in ("part-aa", "part-bb-x", "other"):
        (folder / f"{name}.csv").write_bytes(CSV)

    table = only(tmp_path, "orders")

    assert (table.name, table.paths, table.files, table.rows_read) == ("orders", ("orders",), 3, 12)


def test_text_beside_the_files_of_a_folder_leaves_them_one_table(tmp_path: Path) -> None:
    for name in ("anna.csv", "bert.csv"):
        (tmp_path / name).write_bytes(CSV)
    (tmp_path / "README.md").write_text("# Data\n")

    found = tables(tmp_path)

    assert [table.paths for table in found if table.error is None] == [("*.csv",)]
    assert [table.paths for table in found if table.error] == [("README.md",)]


@pytest.mark.parametrize("path", [".", "*.csv"])
def test_files_without_rows_are_of_the_table_of_the_others(path: str, tmp_path: Path) -> None:
    for name, text in (
        ("alpha", ""),
        ("beta", "id,name\n"),
        ("gamma", "id,name\n1,a\n"),
        ("delta", "\n\n"),
        ("zeta", "id,name\n2,b\n"),
    ):
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")

    table = only(tmp_path, path)

    assert (table.files, table.rows_read) == (5, 2)
    assert table.columns == {"id": "bigint", "name": "string"}
    assert table.options == {"header": True}
    assert [guess for guess in table.guesses if guess.confidence == "LOW"] == []


def test_a_blank_file_among_json_is_of_its_table(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text("\n", encoding="utf-8")
    (tmp_path / "b.ndjson").write_text('{"id": 1}\n{"id": 2}\n', encoding="utf-8")

    table = only(tmp_path)

    assert (table.format, table.files, table.columns) == ("NDJSON", 2, {"id": "bigint"})
    assert table.guesses == ()


def test_files_of_a_pattern_are_one_table_unless_their_formats_differ(tmp_path: Path) -> None:
    (tmp_path / "jan.csv").write_bytes(CSV)
    (tmp_path / "feb.csv").write_bytes(CSV)
    (tmp_path / "mar.json").write_text(json.dumps({"id": 1}), encoding="utf-8")

    table = only(tmp_path, "*.csv")
    months = tables(tmp_path, "*")

    assert (table.paths, table.files) == (("*.csv",), 2)
    assert [(found.format, found.files) for found in months] == [("CSV", 2), ("JSON", 1)]


def named(folder: Path, table: InspectedTable) -> set[str]:
    """Return the names of all files that a load of the table reads."""
    paths = (one for path in table.paths for one in local_paths(folder, path))
    return {str(Path(file.path).relative_to(folder)) for file in local_files(list(paths))}


@pytest.mark.parametrize("path", [".", "*.csv"])
def test_each_of_many_files_is_of_a_table_where_one_differs(path: str, tmp_path: Path) -> None:
    names = [f"{number:02}-2024.csv" for number in range(1, 15)]
    for name in (*names, "april.csv"):
        (tmp_path / name).write_text("x,y,z\n1,2,3\n" if name == names[2] else "id,name\n1,a\n")

    found = {name for table in tables(tmp_path, path) for name in named(tmp_path, table)}

    assert found == {*names, "april.csv"}


def test_files_that_were_not_opened_and_left_out_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspected_tables, "_MOST_OPENED", 1)
    for number in range(1, 15):
        text = "x,y,z\n1,2,3\n" if number == 3 else "id,name\n1,a\n"
        (tmp_path / f"{number:02}-2024.csv").write_text(text)

    first, _ = tables(tmp_path)

    assert "3 files beside these are left out: the files differ, and only 11 were opened" in (
        first.warnings
    )


def test_table_of_a_folder_has_no_files_of_a_table_below(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    for name in ("anna.csv", "bert.csv"):
        (tmp_path / name).write_text("id,name\n1,a\n")
    (tmp_path / "old" / "cities.csv").write_text("x,y,z\n1,2,3\n")

    whole, below = tables(tmp_path)

    assert named(tmp_path, whole) == {"anna.csv", "bert.csv"}
    assert named(tmp_path, below) == {"old/cities.csv"}


def test_folders_with_values_are_columns_of_one_table(tmp_path: Path) -> None:
    for day in ("2024-01-01", "2024-01-02"):
        folder = tmp_path / "events" / f"day={day}"
        folder.mkdir(parents=True)
        (folder / "a.csv").write_bytes(b"id\n1\n")

    table = only(tmp_path, "events")

    assert (table.name, table.paths) == ("events", ("events",))
    assert table.columns == {"id": "bigint", "day": "date"}
    assert table.rows == ({"id": "1", "day": "2024-01-01"},)


def test_names_of_tables_differ_in_the_lake(tmp_path: Path) -> None:
    (tmp_path / "A-b.csv").write_bytes(CSV)
    (tmp_path / "a_b.json").write_text('{"id": 1}', encoding="utf-8")

    assert [table.name for table in tables(tmp_path)] == ["A-b", "a_b_json"]


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["orders/returns/r1.csv", "orders/returns/r2.csv"], ["returns"]),
        (["orders/r1.csv", "orders/r2.csv", "orders/2024/q1.csv"], ["orders", "q1"]),
        (["orders/r1.csv"], ["r1"]),
        (["orders/ret1.csv", "orders/ret2.csv"], ["ret"]),
        (["orders/r1.csv", "orders/r2.csv", "orders/other.csv"], ["other", "r"]),
        (["a/r1.csv", "a/r2.csv", "b/a/q1.csv", "b/a/q2.csv"], ["a", "a_csv"]),
    ],
)
def test_files_that_share_a_letter_alone_have_the_name_of_their_folder(
    files: list[str], names: list[str], tmp_path: Path
) -> None:
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        text = "x,y,z\n1,2,3\n" if "other" in file else "id,name\n1,a\n"
        (tmp_path / file).write_text(text, encoding="utf-8")

    assert sorted(table.name for table in tables(tmp_path)) == names


def test_data_in_two_formats_is_two_tables_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "orders-2024.csv").write_text("id,v\n1,2\n2,3\n", encoding="utf-8")
    (tmp_path / "orders-2025.json").write_text('{"id":1,"v":2}\n{"id":2}\n', encoding="utf-8")

    first, second = tables(tmp_path)

    assert (first.name, second.name) == ("orders-2024", "orders-2025")
    assert first.warnings == ()
    (warning,) = second.warnings
    assert warning.startswith("its files are NDJSON, and those of table `orders-2024` CSV")


def test_names_of_one_file_in_several_formats_have_the_format(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("id,v\n1,2\n2,3\n", encoding="utf-8")
    (tmp_path / "orders.json").write_text('{"id":1,"v":2}\n{"id":2}\n', encoding="utf-8")
    parquet(tmp_path / "orders.parquet")

    names = {table.paths[0]: table.name for table in tables(tmp_path)}

    assert names == {
        "orders.csv": "orders",
        "orders.json": "orders_ndjson",
        "orders.parquet": "orders_parquet",
    }


def test_parquet_files_whose_types_do_not_unite_are_an_error(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "part1.parquet")
    pq.write_table(pa.table({"id": ["a"]}), tmp_path / "part2.parquet")

    error = only(tmp_path).error

    assert error is not None
    assert "`id`" in error.message


def test_inspect_missing_path_raises_the_error_of_a_load(tmp_path: Path) -> None:
    with pytest.raises(LoadFailed, match="there is no file or folder"):
        tables(tmp_path, "missing.csv")


def write_damaged(path: Path) -> None:
    """Write a file whose footer is as it should be, and whose first page is not."""
    pq.write_table(pa.table({"id": list(range(1000))}), path, compression="zstd")
    content = bytearray(path.read_bytes())
    content[30:60] = bytes(30)
    path.write_bytes(content)


DEEP = 100_000


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "decompression failed"),
        (b"[" * DEEP + b"]" * DEEP, "line 1: its values are nested more than 500 deep"),
        (b'{"a":' * DEEP + b"1" + b"}" * DEEP, "nested more than 500 deep"),
        (b'[{"a":' * DEEP, "nested more than 500 deep"),
        (b'{"a": [{"b": 1}], "c": ' + b"[" * DEEP, "nested more than 500 deep"),
    ],
    ids=["damaged page", "lists", "objects", "cut", "wrapped"],
)
def test_inspect_unreadable_file_is_an_error_and_the_others_are_inspected(
    content: bytes | None, said: str, tmp_path: Path
) -> None:
    if content is None:
        write_damaged(tmp_path / "bad.data")
    else:
        (tmp_path / "bad.data").write_bytes(content)
    (tmp_path / "good.csv").write_bytes(CSV)

    bad, good = tables(tmp_path)

    assert isinstance(bad.error, LoadFailed)
    assert f"reading `{tmp_path}/bad.data`: " in bad.error.message
    assert said in bad.error.message
    assert bad.error.hint
    assert (good.name, good.error) == ("good", None)


def test_inspect_values_of_many_digits_are_text(tmp_path: Path) -> None:
    digits = "9" * 5000
    (tmp_path / "a.csv").write_text(f"id,v\n1,{digits}\n2,3\n", encoding="utf-8")
    (tmp_path / "b.ndjson").write_text(f'{{"id": 1, "v": {digits}}}\n' * 2, encoding="utf-8")
    (tmp_path / "c.json").write_text(f'[{{"id": 1, "v": {digits}}}]', encoding="utf-8")

    found = tables(tmp_path)

    assert [table.format for table in found] == ["CSV", "NDJSON", "JSON"]
    assert [table.columns for table in found] == [{"id": "bigint", "v": "string"}] * 3
    assert [table.first.rows[0] for table in found] == [("1", digits)] * 3


def test_inspect_bug_with_one_file_is_an_error_of_that_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(file: Any, file_format: Any, files: Any) -> InspectedFile:
        raise RecursionError("too deep")

    monkeypatch.setattr(inspection, "inspect_typed", fail)
    parquet(tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_bytes(CSV)

    bad, good = tables(tmp_path)

    assert "a bug in lakeload: RecursionError in test_inspected_files.py" in str(bad.error)
    assert good.error is None


def test_inspect_object_that_may_not_be_read_is_an_error_of_that_object(tmp_path: Path) -> None:
    class Denied(FileBytes):
        def stream(self, file: FileState, start: int = 0) -> Any:
            if Path(file.path).name == "denied.csv":
                raise AwsError("no", code="AccessDenied", status=403)
            return super().stream(file, start)

    (tmp_path / "denied.csv").write_bytes(CSV)
    (tmp_path / "good.csv").write_bytes(CSV)

    denied, good = inspect_paths((".",), tmp_path, Denied(), lambda found: ())

    assert isinstance(denied.error, AwsError)
    assert good.error is None


def test_inspect_names_what_cannot_be_listed_and_goes_on(tmp_path: Path) -> None:
    for name in ("a1", "a2"):
        (tmp_path / f"{name}.csv").write_bytes(CSV)
    (tmp_path / "gone.csv").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe.csv")

    good, gone, pipe = tables(tmp_path, "*.csv")

    assert (good.error, good.paths) == (None, ("a*.csv",))
    assert "gone.csv` is a link to `nowhere`, which is not there" in str(gone.error)
    assert (pipe.name, pipe.paths) == ("pipe", ("pipe.csv",))
    assert "pipe.csv` is a named pipe" in str(pipe.error)


def test_inspect_counts_a_file_that_a_link_names_again_once(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(CSV)
    (tmp_path / "current.csv").symlink_to("a.csv")

    table = only(tmp_path, "*.csv")

    assert (table.files, table.rows_read) == (1, 4)
    assert "leads to" in " ".join(table.warnings)


def test_inspect_names_files_whose_names_are_no_utf8_by_globs(tmp_path: Path) -> None:
    for name, content in ((b"caf\xe9.csv", b"x;y\n1;2\n"), (b"b\xe9.csv", CSV), (b"bo.csv", CSV)):
        Path(os.fsdecode(bytes(tmp_path) + b"/" + name)).write_bytes(content)

    found = {table.name: table for table in tables(tmp_path, "caf*", "b?.csv")}
    alone = tables(tmp_path, "caf*", ".")

    assert {name: table.paths for name, table in found.items()} == {
        "caf": ("caf*",),
        "b": ("b?.csv",),
    }
    assert [table.paths for table in alone if table.name == "caf"] == [("caf*",)]
    (other,) = (table for table in tables(tmp_path) if table.error is not None)
    assert other.paths == ("b?.csv",)
    assert f"the path names `{tmp_path}/bo.csv` too" in str(other.error)


DIGITS = b"9" * 300_000


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "content",
    [
        b"id,v\n1," + DIGITS + b"x\n2,3\n",
        b"id,v\n1,2\n2," + DIGITS + b"x\n",
        b"id,v\n" + b"1,2\n" * 20 + b"1," + DIGITS + b".x\n",
        b"id,v\n1,\xe9\n2," + b"a" * 300_000 + b"\n",
    ],
)
def test_inspect_takes_no_time_for_a_long_value(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(content)

    assert only(tmp_path).columns["v"] == "string"


def test_inspect_zip_file_of_another_version_is_damaged(tmp_path: Path) -> None:
    content = bytearray(zipped(CSV))
    directory = content.index(b"PK\x01\x02")
    content[directory + 6] = 148
    (tmp_path / "a.zip").write_bytes(content)

    assert "the zip file is damaged: zip file version 14.8" in str(only(tmp_path).error)


def test_inspect_paths_reports_each_file_that_is_opened(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{'abc'[number]}.csv").write_text(f"id,{'xyz'[number]}\n1,2\n")
    reports: list[tuple[int, int]] = []
    opener = FileBytes(DestinationSpec(bucket="", region="us-east-1"), "test")
    inspect_paths(["."], tmp_path, opener, lambda _: (), lambda *at: reports.append(at))
    assert reports == [(0, 3), (1, 3), (2, 3), (3, 3)]
