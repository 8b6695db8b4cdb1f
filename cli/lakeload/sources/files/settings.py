"""The FILES source: formats and reader options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from lakeload.config.credentials import Credentials
from lakeload.config.model import Finding
from lakeload.config.secret_names import shown
from lakeload.sources.base import SourceSettings, TableSettings
from lakeload.sources.paths import NO_UTF8, Paths
from lakeload.sources.reader_options import Options
from lakeload_jobs.contract.spec import FileFormatName, OnChangedFile
from lakeload_jobs.sources.files.formats.registry import FILE_FORMATS


def table_of(path: str) -> str:
    """Return a table's name from a path: its last part with letters that is no pattern."""
    for part in reversed(path.removeprefix("s3://").split("/")):
        plain = NO_UTF8.sub("_", part)
        name = re.sub(r"[*?{\[].*", "", plain).split(".")[0].strip("-_. ")
        if re.search("[^\\W\\d_]", name):
            return name
    return "table"


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
