"""Reader options of a FILES source: which exist, and which lakeload decides itself.

Spark ignores an option it does not know, so `delimeter` would silently do nothing: the lists are
closed. Names are compared without case, as Spark does. CSV and JSON have options of our own readers
(`text.options`); those of the other formats are Spark's.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakeload_jobs.contract.spec import FileFormatName
from lakeload_jobs.core.names import did_you_mean
from lakeload_jobs.sources.files.text.options import (
    CSV_ALIASES,
    CSV_OPTIONS,
    JSON_ALIASES,
    JSON_OPTIONS,
    OptionProblem,
    read_csv_options,
    read_json_options,
)

_LISTING = ("basePath", "modifiedAfter", "modifiedBefore", "pathGlobFilter", "recursiveFileLookup")
_PARQUET = ("datetimeRebaseMode", "int96RebaseMode", "mergeSchema", "on_loss")
_SPARKS_AVRO = (
    *("avroSchema", "datetimeRebaseMode", "enableStableIdentifiersForUnionType"),
    *("positionalFieldMatching", "recursiveFieldMaxDepth", "stableIdentifierPrefixForUnionType"),
)

READER_OPTIONS: dict[FileFormatName, tuple[str, ...]] = {
    "CSV": tuple(sorted((*_LISTING, *CSV_OPTIONS, *CSV_ALIASES))),
    "NDJSON": tuple(
        sorted({*_LISTING, *JSON_OPTIONS, *JSON_ALIASES} - {"records"}),
    ),
    "JSON": tuple(sorted((*_LISTING, *JSON_OPTIONS, *JSON_ALIASES))),
    "PARQUET": tuple(sorted((*_LISTING, *_PARQUET))),
    "ORC": tuple(sorted((*_LISTING, "mergeSchema", "on_loss"))),
    "AVRO": tuple(sorted((*_LISTING, *_SPARKS_AVRO, "ignoreExtension", "on_loss"))),
}
"""The options each format accepts: those of CSV and JSON are our own and Spark's names for them,
all others are as Spark 4.1 documents them, and lakeload's own `on_loss`."""


def only_sparks(file_format: FileFormatName, options: Mapping[str, str]) -> str | None:
    """Return an option that only Spark's reader of the format knows; None where there is none."""
    own = {name.lower() for name in _SPARKS_AVRO} if file_format == "AVRO" else set()
    return next((option for option in options if option.lower() in own), None)


TEXT_FORMATS: tuple[FileFormatName, ...] = ("CSV", "JSON", "NDJSON")
"""The formats that are read by readers of our own."""

_REFUSED = {
    "mode": "`on_bad_value` says what happens to bad values",
    "columnnameofcorruptrecord": "`on_bad_value: NULL` counts bad records in the result",
    "ignorecorruptfiles": "it would skip rows silently; fix or exclude the file",
    "ignoremissingfiles": "it would skip rows silently",
    "path": "name the files in the table's `path`",
    "paths": "name the files in the table's `path`",
    "multiline": "`format: JSON` reads records of many lines, `format: NDJSON` one on each",
    "compression": "the content decides",
}


_VALUES = {"on_loss": ("FAIL", "TRUNCATE")}


def option_problems(file_format: FileFormatName, options: Mapping[str, str]) -> list[OptionProblem]:
    """Return every option of `options` that the format does not accept, and for CSV and JSON every
    value that an option does not take."""
    known = {name.lower() for name in READER_OPTIONS[file_format]}
    problems = []
    for option, value in options.items():
        name = option.lower()
        if name in known:
            choices = _VALUES.get(name)
            if choices is not None and str(value).upper() not in choices:
                message = f"the reader option `{option}: {value}` has no such value"
                problems.append(OptionProblem(option, message, f"it is {' or '.join(choices)}"))
            continue
        if name in _REFUSED:
            message = f"the reader option `{option}` belongs to lakeload"
            hint: str | None = _REFUSED[name]
        else:
            message = f"{file_format} has no reader option `{option}`"
            hint = did_you_mean(option, READER_OPTIONS[file_format])
        problems.append(OptionProblem(option, message, hint))
    if file_format == "CSV":
        problems += read_csv_options(options)[1]
    if file_format in ("JSON", "NDJSON"):
        problems += read_json_options(options)[1]
    return problems
