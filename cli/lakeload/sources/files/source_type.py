"""FILES source type: settings, job spec and fingerprint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from lakeload.config.credentials import Credentials
from lakeload.config.model import Finding, spec_of
from lakeload.config.problems import MAX_PROBLEMS
from lakeload.config.secret_names import shown
from lakeload.sources.base import (
    ColumnsRequest,
    InputFacts,
    InputFound,
    SampleRows,
    SourceColumns,
    SourceType,
)
from lakeload.sources.datasets import datasets_of_paths
from lakeload.sources.files.report import report_of_files, report_of_selection
from lakeload.sources.files.settings import FilesTable, Source, option_findings
from lakeload.sources.paths import any_input, local_paths, look_at_paths
from lakeload.sources.report import NOTHING_KNOWN, SourceReport
from lakeload_jobs.contract.errors import LakeloadError
from lakeload_jobs.contract.secrets import SecretReference
from lakeload_jobs.contract.spec import (
    CredentialsSpec,
    FilesInput,
    ReaderChoice,
    RunOptions,
    TableSpec,
)
from lakeload_jobs.contract.state import Bookmark
from lakeload_jobs.sources.files.formats.registry import FILE_FORMATS
from lakeload_jobs.sources.paths.file_state import is_s3, normal_path
from lakeload_jobs.sources.paths.key_patterns import alternatives

if TYPE_CHECKING:
    from lakeload_jobs.sources.paths.file_state import FileState
    from lakeload_jobs.sources.readers import SourceReaders

Numbered = Sequence[tuple[int, FilesTable]]

_ONE_PARTITION = 4 * 1024 * 1024
"""Spark never cuts smaller than `spark.sql.files.openCostInBytes`."""


class FilesSourceType(SourceType[Source, FilesTable, FilesInput]):
    """Files of this machine or in S3."""

    settings = Source
    table = FilesTable
    round_limits = ("files", "bytes")
    commit_thresholds = ("bytes", "age")
    sets_aside = True

    def written(self, source: Source, table: FilesTable) -> FilesInput:
        """Return the files of a table; options of the source belong to its format."""
        file_format = table.format or source.format
        inherited = source.options if file_format == source.format else {}
        return FilesInput(
            file_format,
            table.path,
            _with_own(inherited, table.options),
            source.incremental,
            on_changed_file=source.on_changed_file,
            content_hash=source.content_hash,
        )

    def resolved(self, written: FilesInput, source: Source, folder: Path) -> FilesInput:
        """Return the files with absolute paths and the identity that reads them."""
        given = source.credentials
        return replace(
            written,
            paths=tuple(
                one
                for path in written.paths
                for one in (alternatives(path) if is_s3(path) else local_paths(folder, path))
            ),
            credentials=None if given is None else spec_of(CredentialsSpec, given, folder),
            folder=normal_path(str(folder.absolute())),
        )

    def identity(self, written: FilesInput) -> Mapping[str, Any]:
        """Return what decides which rows are read: not from which folder, nor by whom."""
        # What was the default takes no part: fingerprints that are recorded do not have it.
        changed = written.on_changed_file
        return {
            **({} if changed in (None, "LOAD") else {"on_changed_file": changed}),
            "format": written.format,
            "paths": written.paths,
            "options": written.options,
            "incremental": written.incremental,
            # Neither ever takes part; fingerprints have always had these two keys.
            "credentials": None,
            "folder": "",
        }

    def loads_once(self, read: FilesInput, *, replaces: bool) -> str:
        """Return the setting that keeps account of files."""
        return "set `incremental: true` in `source` and begin again with `lakeload reset`"

    def without_rounds(self, read: FilesInput) -> tuple[str, str] | None:
        """Return why files that are not incremental are loaded at once."""
        if read.incremental:
            return None
        return "it is loaded whole each time", "set `incremental: true` in `source`"

    def findings(self, source: Any, tables: Numbered) -> Iterator[Finding]:
        """Yield patterns where names belong, and options that the format's reader does not have."""
        yield from _globs(tables)
        given = source if isinstance(source, dict) else {}
        for name in ("on_changed_file", "content_hash"):
            if given.get(name) and not given.get("incremental"):
                yield Finding(
                    f"`{name}` is about files that were loaded before, and without "
                    "`incremental` all files are loaded each time",
                    f"set `incremental: true`, or leave `{name}` out",
                    ("source", name),
                    "changed-files",
                )
        file_format = given.get("format")
        shared = given.get("options")
        yield from _all_options(shared if isinstance(shared, dict) else {}, file_format, tables)

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

    def local_files(self, read: FilesInput) -> tuple[FileState, ...]:
        """Return the files, none where a load will report why it cannot list them."""
        # With AWS's client, which the documents alone do without.
        from lakeload_jobs.sources.files.listing import list_files

        if any(map(is_s3, read.paths)):
            return ()
        try:
            return list_files(read)
        except LakeloadError:
            return ()

    def facts(self, read: FilesInput, reader: ReaderChoice = "AUTO") -> InputFacts:
        """Return what the paths, the format and its options say."""
        form = FILE_FORMATS[read.format]
        objects = tuple(filter(is_s3, read.paths))
        options = {name.lower(): value for name, value in read.options.items()}
        by_spark = form.only_spark(read.options) is not None
        jar_sets = {*form.spark_jars} if by_spark else set()
        if objects and form.has_types:
            jar_sets.add("s3")
        return InputFacts(
            datasets=datasets_of_paths(read.paths),
            objects=objects,
            has_credentials=read.credentials is not None,
            records=options.get("records"),
            reader="jvm" if by_spark else None,
            jar_sets=frozenset(jar_sets),
            casts=not form.has_types,
            numbering="footers" if form.has_types and not by_spark else "counting pass",
            one_partition=_ONE_PARTITION if by_spark else 0,
        )

    def count_files(self, read: FilesInput) -> InputFound:
        """Count the files at local paths."""
        return look_at_paths(read.paths)

    def absent(self, read: FilesInput) -> tuple[str, ...]:
        """Return the paths where none of them names a file."""
        # A folder whose files are loaded once may be empty; their log knows whether they were.
        there = read.incremental or any_input(read.paths)
        return () if there else read.paths

    def inspect(
        self,
        read: FilesInput,
        readers: SourceReaders,
        options: RunOptions,
        *,
        table: TableSpec,
        known: bool,
        bookmark: Callable[[], Bookmark] | None,
    ) -> SourceReport:
        """List the files; what is only on this machine and not incremental is left to the job."""
        # With AWS's client, which the documents alone do without.
        from lakeload_jobs.sources.files.content import content_hashes
        from lakeload_jobs.sources.files.listing import list_files
        from lakeload_jobs.sources.files.selection import choose_files

        if not (read.incremental or any(map(is_s3, read.paths))):
            return NOTHING_KNOWN
        may_be_empty = read.incremental and known and not options.starts_over
        listed = list_files(read, readers, may_be_empty=may_be_empty)
        if not read.incremental or bookmark is None:
            return report_of_files(listed)
        selection = choose_files(
            bookmark(),
            read.folder,
            listed,
            reload=options.reload,
            on_changed_file=read.on_changed_file,
            contents=(lambda files: content_hashes(files, read, readers))
            if read.content_hash
            else None,
            limit=table.round_limit,
        )
        return report_of_selection(listed, selection, reload=options.reload)

    def read_columns(
        self, read: FilesInput, request: ColumnsRequest, readers: SourceReaders
    ) -> SourceColumns | None:
        """Read the footers of Parquet and ORC files, the headers of Avro files, and the values of
        text."""
        # With Arrow, which the documents alone do without.
        from lakeload.sources.files.columns import read_columns

        return read_columns(read, request, readers)

    def read_sample(self, read: FilesInput, readers: SourceReaders) -> SampleRows | None:
        """Read the first rows of the first file."""
        from lakeload.sources.files.columns import read_sample

        return read_sample(read, readers)


FILES = FilesSourceType()


def _globs(tables: Numbered) -> Iterator[Finding]:
    for i, table in tables:
        if "*" in table.table or "?" in table.table:
            yield Finding(
                f"`{shown(table.table)}` is one name for a FILES table, not a pattern",
                "choose a name; patterns go into `path`",
                ("tables", i, "table"),
            )


def _with_own(inherited: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a table. Spark reads their names without regard to case; the table's
    own come last."""
    options = {str(name).lower(): (name, value) for name, value in inherited.items()}
    options |= {name.lower(): (name, value) for name, value in own.items()}
    return dict(options.values())


def _all_options(shared: dict[str, Any], file_format: Any, tables: Numbered) -> Iterator[Finding]:
    """Yield what is wrong with the options of the source and with those of each table, which mean
    something together: once, where it is written."""
    at = ("source", "options")
    alone = list(_options(shared, file_format, at))
    heirs = [(i, table) for i, table in tables if (table.format or file_format) == file_format]
    seen: set[str] = set()
    for i, table in tables:
        inherits = (table.format or file_format) == file_format
        options = _with_own(shared, table.options) if inherits else table.options
        own = ("tables", i, "options")
        for finding in _options(options, table.format or file_format, own):
            seen.add(finding.message)
            if finding.at[-1] in table.options:
                yield finding
            elif finding.message not in {one.message for one in alone}:
                yield replace(finding, at=own)
    yield from (one for one in alone if not heirs or one.message in seen)


def _options(
    options: dict[str, Any], file_format: Any, at: tuple[str | int, ...]
) -> Iterator[Finding]:
    if isinstance(file_format, str) and file_format in FILE_FORMATS:
        some = dict(islice(options.items(), MAX_PROBLEMS))
        for finding in option_findings(some, file_format):
            yield Finding(finding.message, finding.hint, (*at, *finding.at), finding.code)
