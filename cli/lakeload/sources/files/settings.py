"""The FILES source: formats and reader options."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from lakeload.config.credentials import Credentials
from lakeload.config.model import Called, Finding, refusal
from lakeload.config.scalars import bucket_problem
from lakeload.config.secret_names import shown
from lakeload.sources.base import SourceSettings, TableSettings
from lakeload_jobs.contract.spec import FileFormatName, OnChangedFile
from lakeload_jobs.sources.files.formats.registry import FILE_FORMATS
from lakeload_jobs.sources.files.key_patterns import alternatives
from lakeload_jobs.sources.files.text.options import option_text


def _option_values(given: Any) -> Any:
    """Options are text; booleans, whole numbers and lists of texts may be written as such."""
    if not isinstance(given, dict):
        return given
    return {name: option_text(value) for name, value in given.items()}


Options = Annotated[
    dict[str, str],
    BeforeValidator(_option_values),
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": {"type": ["string", "boolean", "integer", "array"]},
        }
    ),
]


def is_utf8_name(path: str) -> bool:
    """Whether a path can be written into a document: Python has a surrogate for each byte of a file
    name that is no UTF-8."""
    return not _NO_UTF8.search(path)


def utf8_glob(path: str) -> str:
    """Return a path or glob with `?` in place of bytes that are no UTF-8."""
    return _NO_UTF8.sub("?", path)


_NO_UTF8 = re.compile("[\ud800-\udfff]")


def path_text(given: str) -> str:
    """Accept a path or glob, local or `s3://bucket/…`, or a `file:///…`; refuse other places."""
    if not given.strip():
        raise refusal("the path is empty", "write a file, a folder or a glob")
    if not is_utf8_name(given):
        raise refusal(
            f"`{shown(given)}` has bytes that are no UTF-8",
            "write a glob, with `?` in place of each of these bytes",
        )
    if any(not char.isprintable() for char in given):
        raise refusal(f"`{shown(given)}` holds a control character")
    scheme, separator, rest = given.partition("://")
    if separator and scheme.lower() in ("s3", "s3a", "s3n"):
        return _s3_path(given, scheme, rest)
    if given.startswith("file:"):
        if not FILE_URL.match(given):
            hint = "a URL of this machine is `file:///folder/file`; else write the path alone"
            raise refusal(f"`{shown(given)}` names no file of this machine", hint)
    elif separator:
        message = f"`{shown(given)}` is neither a local path nor one in S3"
        raise refusal(message, "S3 is `s3://bucket/path`")
    return given


FILE_URL = re.compile(r"file:(?://(?:localhost)?(?=/)|(?=/[^/]))")
"""How a URL begins whose path is one of this machine."""


def local_paths(folder: Path, written: str) -> tuple[str, ...]:
    """Return the absolute paths and globs that a written path stands for, read as a shell reads it.

    `~` is a home, `{a,b}` two paths unless a file has exactly that name, and a relative path begins
    at `folder`. The characters of a URL are decoded. Links and `..` are left to the file system.
    """
    path = written
    if start := FILE_URL.match(path):
        path = unquote(path[start.end() :])
    path = os.path.expanduser(path)  # noqa: PTH111 - Path's own fails where there is no such user
    # A folder called `[old]` is no pattern, whatever the path below it is.
    home = glob.escape(str(folder.absolute()))
    if os.path.lexists(folder.absolute() / path):
        return (str(Path(home) / path),)
    return tuple(str(Path(home) / one) for one in alternatives(path))


def table_of(path: str) -> str:
    """Return a table's name from a path: its last part with letters that is no pattern."""
    for part in reversed(path.removeprefix("s3://").split("/")):
        plain = _NO_UTF8.sub("_", part)
        name = re.sub(r"[*?{\[].*", "", plain).split(".")[0].strip("-_. ")
        if re.search("[^\\W\\d_]", name):
            return name
    return "table"


def _s3_path(given: str, scheme: str, rest: str) -> str:
    """Accept `s3://bucket/key` with wildcards in the key only: buckets cannot be listed by name."""
    if scheme != "s3":
        raise refusal(f"`{shown(given)}`: `{scheme}://` is Hadoop's own", f"write `s3://{rest}`")
    bucket, _, key = rest.partition("/")
    if bucket_problem(bucket):
        raise refusal(
            f"`{shown(bucket)}` in `{shown(given)}` is not a bucket name",
            "write `s3://bucket/path`, with wildcards in the path only",
        )
    if not key:
        raise refusal(
            f"`{shown(given)}` names a whole bucket",
            f"write what to read: `s3://{bucket}/folder/`, or `s3://{bucket}/*` for its top level",
        )
    return given


def _paths(given: Any) -> Any:
    return given if given is None or isinstance(given, tuple | dict) else (given,)


def _some_paths(given: tuple[str, ...]) -> tuple[str, ...]:
    if not given:
        raise refusal("the list of paths is empty", "write at least one path")
    return given


PathText = Annotated[str, AfterValidator(path_text)]
Paths = Annotated[
    tuple[PathText, ...],
    Called("path, or list of paths"),
    AfterValidator(_some_paths),
    BeforeValidator(_paths),
    WithJsonSchema(
        {
            "oneOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1},
            ]
        }
    ),
]


class Source(SourceSettings):
    """Where the data comes from."""

    type: Literal["FILES"]
    """`FILES`; KAFKA and MESSAGES are not supported yet."""
    format: FileFormatName
    """`JSON` is objects or a list of them, `NDJSON` one object on each line."""
    options: Options = Field(default_factory=dict)
    """Reader options, such as `header: true`."""
    incremental: bool = False
    """Load each file once: only files that no earlier job of this pipeline has loaded."""
    on_changed_file: OnChangedFile | None = None
    """What becomes of a file that has changed since it was loaded, with `incremental`: its new
    version is loaded as well, the table fails, or the new version is remembered and not loaded.
    Default: `LOAD`, and `FAIL` where records of the older version were set aside."""
    content_hash: bool = False
    """Keep a hash of each file's content, with `incremental`: a file that was only written again is
    not loaded again. Each file is read one more time for it."""
    credentials: Credentials | None = None
    """Identity that reads `s3://` paths. Default: the destination's credentials."""


class FilesTable(TableSettings):
    """The files of one table."""

    path: Paths
    """A file, folder or glob, or a list of them; relative to this file."""
    format: FileFormatName | None = None
    """The format where it differs from the source's; the source's options then do not apply."""
    options: Options = Field(default_factory=dict)
    """Further reader options; they win over the source's."""


def option_findings(options: Mapping[str, str], file_format: str) -> list[Finding]:
    """Return what is wrong with reader options, each placed at its option."""
    return [
        Finding(shown(problem.message, 200), problem.hint, (problem.option,), "reader-option")
        for problem in FILE_FORMATS[file_format].option_problems(options)
    ]
