"""Options of CSV files: ours, Spark's names for them, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from lakeload_jobs.sources.files.formats.csv.options import (
    CSV_ALIASES,
    CSV_OPTIONS,
    CsvOptions,
    read_csv_options,
)

SAME: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"separator": ";"}, {"sep": ";"}),
    ({"SEPARATOR": "\\t"}, {"Delimiter": "\t"}),
    ({"encoding": "windows-1252"}, {"charset": "windows-1252"}),
    ({"infer": "STRINGS"}, {"inferSchema": "false"}),
    ({"infer": "safe"}, {"inferSchema": True}),
    ({"null_values": ["NA"], "quoted_empty": "TEXT"}, {"nullValue": "NA"}),
    ({"null_values": "NA"}, {"null_values": '["NA"]'}),
    ({}, {"nullValue": ""}),
    ({"header": True, "skip_rows": 1}, {"header": "TRUE", "skip_rows": "1"}),
    ({"date_format": "dd.MM.yyyy"}, {"dateFormat": "dd.MM.yyyy"}),
    ({"trim_left": "true"}, {"ignoreLeadingWhiteSpace": "true"}),
    ({"time_zone": "Europe/Berlin"}, {"timeZone": "Europe/Berlin"}),
    ({}, {"escape": '"', "quote": '"'}),
    ({"escape": "\\"}, {"escape": "\\", "charToEscapeQuoteEscaping": "\\"}),
    ({"quote": ""}, {"quote": "\\0"}),
    ({}, {"multiLine": "true", "enforceSchema": "true", "maxColumns": "7", "lineSep": "\\n"}),
    ({}, {"emptyValue": "", "locale": "en-US", "unescapedQuoteHandling": "STOP_AT_DELIMITER"}),
    ({}, {"samplingRatio": "0.1", "preferDate": "false", "maxCharsPerColumn": "-1"}),
    ({}, {"pathGlobFilter": "*.csv"}),
    ({"null_values": [""]}, {}),
    (
        {"backslash_escapes": True, "null_values": [""]},
        {"BACKSLASH_ESCAPES": "true", "nullValue": ""},
    ),
    ({"backslash_escapes": True, "quote": ""}, {"backslash_escapes": True}),
]


DUMP = {"backslash_escapes": "true"}


@pytest.mark.parametrize(("one", "other"), SAME)
def test_option_aliases_are_equal(one: dict[str, Any], other: dict[str, Any]) -> None:
    first, second = read_csv_options(one), read_csv_options(other)

    assert first == second
    assert first[1] == []


def test_options_without_values_are_the_defaults() -> None:
    assert read_csv_options({}) == (CsvOptions(), [])


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ({"header": "yes"}, "`header: yes` is neither", None),
        ({"separator": ""}, "is not a separator", "`;`"),
        ({"quote": "''"}, "is not one character", None),
        ({"encoding": "windows-12520"}, "is not an encoding", "windows-1252"),
        ({"encoding": "base64"}, "is not an encoding", "windows-1252"),
        ({"skip_rows": "-1"}, "is not a number of lines", None),
        ({"null_values": "[1]"}, "is not a list of texts", '["NA", "-"]'),
        ({"infer": "ALL"}, "is not one of `SAFE`, `STRINGS`, `FULL`", None),
        ({"date_format": "DD.MM"}, "cannot be used", None),
        ({"time_zone": "Mars/Base"}, "is not a time zone", "Europe/Berlin"),
        ({"thousands_mark": "12"}, "is not one character between digits", None),
        ({"lineSep": "|"}, "only Spark's reader supports", "end lines with"),
        ({"emptyValue": "?"}, "only Spark's reader supports", "quoted_empty"),
        ({"locale": "de-DE"}, "only Spark's reader supports", "decimal_mark"),
        ({"unescapedQuoteHandling": "RAISE_ERROR"}, "only Spark's reader supports", "double"),
        ({"escape": "\\", "charToEscapeQuoteEscaping": "!"}, "only Spark supports", "remove it"),
        ({"sep": ";", "separator": ";"}, "duplicates `sep`", "remove one"),
        ({"sep": '"'}, '`"` cannot be both the `separator` and the `quote`', "another character"),
        ({"quote": "", "escape": "\\"}, "`escape` has no effect", "`backslash_escapes: true`"),
        ({"quote": "", "quoted_empty": "TEXT"}, "`quoted_empty` has no effect", "remove it"),
        ({"line_break": "\\n"}, "only with `backslash_escapes: true`", "any line break"),
        ({**DUMP, "line_break": "\\r"}, "is neither `\\n` nor `\\r\\n`", None),
        ({**DUMP, "lineSep": "\\n"}, "`lineSep: \\n` has no effect", "`line_break`"),
        ({**DUMP, "escape": "\\"}, "a backslash is the escape", "remove it"),
        ({**DUMP, "quoted_empty": "NULL"}, "`null_values: ['']`", "remove it"),
        ({**DUMP, "ignoreLeadingWhiteSpace": True}, "blanks belong to the values", "remove it"),
        ({**DUMP, "comment": "#"}, "each line belongs to a record", "remove it"),
        ({**DUMP, "separator": "t"}, "`t` cannot be the `separator`", "another `separator`"),
        ({**DUMP, "quote": "\\"}, "`\\` cannot be the `quote`", "another `quote`"),
        ({"decimal_mark": ",", "thousands_mark": ","}, "cannot be both", "another character"),
    ],
)
def test_meaningless_option_value_is_rejected(
    options: dict[str, Any], message: str, hint: str | None
) -> None:
    _, (problem,) = read_csv_options(options)

    assert message in problem.message
    assert hint is None or hint in (problem.hint or "")


def test_every_option_name_is_read() -> None:
    """A name that is listed and not read would do nothing."""
    for name in (*CSV_OPTIONS, *CSV_ALIASES):
        taken = {"header": "true"} | {name: "\r\n no value of anything"}
        options, problems = read_csv_options(taken)
        free = ("enforceSchema", "maxCharsPerColumn", "maxColumns", "multiLine", "preferDate")
        words = ("nan_value", "negative_infinity", "positive_infinity")
        changed = options != CsvOptions(header=True)
        assert problems or changed or name in (*free, *words, "samplingRatio"), name
