"""Paths as documents write them: accepted forms, and what lies there before Spark starts."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from lakeload.config.model import Called, refusal
from lakeload.config.scalars import bucket_problem
from lakeload.config.secret_names import shown
from lakeload.sources.base import InputFound
from lakeload_jobs.contract.errors import LoadFailed
from lakeload_jobs.sources.paths.file_state import is_s3
from lakeload_jobs.sources.paths.key_patterns import alternatives

NO_UTF8 = re.compile("[\ud800-\udfff]")
"""What Python has in place of a byte of a file name that is no UTF-8."""


def is_utf8_name(path: str) -> bool:
    """Whether a path can be written into a document: Python has a surrogate for each byte of a file
    name that is no UTF-8."""
    return not NO_UTF8.search(path)


def utf8_glob(path: str) -> str:
    """Return a path or glob with `?` in place of bytes that are no UTF-8."""
    return NO_UTF8.sub("?", path)


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


def look_at_paths(paths: Sequence[str]) -> InputFound:
    """Count what lies at the local paths: folders with all they hold, without what Spark hides.

    The job may read less: folders in folders and reader options are its business.
    Objects in S3 are not looked at here: that takes an identity.
    """
    # Only here: it brings the libraries of AWS along. The job lists with the same function.
    from lakeload_jobs.sources.paths.local_listing import local_files

    sizes: dict[str, int] = {}
    missing: list[str] = []
    why: LoadFailed | None = None
    for pattern in paths:
        if is_s3(pattern):
            continue
        try:
            for file in local_files([pattern]):
                sizes[os.path.realpath(file.path)] = file.size
        except LoadFailed as error:
            missing.append(pattern)
            why = why or error
    complete = bool(paths) and not any(map(is_s3, paths))
    return InputFound(len(sizes), sum(sizes.values()), tuple(missing), why, complete)


def any_input(patterns: Sequence[str]) -> bool:
    """Whether one of the paths or globs names anything at all; of S3 only S3 can tell."""
    from lakeload_jobs.sources.paths.local_listing import expand

    for pattern in patterns:
        if is_s3(pattern):
            return True
        try:
            expand([pattern])
        except LoadFailed:
            continue
        return True
    return False
