"""The FILES source: formats, and the reader options that pass through to Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from lakeload.config.model import Finding, Model, only, refusal
from lakeload.config.secret_names import shown
from lakeload_jobs.contract.spec import FileFormat
from lakeload_jobs.rules.reader_options import option_problems


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


def option_findings(options: Mapping[str, str], file_format: FileFormat) -> list[Finding]:
    """Return what is wrong with reader options, each placed at its option."""
    return [
        Finding(shown(problem.message, 200), problem.hint, (problem.option,), "reader-option")
        for problem in option_problems(file_format, options)
    ]


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
