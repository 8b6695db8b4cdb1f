"""Reader options: a closed list, because Spark ignores what it does not know."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakeload_jobs.contract.spec import FileFormatName
from lakeload_jobs.sources.files.formats.registry import FILE_FORMATS
from lakeload_jobs.sources.files.text.options import OptionProblem
from tests.unit.documents.documents import problems_of


def option_problems(file_format: FileFormatName, options: dict[str, str]) -> list[OptionProblem]:
    return FILE_FORMATS[file_format].option_problems(options)


def test_csv_option_values_are_validated() -> None:
    (problem,) = option_problems("CSV", {"HEADER": "1"})

    assert problem.option == "HEADER"
    assert "neither `true` nor `false`" in problem.message


@pytest.mark.parametrize("file_format", ["NDJSON", "JSON"])
def test_json_options_are_named_as_in_lakeload_or_spark(
    file_format: FileFormatName,
) -> None:
    given = {"Encoding": "utf-16", "primitivesAsString": "true", "timestampFormat": "d.M.yyyy"}

    assert option_problems(file_format, given) == []
    assert option_problems(file_format, {"maxStringLen": "5", "samplingRatio": "0.1"}) == []


@pytest.mark.parametrize(
    ("option", "value", "hint"),
    [
        ("allowComments", "true", "not JSON"),
        ("allowSingleQuotes", "true", "not JSON"),
        ("prefersDecimal", "true", "`columns.types`"),
        ("dropFieldIfAllNull", "true", "`columns.exclude`"),
        ("lineSep", ";", "end lines with"),
    ],
)
def test_json_options_of_the_spark_reader_only_are_rejected(
    option: str, value: str, hint: str
) -> None:
    (problem,) = option_problems("NDJSON", {option: value})

    assert problem.option == option
    assert "only Spark's reader supports" in problem.message
    assert hint in (problem.hint or "")


def test_misspelled_option_is_rejected_with_the_nearest_name() -> None:
    (problem,) = option_problems("CSV", {"delimeter": ";"})

    assert problem.message == "CSV has no reader option `delimeter`"
    assert problem.hint == "did you mean `delimiter`?"


def test_an_option_of_another_format_is_refused() -> None:
    assert [p.option for p in option_problems("PARQUET", {"header": "true"})] == ["header"]


@pytest.mark.parametrize("option", ["mode", "MODE", "columnNameOfCorruptRecord", "path"])
def test_option_set_by_lakeload_is_rejected_with_the_setting(option: str) -> None:
    (problem,) = option_problems("CSV", {option: "x"})

    assert problem.message == f"the reader option `{option}` belongs to lakeload"
    assert problem.hint


@pytest.mark.parametrize("option", ["ignoreCorruptFiles", "ignoreMissingFiles"])
def test_options_that_lose_rows_silently_are_refused(option: str) -> None:
    (problem,) = option_problems("PARQUET", {option: "true"})

    assert "silently" in (problem.hint or "")


def test_multi_line_option_is_set_by_the_format() -> None:
    assert option_problems("CSV", {"multiLine": "true"}) == []
    assert [p.option for p in option_problems("NDJSON", {"multiLine": "true"})] == ["multiLine"]


def test_the_value_of_on_loss_is_checked() -> None:
    (problem,) = option_problems("PARQUET", {"on_loss": "ROUND"})

    assert problem.message == "the reader option `on_loss: ROUND` has no such value"
    assert problem.hint == "it is FAIL or TRUNCATE"
    assert option_problems("PARQUET", {"ON_LOSS": "truncate"}) == []


@pytest.mark.parametrize("path", ["$.a.b[*]", "$[*]", "$['a b'].c[*]", " $.größe[*] "])
def test_paths_of_records_are_accepted_for_json_alone(path: str) -> None:
    assert option_problems("JSON", {"records": path}) == []
    assert [p.option for p in option_problems("NDJSON", {"records": path})] == ["records"]


@pytest.mark.parametrize("path", ["a.b", "$.a", "$.a[0]", "$..a[*]", "$.a[*].b[*]", "$.a b[*]", ""])
def test_record_paths_without_a_list_are_rejected(path: str) -> None:
    (problem,) = option_problems("JSON", {"records": path})

    assert "is not a path to a list" in problem.message
    assert "$.items[*]" in (problem.hint or "")


SHARED = """\
version: 1
name: shop
destination: {version: 1, bucket: my-data-lake, region: us-east-1}
source: {type: FILES, format: CSV, options: {%s}}
tables:
  - {table: a, path: a.csv, options: {%s}}
  - {table: b, path: b.ndjson, format: NDJSON}
"""


@pytest.mark.parametrize(
    ("shared", "own", "found"),
    [
        ("backslash_escapes: true", 'quote: "\\"", line_break: "\\r\\n"', []),
        ('line_break: "\\n"', "backslash_escapes: true", []),
        ("separator: ;", 'quote: ";"', ["`;` cannot be both the `separator` and the `quote`"]),
        ("backslash_escapes: true", "escape: '\\'", ["`escape` cannot be set"]),
        ("escape: '\\'", "quote: ''", ["`escape` has no effect"]),
        ("header: 1", "separator: ;", ["`header: 1` is neither"]),
        ("delimeter: ;", "header: 1", ["no reader option `delimeter`", "`header: 1` is neither"]),
    ],
)
def test_options_of_a_table_are_checked_beside_those_of_the_source(
    tmp_path: Path, shared: str, own: str, found: list[str]
) -> None:
    problems = problems_of(tmp_path, SHARED % (shared, own))

    assert len(problems) == len(found), problems
    for problem, text in zip(problems, found, strict=True):
        assert text in problem.message
