"""Reader options of JSON files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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
    only,
    option_texts,
    read_boolean,
)


@dataclass(frozen=True)
class JsonOptions(TextOptions):
    """How JSON files are written, and how their values are read (docs/json-files.md)."""

    records: tuple[str, ...] = ()
    """The keys under which the list of records is; none: the file is records."""


_PATH = re.compile(r"""\$((?:\.[^.\[\]'"*\s]+|\['[^'\]]+'\])*)\[\*\]""")
_PATH_KEY = re.compile(r"""\.([^.\[\]'"*\s]+)|\['([^'\]]+)'\]""")


def _records(text: str) -> tuple[str, ...]:
    found = _PATH.fullmatch(text.strip())
    if found is None:
        raise WrongValue(
            "is not a path to a list", "write `$.items[*]` or `$['all items'].page[*]`"
        )
    return tuple(one or other for one, other in _PATH_KEY.findall(found[1]))


_OWN: Mapping[str, Check] = {**SHARED, "records": _records}
JSON_OPTIONS = tuple(_OWN)
"""The options of JSON files that are documented; in NDJSON `records` says nothing."""

_LINE_FEED = "remove it, and end lines with `\\n`"
_NOT_JSON = (
    "files with it are not JSON: fix them and remove it, or write `type: SPARK` and "
    "`format: json` in `source`"
)
_LEFT_OUT = "remove it, and leave the column out with `columns.exclude`"
_DECIMAL = "remove it, and give the column a decimal type with `columns.types`"
_NEUTRAL: Mapping[str, Check] = {
    "allowBackslashEscapingAnyCharacter": only("false", hint=_NOT_JSON),
    "allowComments": only("false", hint=_NOT_JSON),
    "allowNonNumericNumbers": only("false", hint=_NOT_JSON),
    "allowNumericLeadingZeros": only("false", hint=_NOT_JSON),
    "allowSingleQuotes": only("false", hint=_NOT_JSON),
    "allowUnquotedControlChars": only("false", hint=_NOT_JSON),
    "allowUnquotedFieldNames": only("false", hint=_NOT_JSON),
    "dropFieldIfAllNull": only("false", hint=_LEFT_OUT),
    "enableDateTimeParsingFallback": only("false", hint=OTHER_FORMATS),
    "lineSep": only("\n", "\r\n", "\\n", "\\r\\n", hint=_LINE_FEED),
    "locale": only("en", "en-us", "en-gb", hint="remove it, and write months in English"),
    "maxNestingDepth": any_value,
    "maxNumLen": any_value,
    "maxStringLen": any_value,
    "prefersDecimal": only("false", hint=_DECIMAL),
    "samplingRatio": any_value,
}
JSON_ALIASES = (*SHARED_ALIASES, *_NEUTRAL, "primitivesAsString")
"""Names of Spark's reader for the same, and for what makes no difference here."""


def _others(name: str, text: str) -> Iterator[tuple[str, Any]]:
    """Yield what a name of Spark's reader says that means something else. Raises `WrongValue`."""
    if name == "primitivesasstring":
        yield "infer", "STRINGS" if read_boolean(text) else "SAFE"


def read_json_options(options: Mapping[str, Any]) -> tuple[JsonOptions, list[OptionProblem]]:
    """Return the options of JSON files, and what is wrong with them. Names that are not options of
    JSON at all are left alone, and so are values that are no texts."""
    reading = OptionReading(_OWN, SHARED_ALIASES, _NEUTRAL, _others)
    for option, text in option_texts(options).items():
        reading.take(option, text)
    return JsonOptions(**reading.values), reading.problems
