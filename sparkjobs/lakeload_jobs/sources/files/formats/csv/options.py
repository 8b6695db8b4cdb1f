"""Reader options of CSV files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lakeload_jobs.sources.files.text.options import (
    OTHER_FORMATS,
    SHARED,
    SHARED_ALIASES,
    Check,
    OptionProblem,
    OptionReading,
    TextOptions,
    WrongValue,
    any_value,
    one_of,
    only,
    option_texts,
    read_boolean,
)

QuotedEmpty = Literal["NULL", "TEXT"]

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f", "0": "\0"}


@dataclass(frozen=True)
class CsvOptions(TextOptions):
    """How CSV files are written, and how their values are read (docs/csv-files.md)."""

    separator: str = ","
    quote: str = '"'
    """'' gives quotes no meaning."""
    escape: str = ""
    """A sign that may stand before a quote within quotes; quotes may be doubled as well."""
    backslash_escapes: bool = False
    """A backslash escapes the character after it, as in dumps of databases. Quotes then have no
    meaning unless `quote` is set, and an empty value is an empty text."""
    line_break: str = ""
    """How records end with `backslash_escapes`; '': with a line feed, and not after a carriage
    return in the first record."""
    header: bool = False
    skip_rows: int = 0
    """Lines before the header."""
    comment: str = ""
    trailing_separator: bool = False
    trim_left: bool = False
    trim_right: bool = False
    null_values: tuple[str, ...] = ()
    quoted_empty: QuotedEmpty = "NULL"
    decimal_mark: str = "."
    thousands_mark: str = ""
    nan_value: str = "NaN"
    positive_infinity: str = "Inf"
    negative_infinity: str = "-Inf"


def _sign(text: str) -> str:
    """Spark takes `\\t` and the like for one sign."""
    return re.sub(r"\\([tnrbf0])", lambda m: _ESCAPES[m[1]], text)


def _separator(text: str) -> str:
    separator = _sign(text) if text == "\\" or not text.startswith("\\\\") else text[1:]
    if not separator or set(separator) & set("\r\n"):
        raise WrongValue("is not a separator", "write one or more characters, such as `;` or `\\t`")
    return separator


def _one_or_none(text: str) -> str:
    sign = _sign(text)
    if len(sign) > 1 or sign in ("\r", "\n"):
        raise WrongValue("is not one character")
    return "" if sign == "\0" else sign


def _line_break(text: str) -> str:
    sign = _sign(text)
    if sign not in ("\n", "\r\n"):
        raise WrongValue("is neither `\\n` nor `\\r\\n`")
    return sign


def _rows(text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text):
        raise WrongValue("is not a number of lines")
    return int(text)


def _comment(text: str) -> str:
    sign = _sign(text)
    if set(sign) & set("\r\n"):
        raise WrongValue("holds a line break")
    return "" if sign == "\0" else sign


def _null_values(text: str) -> tuple[str, ...]:
    if not text.startswith("["):
        return (text,)
    try:
        values = json.loads(text)
    except ValueError as error:
        raise WrongValue("is not a list of texts", 'write `["NA", "-"]`') from error
    if not all(isinstance(value, str) for value in values):
        raise WrongValue("is not a list of texts", 'write `["NA", "-"]`')
    return tuple(values)


def _mark(text: str) -> str:
    if len(text) > 1 or text.isalnum() or text in ("-", "+"):
        raise WrongValue("is not one character between digits")
    return text


def _word(text: str) -> str:
    if not text.strip():
        raise WrongValue("is not a word")
    return text


_OWN: Mapping[str, Check] = {
    **SHARED,
    "backslash_escapes": read_boolean,
    "comment": _comment,
    "decimal_mark": lambda text: _mark(text) or ".",
    "escape": _one_or_none,
    "header": read_boolean,
    "line_break": _line_break,
    "nan_value": _word,
    "negative_infinity": _word,
    "null_values": _null_values,
    "positive_infinity": _word,
    "quote": _one_or_none,
    "quoted_empty": one_of("NULL", "TEXT"),
    "separator": _separator,
    "skip_rows": _rows,
    "thousands_mark": _mark,
    "trailing_separator": read_boolean,
    "trim_left": read_boolean,
    "trim_right": read_boolean,
}
CSV_OPTIONS = tuple(_OWN)
"""The options of CSV files that are documented."""

_ALIASES = {
    **SHARED_ALIASES,
    "delimiter": "separator",
    "ignoreLeadingWhiteSpace": "trim_left",
    "ignoreTrailingWhiteSpace": "trim_right",
    "nanValue": "nan_value",
    "negativeInf": "negative_infinity",
    "positiveInf": "positive_infinity",
    "sep": "separator",
}
_OTHER_MARKS = "set `decimal_mark` and `thousands_mark` in its place"
_LINE_FEED = "remove it, and end lines with `\\n`"
_DOUBLED = "remove it, and double the quotes within quotes"
_NEUTRAL: Mapping[str, Check] = {
    "enableDateTimeParsingFallback": only("false", hint=OTHER_FORMATS),
    "emptyValue": only("", hint="set `quoted_empty: TEXT` in its place"),
    "enforceSchema": any_value,
    "lineSep": only("\n", "\r", "\r\n", "\\n", "\\r", "\\r\\n", hint=_LINE_FEED),
    "locale": only("en", "en-us", "en-gb", hint=_OTHER_MARKS),
    "maxCharsPerColumn": any_value,
    "maxColumns": any_value,
    "multiLine": any_value,
    "preferDate": any_value,
    "samplingRatio": any_value,
    "unescapedQuoteHandling": only("stop_at_delimiter", hint=_DOUBLED),
}
CSV_ALIASES = (*_ALIASES, *_NEUTRAL, "charToEscapeQuoteEscaping", "inferSchema", "nullValue")
"""Names of Spark's reader for the same, and for what makes no difference here."""


def _others(name: str, text: str) -> Iterator[tuple[str, Any]]:
    """Yield what names of Spark's reader say that mean something else. Raises `WrongValue`."""
    if name == "inferschema":
        yield "infer", "SAFE" if read_boolean(text) else "STRINGS"
    elif name == "nullvalue":
        yield "null_values", (text,)
        if text:
            # With a text of its own for null, Spark takes an empty text for a text.
            yield "quoted_empty", "TEXT"


def read_csv_options(options: Mapping[str, Any]) -> tuple[CsvOptions, list[OptionProblem]]:
    """Return the options of CSV files, and what is wrong with them. Names that are not options of
    CSV at all are left alone, and so are values that are no texts."""
    reading = OptionReading(_OWN, _ALIASES, _NEUTRAL, _others)
    texts = option_texts(options)
    for option, text in texts.items():
        reading.take(option, text)
    lower = {option.lower(): (option, text) for option, text in texts.items()}
    if reading.values.get("backslash_escapes"):
        reading.values.setdefault("quote", "")
    elif "null_values" in reading.values:
        # An empty value is null anyway.
        reading.values["null_values"] = tuple(filter(None, reading.values["null_values"]))
    read = CsvOptions(**reading.values)
    written = reading.written
    problems = [*reading.problems, *_conflicts(read, written), *_without_effect(read, written)]
    if "chartoescapequoteescaping" in lower:
        option, text = lower["chartoescapequoteescaping"]
        if text not in ("", "\0", read.escape or read.quote):
            message = f"the reader option `{option}: {text}` has a meaning that only Spark supports"
            hint = "remove it: a doubled character already stands for one"
            problems.append(OptionProblem(option, message, hint))
    if "linesep" in lower and read.backslash_escapes:
        option, text = lower["linesep"]
        message = f"the reader option `{option}: {text}` has no effect with `backslash_escapes`"
        problems.append(OptionProblem(option, message, "set `line_break` in its place"))
    if read.escape == read.quote:
        read = CsvOptions(**{**reading.values, "escape": ""})
    return read, problems


def _conflicts(options: CsvOptions, written: Mapping[str, str]) -> Iterator[OptionProblem]:
    pairs = (("separator", "quote"), ("separator", "escape"), ("decimal_mark", "thousands_mark"))
    for one, other in pairs:
        sign = getattr(options, one)
        if sign and sign == getattr(options, other):
            option = written.get(other) or written.get(one) or other
            message = f"`{sign}` cannot be both the `{one}` and the `{other}`"
            yield OptionProblem(option, message, "choose another character for one of them")
    letters = "0NZbfnrtv"
    for one in ("separator", "quote"):
        sign = getattr(options, one)
        if options.backslash_escapes and sign and ("\\" in sign or sign[0] in letters):
            message = f"`{sign}` cannot be the `{one}`: behind a backslash it is another sign"
            yield OptionProblem(written.get(one, one), message, f"set another `{one}`")


_CLASHES = {
    "escape": "a backslash is the escape",
    "quoted_empty": "an empty value is an empty text, and null with `null_values: ['']`",
    "trim_left": "blanks belong to the values",
    "trim_right": "blanks belong to the values",
    "comment": "each line belongs to a record",
}
"""Options that cannot be set beside `backslash_escapes`, and why."""


def _without_effect(options: CsvOptions, written: Mapping[str, str]) -> Iterator[OptionProblem]:
    """Yield the options that do nothing beside the others."""
    if options.backslash_escapes:
        for name, why in _CLASHES.items():
            option = written.get(name, "")
            if option and option.lower() != "nullvalue" and getattr(options, name):
                said = f"the reader option `{option}` cannot be set with `backslash_escapes`"
                yield OptionProblem(option, f"{said}: {why}", "remove it")
        return
    if options.line_break:
        option = written["line_break"]
        message = f"the reader option `{option}` has an effect only with `backslash_escapes: true`"
        yield OptionProblem(option, message, "remove it: records may end with any line break")
    unquoted = "has no effect where quotes have no meaning"
    if options.escape and not options.quote:
        option, hint = written["escape"], "remove it"
        if options.escape == "\\":
            hint = (
                "set `backslash_escapes: true` in its place if separators are escaped, or remove it"
            )
        yield OptionProblem(option, f"the reader option `{option}` {unquoted}", hint)
    option = written.get("quoted_empty", "")
    if option.lower() == "quoted_empty" and options.quoted_empty == "TEXT" and not options.quote:
        yield OptionProblem(option, f"the reader option `{option}` {unquoted}", "remove it")
