"""Tables of CSV files: what docs/csv-files.md says of them, and large files in parts."""

from __future__ import annotations

import csv
import gzip
import io
import pickle
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lakeload_jobs.contract.errors import InvalidInput, LoadFailed
from lakeload_jobs.contract.spec import ColumnsSpec
from lakeload_jobs.rows.tracking import BAD_VALUES_HELPER
from lakeload_jobs.sources.files.formats.csv.reader import header_names
from lakeload_jobs.sources.files.text.splits import Scan, Scanned, TextPart
from lakeload_jobs.sources.files.text.table import TextTable
from lakeload_jobs.sources.part_sizes import ONE_TASK, Parallelism
from lakeload_jobs.sources.paths.local_listing import local_files
from tests.environments import many
from tests.text_tables import csv_table


def here(scan: Scan, parts: Sequence[TextPart]) -> list[Scanned]:
    """Scan as tasks do: what travels is pickled on both ways."""
    return [
        pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(scan))(part)))  # noqa: S301
        for part in parts
    ]


@dataclass
class Folder:
    """Files of a test, and what is read of them."""

    path: Path

    def put(self, name: str, content: str | bytes) -> str:
        """Write a file and return its path."""
        place = self.path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(place)

    def open(
        self,
        options: Mapping[str, str] | None = None,
        parallelism: Parallelism = ONE_TASK,
        **changes: Any,
    ) -> TextTable:
        """Open all files; they have a header."""
        files = tuple(sorted(local_files([str(self.path)]), key=lambda file: file.path))
        given = {"header": "true", **(options or {})}
        return csv_table(files, given, **changes).split(here, parallelism)

    def rows(self, options: Mapping[str, str] | None = None, **changes: Any) -> list[Any]:
        """Return the rows of all files as dicts, in order."""
        return rows_of(self.open(options, **changes))

    def failure(self, options: Mapping[str, str] | None = None, **changes: Any) -> LoadFailed:
        """Return why the files cannot be read."""
        with pytest.raises(LoadFailed) as failed:
            self.open(options, **changes)
        return failed.value


def rows_of(table: TextTable) -> list[Any]:
    """Read the parts of a table, and check that each has the rows that were counted."""
    rows: list[Any] = []
    counts = table.splits.counts
    assert counts is not None
    for part, count in zip(table.splits.parts, counts, strict=True):
        batches = [batch.to_pylist() for batch in table.splits.read(part)]
        assert sum(map(len, batches)) == count
        rows += [row for batch in batches for row in batch]
    return rows


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def types(table: TextTable) -> dict[str, str]:
    return {field.name: str(field.type) for field in table.schema}


def test_types_come_from_all_values(folder: Folder) -> None:
    folder.put("a.csv", "id,zip,price,day,at,name\n1,01234,1.50,2026-01-02,2026-01-02 03:04:05,x\n")

    assert types(folder.open()) == {
        "id": "int64",
        "zip": "string",
        "price": "double",
        "day": "date32[day]",
        "at": "timestamp[us, tz=UTC]",
        "name": "string",
    }


def test_line_breaks_in_quotes_are_read(folder: Folder) -> None:
    folder.put("a.csv", 'id,text\n1,"one\ntwo"\r\n2,"a ""b"", c"\n')

    assert folder.rows() == [{"id": 1, "text": "one\ntwo"}, {"id": 2, "text": 'a "b", c'}]


def test_empty_values_are_null_quoted_or_not(folder: Folder) -> None:
    folder.put("a.csv", 'id,text\n1,\n2,""\n')

    assert [row["text"] for row in folder.rows()] == [None, None]
    assert [row["text"] for row in folder.rows({"quoted_empty": "TEXT"})] == [None, ""]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"null_values": "NA"}, [None, None, "-", None]),
        ({"null_values": '["NA", "-"]'}, [None, None, None, None]),
        ({"nullValue": "NA"}, [None, None, "-", ""]),
    ],
)
def test_null_texts_are_null_quoted_or_not(
    folder: Folder, options: dict[str, str], expected: list[Any]
) -> None:
    folder.put("a.csv", 'id,text\n1,NA\n2,"NA"\n3,-\n4,""\n')

    assert [row["text"] for row in folder.rows(options)] == expected


def test_headers_are_united_by_name(folder: Folder) -> None:
    folder.put("1.csv", "id,a\n1,x\n")
    folder.put("2.csv", "b,id,a\n2.5,2,y\n")
    folder.put("3.csv", "id\n3\n")
    table = folder.open()

    assert table.names == ("id", "a", "b")
    assert rows_of(table) == [
        {"id": 1, "a": "x", "b": None},
        {"id": 2, "a": "y", "b": 2.5},
        {"id": 3, "a": None, "b": None},
    ]
    assert table.warnings == (
        f"column `a` is not in `{folder.path}/3.csv`: it is null in their rows",
        f"column `b` is not in `{folder.path}/1.csv` and 1 more: it is null in their rows",
    )


def test_records_of_separators_alone_are_rows_of_nulls(folder: Folder) -> None:
    folder.put("a.csv", "id;n;t\n1;2;x\n;;;;;\n;\n;;\n2;3;y\n;;;;;")
    folder.put("b.csv", "id;n;t\n3;4;z\n;;\n")
    table = folder.open({"separator": ";"})

    nothing = {"id": None, "n": None, "t": None}
    assert rows_of(table) == [
        {"id": 1, "n": 2, "t": "x"},
        nothing,
        nothing,
        nothing,
        {"id": 2, "n": 3, "t": "y"},
        nothing,
        {"id": 3, "n": 4, "t": "z"},
        nothing,
    ]
    assert table.warnings == (
        f"`{folder.path}/a.csv`: line 3 has nothing but separators, and not as many as the header: "
        "it is a row of nulls (and 2 more)",
    )


def test_first_record_of_separators_alone_is_named_by_its_line_in_the_file(folder: Folder) -> None:
    lines = ["a,b", *(f"{n}," + "x" * 2000 for n in range(9)), ",,,", "2,y", ",,,"]
    path = folder.put("a.csv", "\n".join(lines))
    table = folder.open(parallelism=Parallelism(4, 4096, 64))

    assert len(rows_of(table)) == 12
    (warning,) = table.warnings
    assert warning.startswith(f"`{path}`: line 11 has nothing but separators")
    assert warning.endswith("(and 1 more)")


def test_record_of_empty_texts_or_without_all_separators_is_broken(folder: Folder) -> None:
    folder.put("a.csv", 'id,n\n1,2\n"","",""\n')

    assert "line 3: it has 3 values" in folder.failure({"quoted_empty": "TEXT"}).message
    assert [row["id"] for row in folder.rows()] == [1, None]


def test_header_of_separators_alone_has_a_warning_that_works(folder: Folder) -> None:
    path = folder.put("a.csv", "title\n,,\n\n,,\nid,n,t\n1,2,x\n")

    (warning,) = folder.open({"skip_rows": "1"}).warnings
    assert warning == (
        f"`{path}` has a header of separators alone: if line 5 has the names, "
        "set the reader option `skip_rows: 4`"
    )
    assert folder.rows({"skip_rows": "4"}) == [{"id": 1, "n": 2, "t": "x"}]


@pytest.mark.parametrize(
    ("header", "known", "names"),
    [
        (["a", "b"], [], ["a", "b"]),
        (["", "a", ""], [], ["_", "a", "_1"]),
        (["name", "name", "NAME"], [], ["name", "name_1", "NAME"]),
        (["name", "name", "name_1"], [], ["name", "name_2", "name_1"]),
        (["", "a", "name", "name"], ["_c0", "name2", "name3"], ["_c0", "a", "name2", "name3"]),
        (["", "name", "name"], ["_c0", "a"], ["_", "name", "name_1"]),
    ],
)
def test_empty_and_doubled_names_are_numbered(
    header: list[str], known: list[str], names: list[str]
) -> None:
    assert header_names(header, known) == tuple(names)


@pytest.mark.parametrize(
    ("text", "options", "mark"),
    [
        (b"id;v\n1;x\n", {}, ";"),
        (b"id\tv\n1\tx\n", {}, "\\t"),
        (b"id,v\n1,x\n", {"separator": ";"}, ","),
    ],
)
def test_one_column_with_a_separator_in_its_name_has_a_warning(
    folder: Folder, text: bytes, options: dict[str, str], mark: str
) -> None:
    folder.put("a.csv", text.decode())

    (warning,) = folder.open(options).warnings
    assert warning.startswith(f"`{folder.path}/a.csv` has one column, `id")
    assert f"set the reader option `separator: '{mark}'`" in warning


def test_the_index_of_pandas_and_twins_are_loaded(folder: Folder) -> None:
    folder.put("a.csv", ",a,a\n0,x,y\n")
    table = folder.open()

    assert rows_of(table) == [{"_": 0, "a": "x", "a_1": "y"}]
    assert table.warnings == (
        f"`{folder.path}/a.csv` has several columns named `a`: one of them is `a_1`",
    )


def test_many_columns_of_one_name_are_one_warning_with_their_count(folder: Folder) -> None:
    folder.put("a.csv", ",".join(["a"] * 2000) + "\n" + ",".join(["1"] * 2000) + "\n")

    assert folder.open().warnings == (
        f"`{folder.path}/a.csv` has several columns of one name: 1,999 of them have a number, the "
        "first ones are `a_1`, `a_2`, `a_3`",
    )


def test_names_that_spark_gave_are_kept(folder: Folder) -> None:
    folder.put("a.csv", ",a\n0,x\n")

    assert folder.rows(recorded={"_c0": "int", "a": "string"}) == [{"_c0": 0, "a": "x"}]


def test_without_a_header_columns_are_numbered(folder: Folder) -> None:
    folder.put("a.csv", "1,x\n")
    folder.put("b.csv", "2\n")

    assert folder.rows({"header": "false"}) == [{"_c0": 1, "_c1": "x"}, {"_c0": 2, "_c1": None}]


@pytest.mark.parametrize(
    ("options", "content"),
    [
        ({"sep": ";"}, "id;text\n1;x\n"),
        ({"separator": "\\t"}, "id\ttext\n1\tx\n"),
        ({"delimiter": "||"}, "id||text\n1||x\n"),
        ({"separator": "§"}, "id§text\n1§x\n"),
        ({"quote": "'"}, "id,text\n1,'x'\n"),
        ({"quote": "'"}, "'id','text'\n'1','x'\n"),
        ({"comment": "#"}, "# by us\nid,text\n# and\n1,x\n#"),
        ({"skip_rows": "2"}, '"by\nus,\r\nid,text\n1,x\n'),
        ({"trim_left": "true", "trim_right": "true"}, 'id , text\n 1, "x" \n'),
        ({"trailing_separator": "true"}, "id,text,\n1,x,\n"),
        ({"encoding": "utf-16"}, "id,text\n1,x\n".encode("utf-16-be")),
        ({}, "\ufeffid,text\n1,x\n"),
        ({}, "id,text\n1,x\n".encode("utf-16")),
        ({}, gzip.compress(b"id,text\n1,x\n", mtime=0)),
        ({}, "id,text\r1,x\r"),
        ({}, "\n\nid,text\n\n1,x\n\n"),
        ({"multiLine": "true", "lineSep": "\n", "enforceSchema": "true"}, "id,text\n1,x"),
    ],
)
def test_files_are_read_as_the_options_say(
    folder: Folder, options: dict[str, str], content: str | bytes
) -> None:
    folder.put("a.csv", content)

    assert folder.rows(options) == [{"id": 1, "text": "x"}]


def test_a_quote_may_be_escaped(folder: Folder) -> None:
    folder.put("a.csv", 'id,text\n1,"a \\"b\\" \\\\ \\n ""c"""\n')

    assert folder.rows({"escape": "\\"})[0]["text"] == 'a "b" \\ \\n "c"'


def test_quotes_inside_unquoted_values_are_kept(folder: Folder) -> None:
    folder.put("a.csv", 'id,text\n1,"5\n2,"6""\n')

    assert [row["text"] for row in folder.rows({"quote": ""})] == ['"5', '"6""']


def test_marks_and_patterns_are_those_of_the_options(folder: Folder) -> None:
    folder.put("a.csv", 'price,day\n"1.234,5",31.12.2026\n')

    table = folder.open({"decimal_mark": ",", "thousands_mark": ".", "date_format": "dd.MM.yyyy"})

    assert types(table) == {"price": "double", "day": "date32[day]"}
    assert rows_of(table)[0]["price"] == 1234.5


def test_text_alone_is_inferred_on_demand(folder: Folder) -> None:
    folder.put("a.csv", "id,day\n1,2026-01-01\n")

    assert folder.rows({"infer": "STRINGS"}) == [{"id": "1", "day": "2026-01-01"}]
    assert folder.rows({"inferSchema": "false"}) == [{"id": "1", "day": "2026-01-01"}]


def test_declared_types_override_inferred_ones(folder: Folder) -> None:
    folder.put("a.csv", "zip,price\n1,1.5\n")
    columns = ColumnsSpec(types={"zip": "string", "price": "decimal(9,2)"})

    assert folder.rows(columns=columns) == [{"zip": "1", "price": Decimal("1.50")}]


def test_settings_may_name_columns_as_the_table_does(folder: Folder) -> None:
    folder.put("a.csv", "Order ID,Left Out\n007,x\n")
    columns = ColumnsSpec(exclude=("left_out",), types={"order_id": "string"})

    assert folder.rows(columns=columns) == [{"Order ID": "007"}]


def test_recorded_types_hold_what_fits(folder: Folder) -> None:
    folder.put("a.csv", "a,b,c\n007,1,\n")

    assert types(folder.open(recorded={"a": "int", "b": "double", "c": "date"})) == {
        "a": "int32",
        "b": "double",
        "c": "date32[day]",
    }


def test_another_spelling_has_the_recorded_type_where_it_is_the_only_one(folder: Folder) -> None:
    recorded = {"é": "int", "Order ID": "int"}
    folder.put("a.csv", "order_id,e\n1,2\n")
    alone = folder.open(recorded=recorded)
    folder.put("a.csv", "order_id,e,é\n1,x,2\n")

    assert types(alone) == {"order_id": "int32", "e": "int32"}
    assert types(folder.open(recorded=recorded)) == {
        "order_id": "int32",
        "e": "string",
        "é": "int32",
    }


def test_folders_are_columns(folder: Folder) -> None:
    folder.put("region=e%2Fu/n=1/a.csv", "id\n1\n")
    folder.put("region=__HIVE_DEFAULT_PARTITION__/n=2/a.csv", "id\n2\n")

    assert sorted(folder.rows(), key=lambda row: row["id"]) == [
        {"id": 1, "region": "e/u", "n": 1},
        {"id": 2, "region": None, "n": 2},
    ]


def test_a_folder_that_is_not_of_its_type_is_named(folder: Folder) -> None:
    folder.put("n=x/a.csv", "id\n1\n")

    failure = folder.failure(columns=ColumnsSpec(types={"n": "int"}))

    assert "n=x/a.csv`: the folder of column `n`: `x` is not" in failure.message


def test_columns_not_loaded_are_not_converted(folder: Folder) -> None:
    folder.put("a.csv", b"id,bytes,other\n1,\xff,x\n")

    assert folder.rows(columns=ColumnsSpec(exclude=("bytes",))) == [{"id": 1, "other": "x"}]
    assert folder.rows(columns=ColumnsSpec(include=("id",))) == [{"id": 1}]
    assert "column `bytes`" in folder.failure().message


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("id,n\n1,2\n3\n", "line 3: it has 1 value, and 2 are expected: `3`"),
        ("id,n\n1,2,\n", "line 2: it has 3 values, and 2 are expected: `1,2,`"),
        ('id,n\n1,"x"y\n', 'line 2: text follows a closing quote: `1,"x"y`'),
        ('id,n\n\n1,"x\ny\n', "line 3: a quote is opened that is never closed"),
        ('id,n\n"1\n","x\ny\n', "line 3: a quote is opened that is never closed"),
        (b"id,n\n1,\xe9\n", "line 2: the bytes of column `n` are not text in the file's encoding"),
    ],
)
@pytest.mark.parametrize("on_bad_value", ["FAIL", "NULL"])
def test_a_broken_record_is_named_with_its_line(
    folder: Folder, content: str | bytes, said: str, on_bad_value: str
) -> None:
    path = folder.put("a.csv", content)

    failure = folder.failure(on_bad_value=on_bad_value)

    assert f"reading `{path}`:" in failure.message
    assert f" {said}" in failure.message
    assert "`on_bad_value: QUARANTINE`" in str(failure.hint) or "encoding" in said


@pytest.mark.parametrize("content", [b"id,n\n1,\xe9\n", b"id,\xe9\n1,2\n", b"id,n\n1\n"])
def test_csv_reader_hint_names_inspect(folder: Folder, content: bytes) -> None:
    folder.put("a.csv", content)

    assert "`lakeload inspect`" in str(folder.failure().hint)


def test_the_first_ten_bad_values_are_named_and_all_are_counted(folder: Folder) -> None:
    folder.put("a.csv", "id,n\n1,2\n")
    path = folder.put("b.csv", "id,n\n" + "".join(f"{n},x{n}\n" for n in range(100)))
    columns = ColumnsSpec(types={"n": "int"})

    failure = folder.failure(columns=columns)

    number = "is not a whole number from -2147483648 to 2147483647"
    assert failure.message.splitlines() == [
        "100 values or records cannot be loaded:",
        f"  reading `{path}`:",
        *(f"    line {n + 2}, column `n`: `x{n}` {number}" for n in range(10)),
        "  and 90 more",
    ]


def test_bad_values_become_null_and_are_counted_on_demand(folder: Folder) -> None:
    folder.put("a.csv", "id,n\n1,2\n3,x\ny,z\n")
    columns = ColumnsSpec(types={"id": "int", "n": "int"})

    rows = folder.rows(columns=columns, on_bad_value="NULL")

    assert rows == [
        {"id": 1, "n": 2, BAD_VALUES_HELPER: 0},
        {"id": 3, "n": None, BAD_VALUES_HELPER: 1},
        {"id": None, "n": None, BAD_VALUES_HELPER: 2},
    ]


def test_a_broken_record_is_named_among_many_bad_values(folder: Folder) -> None:
    folder.put("a.csv", "id,n\n" + "1,x\n" * 20 + "1\n")
    columns = ColumnsSpec(types={"n": "int"})

    failure = folder.failure(columns=columns, on_bad_value="NULL")

    assert "line 22: it has 1 value, and 2 are expected: `1`" in failure.message


def test_text_in_a_column_of_numbers_is_bad_where_the_table_has_numbers(folder: Folder) -> None:
    path = folder.put("a.csv", "id,n\n1,2\n3,x\n")

    failure = folder.failure(recorded={"n": "bigint"})
    rows = folder.rows(recorded={"n": "bigint"}, on_bad_value="NULL")

    assert f"reading `{path}`: line 3, column `n`: `x` is not a whole number" in failure.message
    assert [row["n"] for row in rows] == [2, None]
    assert (
        types(folder.open(recorded={"n": "bigint"}, on_type_conflict="NEW_COLUMN"))["n"] == "string"
    )


@pytest.mark.parametrize(
    ("recorded", "text", "values"),
    [
        ("bigint", "10.50", ["10.50", "7"]),
        ("date", "2024-01-01 10:00:00", ["2024-01-01 10:00:00", "7"]),
        ("bigint", "8", [8, 7]),
        ("int", "99999999999", [99999999999, 7]),
    ],
)
def test_values_of_another_type_are_text_as_written_with_text_policy(
    recorded: str, text: str, values: list[Any], folder: Folder
) -> None:
    folder.put("a.csv", f"id,n\n1,{text}\n2,7\n")

    rows = folder.rows(recorded={"n": recorded}, on_type_conflict="TEXT")

    assert [row["n"] for row in rows] == values


def test_numbers_with_17_digits_are_doubles(folder: Folder) -> None:
    folder.put("a.csv", "id,n\n1,8.39459\n2,8.3945900000000009\n3,x\n")

    recorded = folder.rows(recorded={"n": "double"}, on_bad_value="NULL")
    folder.put("a.csv", "id,n\n1,8.39459\n2,8.3945900000000009\n")
    inferred = folder.rows()

    assert [row["n"] for row in recorded] == [8.39459, 8.39459, None]
    assert [row["n"] for row in inferred] == [8.39459, 8.39459]


def test_a_number_that_a_double_cannot_hold_is_bad_where_the_table_has_doubles(
    folder: Folder,
) -> None:
    path = folder.put("a.csv", "id,n\n1,1.5\n2,x\n3,0.12345678901234567890\n")

    failure = folder.failure(recorded={"n": "double"})
    rows = folder.rows(recorded={"n": "double"}, on_bad_value="NULL")
    declared = folder.rows(columns=ColumnsSpec(types={"n": "double"}), on_bad_value="NULL")

    said = "    line 4, column `n`: `0.12345678901234567890` is not a number that"
    assert f"  reading `{path}`:\n" in failure.message
    assert said in failure.message
    assert "`on_type_conflict: NEW_COLUMN`" in str(failure.hint)
    assert [row["n"] for row in rows] == [1.5, None, None]
    assert [row["n"] for row in declared] == [1.5, None, 0.12345678901234568]


@pytest.mark.parametrize(
    ("content", "said", "hint"),
    [
        (
            "sep=;\nid;n\n1;2\n",
            "first line `sep=;` is a separator line of Excel",
            '`separator: ";"`',
        ),
        (b"id,\xe9\n1,2\n", "the header, line 1, is not text", "`encoding: windows-1252`"),
        ('id,"a"b\n1,2\n', "the header, line 1, cannot be read: text follows", "`quote`"),
    ],
)
def test_header_that_holds_data_is_reported(
    folder: Folder, content: str | bytes, said: str, hint: str
) -> None:
    folder.put("a.csv", content)

    failure = folder.failure()

    assert said in failure.message
    assert hint in (failure.hint or "")


def test_a_type_of_a_column_that_is_not_there_is_refused(folder: Folder) -> None:
    folder.put("a.csv", "id,amount\n1,2\n")

    with pytest.raises(InvalidInput) as failed:
        folder.open(columns=ColumnsSpec(types={"amuont": "int"}))

    assert failed.value.hint == "did you mean `amount`?"


@pytest.mark.parametrize("content", ["", "\n\n", "id,n", "id,n\n"])
def test_a_file_without_rows_has_none(folder: Folder, content: str) -> None:
    folder.put("a.csv", content)
    table = folder.open()

    assert table.names == (("id", "n") if "id" in content else ())
    assert rows_of(table) == []


SMALL = Parallelism(2, 256, 64)


@pytest.mark.parametrize("seed", range(many(12)))
def test_large_files_are_read_in_parts_as_they_are_read_whole(folder: Folder, seed: int) -> None:
    """With line breaks, and whole CSV files, within quotes: guesses of where a record begins are
    often wrong."""
    chance = random.Random(seed)  # noqa: S311
    inner = "\n".join(f'{n},"a""{n}",x' for n in range(20))
    expected = [
        [
            str(number),
            chance.choice(["", "plain", 'a "b"', "two\nlines", "1,2", "é", inner])[:200] or None,
            "x" * chance.randint(1, 30),
        ]
        for number in range(150)
    ]
    for name in ("a", "b"):
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator=chance.choice(["\n", "\r\n"])).writerows(
            [["id", "text", "more"], *expected]
        )
        folder.put(f"{name}.csv", text.getvalue())
    table = folder.open({"infer": "STRINGS"}, SMALL)

    assert [list(row.values()) for row in rows_of(table)] == expected * 2
    assert len(table.splits.parts) > 3


def test_lines_are_counted_over_all_parts_of_a_file(folder: Folder) -> None:
    lines = [f'{n},"{"y" * (n % 30)}\n"' for n in range(100)]
    path = folder.put("a.csv", "\n".join(["id,n", *lines, "x,y", "7", "8,"]))

    failure = folder.failure(parallelism=SMALL, columns=ColumnsSpec(types={"id": "int"}))

    assert failure.message == (
        "2 values or records cannot be loaded:\n"
        f"  reading `{path}`:\n"
        "    line 202, column `id`: `x` is not a whole number from -2147483648 to 2147483647\n"
        "    line 203: it has 1 value, and 2 are expected: `7`"
    )


def test_a_file_that_changes_between_the_passes_is_no_table(folder: Folder) -> None:
    path = folder.put("a.csv", "id\n1\n2\n")
    table = folder.open()
    for content in ("id\n1\n", "id\n1\n2\n3\n", "other\n1\n2\n", "id\n1\n2,2\n"):
        Path(path).write_text(content)

        with pytest.raises(LoadFailed, match="changed while it was read") as failed:
            rows_of(table)

        assert failed.value.retryable


KNOWN = {"id": "bigint", "name": "string"}


@pytest.mark.parametrize(
    ("later", "hint"),
    [
        ("id;name\n2;b\n", "`;` separates its fields: set the reader option `separator: ';'`"),
        ("ID\tName\n2\tb\n", "set the reader option `separator: '\\t'`"),
        (
            "2,b\n3,c\n",
            "write the line `id,name` before its rows, or load such files with "
            "`header: false` and `columns: {rename: {_c0: id, _c1: name}}`",
        ),
        ("x,y,z\n1,2,3\n", "load the file into a table of its own"),
    ],
)
def test_later_file_without_a_column_of_the_table_is_refused(
    folder: Folder, later: str, hint: str
) -> None:
    path = folder.put("b.csv", later)

    failed = folder.failure(recorded=KNOWN)

    assert f"`{path}` has no column in common with the table" in failed.message
    assert failed.message.endswith("and those of the table `id`, `name`")
    assert hint in (failed.hint or "")


def test_hints_for_a_file_of_other_columns_work(folder: Folder) -> None:
    folder.put("b.csv", "id;name\n2;b\n")
    assert folder.rows({"separator": ";"}, recorded=KNOWN) == [{"id": 2, "name": "b"}]

    folder.put("b.csv", "2,b\n")
    columns = ColumnsSpec(rename={"_c0": "id", "_c1": "name"})
    rows = folder.rows({"header": "false"}, recorded=KNOWN, columns=columns)
    assert rows == [{"_c0": 2, "_c1": "b"}]

    folder.put("b.csv", "id,name\n2,b\n")
    spark = {"_c0": "bigint", "_c1": "string"}
    assert folder.failure(recorded=spark).hint == (
        "set the reader option `header: false`, as for the rows that are there"
    )


def test_file_among_others_that_shares_no_column_is_refused(folder: Folder) -> None:
    first = folder.put("a.csv", "id,name\n1,a\n")
    second = folder.put("b.csv", "id;name\n2;b\n")

    failed = folder.failure()

    assert f"`{second}` has no column in common with `{first}`" in failed.message
    assert "separator: ';'" in (failed.hint or "")


def test_files_of_one_load_spell_a_column_in_two_ways(folder: Folder) -> None:
    folder.put("a.csv", "Customer ID,Amt\n1,2\n")
    folder.put("b.csv", "AMT,customer_id\n1.5,2\n")
    folder.put("c.csv", "AMT,amt,Customer ID\n3,4,5\n")

    table = folder.open(columns=ColumnsSpec(types={"customer-id": "string"}))

    assert table.spellings == (("AMT", "Amt"), ("customer_id", "Customer ID"))
    assert rows_of(table) == [
        {"Customer ID": "1", "Amt": 2.0, "amt": None},
        {"Customer ID": "2", "Amt": 1.5, "amt": None},
        {"Customer ID": "5", "Amt": 3.0, "amt": 4},
    ]


def test_empty_file_has_no_column_that_types_could_name_wrongly(folder: Folder) -> None:
    folder.put("a.csv", "")
    columns = ColumnsSpec(types={"id": "bigint"})

    assert folder.open(columns=columns).names == ()

    folder.put("b.csv", "key\n")
    with pytest.raises(InvalidInput, match=r"`columns\.types` names the column `id`"):
        folder.open(columns=columns)


DUMP = {"header": "false", "backslash_escapes": "true", "separator": "|"}


def test_nulls_and_empty_values_of_a_dump_infer_no_type(folder: Folder) -> None:
    folder.put("a.txt", "1|x|2024-01-01|\n\\N||\\N|\\N\n|\\\\N||\n")

    table = folder.open(DUMP)

    assert types(table) == {"_c0": "int64", "_c1": "string", "_c2": "date32[day]", "_c3": "string"}
    assert [list(row.values()) for row in rows_of(table)] == [
        [1, "x", date(2024, 1, 1), ""],
        [None, "", None, None],
        [None, "\\N", None, ""],
    ]


def test_null_values_of_a_dump_are_compared_as_they_are_written(folder: Folder) -> None:
    folder.put("a.txt", '"NA"|NA|\\NA|\\N\n""|""||"\\N"\n')

    rows = folder.rows({**DUMP, "quote": '"', "null_values": '["NA", "", "\\"\\""]'})

    assert [list(row.values()) for row in rows] == [
        ["NA", None, "NA", None],
        [None, None, None, "N"],
    ]


def test_empty_lines_of_a_dump_of_one_column_are_empty_texts(folder: Folder) -> None:
    folder.put("a.txt", "\n\\N\n\n")
    assert folder.rows(DUMP) == [{"_c0": ""}, {"_c0": None}, {"_c0": ""}]

    folder.put("a.txt", "\n\n")
    assert folder.rows(DUMP) == [{"_c0": ""}, {"_c0": ""}]

    folder.put("a.txt", "\\.\n")
    assert folder.rows(DUMP) == []


def test_names_in_the_header_of_a_dump_are_unescaped(folder: Folder) -> None:
    folder.put("a.txt", "id|a\\|b\n1|x\n")

    assert folder.rows({**DUMP, "header": "true"}) == [{"id": 1, "a|b": "x"}]


def test_dump_that_may_end_lines_in_two_ways_names_the_option_that_says_it(folder: Folder) -> None:
    folder.put("a.txt", "1|x\r\n2|y\\\r\n")

    failure = folder.failure(DUMP)

    assert "its first record ends with a carriage return and a line feed" in str(failure)
    first, second = re.findall(r"`line_break: '(.*?)'`", failure.hint or "")
    assert [row["_c1"] for row in folder.rows({**DUMP, "line_break": second})] == ["x\r", "y\r"]
    folder.put("a.txt", "1|x\r\n2|y\\\r\nz\r\n")
    assert [row["_c1"] for row in folder.rows({**DUMP, "line_break": first})] == ["x", "y\r\nz"]


def test_large_dump_in_parts_has_the_rows_of_the_whole(folder: Folder) -> None:
    lines = [f"{number}|a\\\n{number}\\|b|\\\\\n" for number in range(3000)]
    folder.put("a.txt", "".join(lines))

    table = folder.open(DUMP, Parallelism(4, 5000, 64))

    assert len(table.splits.parts) > 5
    assert [list(row.values()) for row in rows_of(table)] == [
        [number, f"a\n{number}|b", "\\"] for number in range(3000)
    ]
