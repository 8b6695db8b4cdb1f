"""The FILES source: formats, and the reader options that pass through to Spark."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from lakeload.config.model import Finding, Model, only, refusal
from lakeload.config.secret_names import shown
from lakeload_jobs.contract.spec import FileFormat
from lakeload_jobs.rules.suggest import did_you_mean


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_ANY_FILE = ("pathGlobFilter", "recursiveFileLookup", "modifiedBefore", "modifiedAfter")
_TEXT_FILE = _words(
    """
    encoding charset lineSep locale dateFormat timestampFormat timestampNTZFormat
    enableDateTimeParsingFallback samplingRatio inferSchema
    """
)
_JSON = _words(
    """
    primitivesAsString prefersDecimal allowComments allowUnquotedFieldNames
    allowSingleQuotes allowNumericLeadingZeros allowNumericLeadingZero
    allowBackslashEscapingAnyCharacter allowUnquotedControlChars allowNonNumericNumbers
    dropFieldIfAllNull
    """
)
_CSV = _words(
    """
    sep delimiter quote escape comment header enforceSchema preferDate multiLine
    ignoreLeadingWhiteSpace ignoreTrailingWhiteSpace nullValue nanValue positiveInf
    negativeInf maxColumns maxCharsPerColumn charToEscapeQuoteEscaping emptyValue
    unescapedQuoteHandling
    """
)
_PARQUET = ("mergeSchema", "datetimeRebaseMode", "int96RebaseMode")

OPTIONS: dict[FileFormat, tuple[str, ...]] = {
    "CSV": (*_ANY_FILE, *_TEXT_FILE, *_CSV),
    "JSON": (*_ANY_FILE, *(name for name in _TEXT_FILE if name != "inferSchema"), *_JSON),
    "NDJSON": (*_ANY_FILE, *(name for name in _TEXT_FILE if name != "inferSchema"), *_JSON),
    "PARQUET": (*_ANY_FILE, *_PARQUET),
}
"""The options of Spark 4.1's readers. Spark ignores names it does not know; lakeload refuses."""

_OWNED = {
    "mode": "set `on_bad_value: FAIL` or `NULL` in the pipeline",
    "columnnameofcorruptrecord": "set `on_bad_value` in the pipeline",
    "badrecordspath": "set `on_bad_value` in the pipeline",
    "path": "set `path` of the table",
    "paths": "set `path` of the table",
    "schema": "set `columns.types` of the table",
    "ignorecorruptfiles": "leaving files out silently would break exactly once",
    "ignoremissingfiles": "leaving files out silently would break exactly once",
    "maxmalformedlogperpartition": "Spark no longer uses it",
    "compression": "readers see a file's compression by its name",
}


def _option_values(given: Any) -> Any:
    """Spark's options are text; booleans and whole numbers may be written as such."""
    if not isinstance(given, dict):
        return given
    return {name: _option_value(name, value) for name, value in given.items()}


def _option_value(name: str, value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else value


Options = Annotated[
    dict[str, str],
    BeforeValidator(_option_values),
    WithJsonSchema(
        {"type": "object", "additionalProperties": {"type": ["string", "boolean", "integer"]}}
    ),
]


class Source(Model):
    """Where the data comes from."""

    type: Literal["FILES"]
    """`FILES`; JDBC, KAFKA, SPARK and MESSAGES are not supported yet."""
    format: FileFormat
    """`JSON` is one value or array in each file, `NDJSON` one object on each line."""
    options: Options = Field(default_factory=dict)
    """Options of Spark's reader, such as `header: true`."""
    incremental: Annotated[bool, only(False, "loading only new files")] = False
    """Load each file once; `true` is not supported yet."""


def option_findings(options: dict[str, str], file_format: FileFormat) -> list[Finding]:
    """Return what is wrong with reader options; each is placed at its option."""
    known = {name.lower(): name for name in OPTIONS[file_format]}
    return [_unusable(name, file_format) for name in options if name.lower() not in known]


def _unusable(name: str, file_format: FileFormat) -> Finding:
    lower = name.lower()
    if lower in _OWNED:
        return Finding(f"the option `{name}` is lakeload's own", _OWNED[lower], (name,))
    if lower == "multiline":
        other = {"JSON": "NDJSON", "NDJSON": "JSON"}.get(file_format)
        hint = f"`format: {other}` is the other kind" if other else None
        return Finding(f"`multiLine` follows from `format: {file_format}`", hint, (name,))
    return Finding(
        f"Spark's reader for {file_format} has no option `{shown(name)}`",
        did_you_mean(name, OPTIONS[file_format]),
        (name,),
        "unknown-option",
    )


def path_text(given: str) -> str:
    """Accept a local path or glob; other places are refused."""
    if not given.strip():
        raise refusal("the path is empty", "write a file, a folder or a glob")
    scheme, separator, rest = given.partition("://")
    if separator and scheme.lower() in ("s3", "s3a", "s3n"):
        raise refusal(
            f"input from S3 (`{shown(given)}`) is not supported yet",
            "copy the files to this machine first and give their local path",
            code="not-supported-yet",
        )
    if separator or given.startswith("file:"):
        hint = f"write the path alone: `{shown(rest)}`" if scheme == "file" else None
        raise refusal(f"`{shown(given)}` is not a local path", hint)
    if given.startswith("~"):
        raise refusal(f"`{shown(given)}`: `~` is not expanded", "write `${HOME}` instead")
    if any(not char.isprintable() for char in given):
        raise refusal(f"`{shown(given)}` holds a control character")
    return given
