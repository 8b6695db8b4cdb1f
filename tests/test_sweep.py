"""What the sweep calls equal, and that it notices what is not."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.other_readers import read, same
from tests.sweep import Swept, compare, compare_records, files_of, with_source

MARKS = {"header": True, "separator": ";", "decimal_mark": ",", "thousands_mark": "."}


@pytest.mark.parametrize(
    ("other", "own", "equal"),
    [
        ("1", 1, True),
        ("1.0", 1, True),
        ("0.1", 0.1, True),
        ("0.1", Decimal("0.10"), True),
        ("1", 2, False),
        ("", None, True),
        ("x", None, False),
        (None, "x", False),
        ("true", True, True),
        ("true", False, False),
        ("2024-01-01 00:00:00", datetime(2024, 1, 1), True),
        ("2024-01-01 00:00:01", datetime(2024, 1, 1), False),
        (datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC), True),
        ({"A b": 1}, {"a_b": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        ((1, 2), {"a": 1, "b": 2}, True),
        ([1, 2], [1], False),
        ({"k": 1}, [("k", 1)], True),
        ({"a": 1, "A": 2}, {"a": 1, "A_1": 2}, True),
        ({"a": 1, "A": 2}, {"a": 2, "A_1": 2}, False),
        ("x", {"member0": None, "member1": "x"}, True),
        ("x", {"member0": 1, "member1": "x"}, False),
        ({"a": 1}, {"member0": {"a": 1}, "member1": None}, True),
        ([1, {"a": 2}], '[1,{"a":2}]', True),
        (b"a", b"b", False),
    ],
)
def test_values_are_compared_across_types(other: Any, own: Any, equal: bool) -> None:
    assert same(other, own) == equal


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ({"id": [1, 2], "name": ["a", None]}, "equal"),
        ({"id": [1, 3], "name": ["a", None]}, "different"),
        ({"id": [1], "name": ["a"]}, "different"),
    ],
)
def test_what_was_loaded_is_compared_with_the_file(
    rows: dict[str, list[Any]], verdict: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id;name\n1;a\n2;\n")
    options = {"separator": ";", "header": True}
    swept = Swept(path, {"format": "CSV", "options": options})

    compare(swept, pa.table(rows))

    assert swept.verdict == verdict


def test_json_is_read_as_lines_and_as_an_array(tmp_path: Path) -> None:
    lines, array = tmp_path / "a.json", tmp_path / "b.json"
    lines.write_text('{"a": 1}\n{"a": 2}\n')
    array.write_text('[{"a": 1}, {"a": 2}]')

    assert read(lines, "NDJSON", {}).columns(["a"]) == [[1, 2]]
    assert read(array, "JSON", {}).columns(["a"]) == [[1, 2]]


@pytest.mark.parametrize(
    ("text", "records"),
    [
        ('{"x": {"y": [{"a": 1}, {"a": 2}]}}', "$.x.y[*]"),
        ('{"x y": {"z": [{"a": 1}, {"a": 2}]}}', "$['x y'].z[*]"),
    ],
)
def test_a_wrapped_list_is_read_where_it_is(text: str, records: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)

    assert read(path, "JSON", {"records": records}).columns(["a"]) == [[1, 2]]


@pytest.mark.parametrize(
    ("text", "options", "rows"),
    [
        ("\na\n\n1\n", {"header": True}, {"a": [None, 1]}),
        ("a,b\n\n1,2\n", {"header": True}, {"a": [1], "b": [2]}),
        ('a, b\n1, "x,y"\n', {"header": True, "trim_left": True}, {"a": [1], "b": ["x,y"]}),
        ('a\n"\\,\\"\\\\"\n', {"header": True, "escape": "\\"}, {"a": ['\\,"\\']}),
        ("a;b\n1.000,5;1,5\n", MARKS, {"a": [1000.5], "b": ["1,5"]}),
    ],
)
def test_csv_is_compared_as_the_options_say(
    text: str, options: dict[str, Any], rows: dict[str, list[Any]], tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    swept = Swept(path, {"format": "CSV", "options": options})

    compare(swept, pa.table(rows))

    assert (swept.verdict, swept.why) == ("equal", "")


@pytest.mark.parametrize(
    ("text", "options", "told", "verdict"),
    [
        ("id,name\n1,a\n2,b\n", {"header": True}, (), "equal"),
        ("title\n\nid,name\n1,a\n2,b\n", {"header": True, "skip_rows": 2}, ("skip_rows",),
         "guessed"),
        ("title\n\nid,name\n1,a\n2,b\n", {"header": True, "skip_rows": 2}, ("header",), "lost"),
        ("#a\nid,name\n1,a\n2,b\n", {"header": True, "comment": "#"}, (), "lost"),
        ("id,name\n1,a\n2,b\n3,c\n", {"header": True}, ("separator",), "lost"),
        ("3,name\n1,a\n2,b\n", {"header": True}, (), "lost"),
        ("3,name\n1,a\n2,b\n", {"header": True}, ("header",), "guessed"),
        ("id,name\n2,b\n", {}, (), "lost"),
        ("id,name\n2,b\n", {}, ("header",), "guessed"),
        ("1,a\n3,b\n", {}, (), "different"),
    ],
)  # fmt: skip
def test_a_record_or_header_that_is_not_loaded_is_lost_unless_it_was_said(
    text: str, options: dict[str, Any], told: tuple[str, ...], verdict: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    swept = Swept(path, {"format": "CSV", "options": options})

    compare_records(swept, [path], pa.table({"id": [1, 2], "name": ["a", "b"]}), told)

    assert swept.verdict == verdict


def test_the_files_and_options_of_a_table_are_those_of_the_pipeline(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("a1.csv", "a2.csv", "b.csv"):
        (tmp_path / "data" / name).write_text("id\n1\n")
    pipeline = tmp_path / "pipeline"
    pipeline.mkdir()

    def names(path: Any) -> list[str]:
        return [file.name for file in files_of({"path": path}, pipeline)]

    assert names("../data") == ["a1.csv", "a2.csv", "b.csv"]
    assert names("../data/a*.csv") == ["a1.csv", "a2.csv"]
    assert names(["../data/b.csv", str(tmp_path / "data" / "a*.csv")]) == [
        "b.csv",
        "a1.csv",
        "a2.csv",
    ]
    source = {"format": "CSV", "options": {"header": True, "separator": ";"}}
    table = with_source({"table": "t", "options": {"separator": "|"}}, source)
    assert (table["format"], table["options"]) == ("CSV", {"header": True, "separator": "|"})
    assert with_source({"table": "t", "format": "JSON"}, source)["options"] == {}
