"""FILES as a type of source: documents → what the job is told, and what a load's identity is."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lakeload.config.credentials import Credentials, credentials_spec
from lakeload.config.model import Finding
from lakeload.config.problems import MAX_PROBLEMS
from lakeload.config.secret_names import absolute_path, shown
from lakeload.sources.base import SourceType
from lakeload.sources.files.settings import FilesTable, Source, option_findings
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import FilesInput
from lakeload_jobs.sources.files.file_state import is_s3, normal_path
from lakeload_jobs.sources.files.reader_options import READER_OPTIONS

Numbered = Sequence[tuple[int, FilesTable]]


class FilesSourceType(SourceType[Source, FilesTable, FilesInput]):
    """Files of this machine or in S3."""

    settings = Source
    table = FilesTable

    def written(self, source: Source, table: FilesTable) -> FilesInput:
        """Return the files of a table; options of the source belong to its format."""
        file_format = table.format or source.format
        inherited = source.options if file_format == source.format else {}
        # Spark reads the names of options without regard to case; the table's own come last.
        options = {name.lower(): (name, value) for name, value in inherited.items()}
        options |= {name.lower(): (name, value) for name, value in table.options.items()}
        return FilesInput(file_format, table.path, dict(options.values()), source.incremental)

    def resolved(self, written: FilesInput, source: Source, folder: Path) -> FilesInput:
        """Return the files with absolute paths and the identity that reads them."""
        # A folder called `[old]` is no pattern, whatever the path below it is.
        literal = Path(glob.escape(str(folder.absolute())))
        given = source.credentials
        return replace(
            written,
            paths=tuple(
                path if is_s3(path) else absolute_path(literal, path) for path in written.paths
            ),
            credentials=None if given is None else credentials_spec(given, folder),
            folder=normal_path(str(folder.absolute())),
        )

    def identity(self, written: FilesInput) -> Mapping[str, Any]:
        """Return what decides which rows are read: not from which folder, nor by whom."""
        return {
            "format": written.format,
            "paths": written.paths,
            "options": written.options,
            "incremental": written.incremental,
            # Neither ever takes part; fingerprints have always had these two keys.
            "credentials": None,
            "folder": "",
        }

    def findings(self, source: Any, tables: Numbered) -> Iterator[Finding]:
        """Yield patterns where names belong, and options that the format's reader does not have."""
        yield from _globs(tables)
        given = source if isinstance(source, dict) else {}
        file_format = given.get("format")
        if isinstance(given.get("options"), dict):
            yield from _options(given["options"], file_format, ("source", "options"))
        for i, table in tables:
            own = table.format or file_format
            yield from _options(table.options, own, ("tables", i, "options"))

    def references(self, source: Any) -> Mapping[str, SecretReference]:
        """Return the secrets of the source's own credentials."""
        given = source.get("credentials") if isinstance(source, dict) else None
        try:
            references = Credentials.model_validate(given).references
        except ValidationError:
            return {}
        return {f"source.credentials.{name}": found for name, found in references.items()}

    def remote_findings(self, tables: Numbered, master: str) -> Iterator[Finding]:
        """Refuse files in S3 (docs/decisions/0050)."""
        for i, table in tables:
            if path := next(filter(is_s3, table.path), None):
                yield Finding(
                    f"reading `{shown(path)}` is not supported yet on cluster masters, "
                    f"and `{shown(master)}` is one",
                    "use `local[*]` or `local-cluster[…]`, which read S3 too",
                    ("tables", i, "path"),
                    "remote-input",
                )


FILES = FilesSourceType()


def _globs(tables: Numbered) -> Iterator[Finding]:
    for i, table in tables:
        if "*" in table.table or "?" in table.table:
            yield Finding(
                f"`{shown(table.table)}` is one name for a FILES table, not a pattern",
                "choose a name; patterns go into `path`",
                ("tables", i, "table"),
            )


def _options(
    options: dict[str, Any], file_format: Any, at: tuple[str | int, ...]
) -> Iterator[Finding]:
    if isinstance(file_format, str) and file_format in READER_OPTIONS:
        some = dict(islice(options.items(), MAX_PROBLEMS))
        for finding in option_findings(some, file_format):
            yield Finding(finding.message, finding.hint, (*at, *finding.at), finding.code)
