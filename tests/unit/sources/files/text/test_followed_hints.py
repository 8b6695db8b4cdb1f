"""Hints of CSV and JSON files, followed literally: the edit that each names loads the records."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lakeload.config.yaml_tree import own_yaml
from lakeload_jobs.contract.spec import ColumnsSpec, RejectLimit
from lakeload_jobs.sources import batch_sizes
from tests.hints import follows
from tests.unit.sources.files.formats.csv import test_table as csv_tests
from tests.unit.sources.files.formats.json import test_table as json_tests


@dataclass(frozen=True)
class Case:
    """A file, the setting whose line the hint has to hold, and the first value of each record with
    that line."""

    content: str
    setting: str
    values: list[Any]
    recorded: dict[str, str] = field(default_factory=dict)
    is_json: bool = False


CASES = {
    "text among the numbers of the table": Case(
        "n\n1\nn/a\n", "on_type_conflict", ["1", "n/a"], {"n": "bigint"}
    ),
    "text among the numbers of the table, as null": Case(
        "n\n1\nn/a\n", "on_bad_value", [1, None], {"n": "bigint"}
    ),
    "text among the numbers of the table, in JSON": Case(
        '{"n": 1}\n{"n": "n/a"}\n', "on_type_conflict", ["1", "n/a"], {"n": "bigint"}, is_json=True
    ),
    "too few values": Case("a,b\n1,2\n3\n", "on_bad_value", [1, None]),
    "too many values": Case("a,b\n1,2\n3,4,5\n", "on_bad_value", [1, None]),
    "text behind a quote": Case('a,b\n1,2\n"3"x,4\n', "on_bad_value", [1, None]),
    "a quote without an end": Case('a,b\n1,2\n"3,4\n', "on_bad_value", [1, None]),
    "a quote without a meaning": Case('a,b\n1,2\n"3,4\n', "quote", ["1", '"3']),
    "no JSON": Case('{"a": 1}\nno\n', "on_bad_value", [1, None], is_json=True),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_edit_of_a_hint_loads_the_records(tmp_path: Path, case: Case) -> None:
    folder = json_tests.Folder(tmp_path) if case.is_json else csv_tests.Folder(tmp_path)
    folder.put("a.ndjson" if case.is_json else "a.csv", case.content)
    hint = folder.failure(recorded=case.recorded).hint or ""

    line = re.search(rf"`{case.setting}: '?(\w*)'?`", hint)

    assert line is not None, hint
    limit = RejectLimit(percent=100)
    if case.setting == "quote":
        rows = folder.rows({"quote": line[1]}, recorded=case.recorded)
    else:
        changes: dict[str, Any] = {case.setting: line[1], "max_rejected": limit}
        rows = folder.rows(recorded=case.recorded, **changes)
    assert [next(iter(row.values())) for row in rows] == case.values


BIGINTS = {"id": "bigint", "n": "bigint"}
OPTIONS: dict[str, tuple[str | bytes, dict[str, str], set[str], list[int]]] = {
    "a separator line of Excel": ("sep=;\na;b\n1;2\n", {}, {"separator", "skip_rows"}, [1]),
    "UTF-16 without a mark": ("a,b\n1,2\n".encode("utf-16-le"), {}, {"encoding"}, [1]),
    "letters of windows-1252": (b"a,b\n1,caf\xe9\n", {}, {"encoding"}, [1]),
    "another separator than the table's": ("id;n\n1;2\n", BIGINTS, {"separator"}, [1]),
    "no header, as the rows that are there": (
        "5,6\n7,8\n",
        {"_c0": "bigint", "_c1": "bigint"},
        {"header"},
        [5, 7],
    ),
}
"""A file, the columns of its table, the reader options that the hint has to name, and the first
value of each record with them."""


@pytest.mark.parametrize("case", OPTIONS.values(), ids=OPTIONS.keys())
def test_the_reader_options_of_a_hint_load_the_records(
    tmp_path: Path, case: tuple[str | bytes, dict[str, str], set[str], list[int]]
) -> None:
    content, recorded, names, values = case
    folder = csv_tests.Folder(tmp_path)
    folder.put("a.csv", content)
    hint = folder.failure(recorded=recorded).hint or ""

    lines = re.findall(r"`(\w+: [^`]+)`", hint)
    # As the command line hands them over: every value is text.
    options = {name: str(value).lower() for line in lines for name, value in own_yaml(line).items()}

    assert options.keys() == names
    rows = folder.rows(options, recorded=recorded)
    assert [next(iter(row.values())) for row in rows] == values


SEPARATORS: dict[str, tuple[str, dict[str, str]]] = {
    "another separator": ("id;v\n1;x\n", {}),
    "tabs": ("id\tv\n1\tx\n", {}),
    "commas after all": ("id,v\n1,x\n", {"separator": ";"}),
}


@pytest.mark.parametrize(("name", "case"), SEPARATORS.items(), ids=SEPARATORS.keys())
def test_the_separator_that_a_warning_names_divides_the_columns(
    tmp_path: Path, name: str, case: tuple[str, dict[str, str]]
) -> None:
    folder = csv_tests.Folder(tmp_path)
    folder.put("a.csv", case[0])
    (warning,) = folder.open(case[1]).warnings
    follows(__file__, name, warning)

    table = folder.open(_options(warning))

    assert csv_tests.rows_of(table) == [{"id": 1, "v": "x"}]
    assert table.warnings == ()


def test_a_record_without_an_end_is_read_where_quotes_have_no_meaning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_sizes, "MAX_VALUE_BYTES", 1 << 20)
    lines = [f"{number},{'x' * 999}" for number in range(2, 4_000)]
    folder = csv_tests.Folder(tmp_path)
    folder.put("a.csv", "\n".join(["id,v", '1,"y', *lines, ""]))
    failure = folder.failure()
    assert "the record that begins on line 2 is longer than" in failure.message
    follows(__file__, "a quote that is never closed", failure.hint or "")

    rows = folder.rows(_options(failure.hint or ""))

    assert [row["id"] for row in rows] == list(range(1, 4_000))
    assert rows[0]["v"] == '"y'


def test_a_file_of_other_names_is_a_table_of_its_own_or_has_its_names_changed(
    tmp_path: Path,
) -> None:
    folder = json_tests.Folder(tmp_path)
    folder.put("a.ndjson", '{"nr": 2}\n')
    failure = folder.failure(recorded={"id": "bigint"})
    follows(__file__, "records of another table", failure.hint or "")

    own = folder.rows(recorded={})
    renamed = folder.open(
        recorded={"id": "bigint"}, targets={"id": "id"}, columns=ColumnsSpec(rename={"nr": "id"})
    )

    assert own == csv_tests.rows_of(renamed) == [{"nr": 2}]


def _options(text: str) -> dict[str, str]:
    """Return the reader options that a text names, as the command line hands them over."""
    lines = re.findall(r"`(\w+: [^`]+)`", text)
    return {name: str(value) for line in lines for name, value in own_yaml(line).items()}
