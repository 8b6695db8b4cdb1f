"""SPARK source type: settings and job spec."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from lakeload.config.model import Called, Finding, refusal
from lakeload.config.secret_names import has_userinfo, looks_secret, shown
from lakeload.sources.base import InputFacts, InputFound, SourceSettings, SourceType, TableSettings
from lakeload.sources.datasets import datasets_of_paths
from lakeload.sources.paths import Paths, any_input, local_paths, look_at_paths
from lakeload.sources.reader_options import Options
from lakeload_jobs.contract.spec import ReaderChoice, SparkInput
from lakeload_jobs.sources.files.formats.csv.options import CSV_OPTIONS
from lakeload_jobs.sources.paths.file_state import is_s3

_FORMAT = re.compile(r"[A-Za-z][A-Za-z0-9_.$-]{0,254}")
_SECRET_IN_VALUE = re.compile(r"(password|passwd|pwd|secret|token)\s*=", re.IGNORECASE)


def _format_name(given: str) -> str:
    if not _FORMAT.fullmatch(given):
        message = f"`{shown(given)}` is not the name of a format of Spark"
        raise refusal(message, "write one such as `csv`, `text` or `xml`, or a class")
    return given


FormatName = Annotated[str, Called("name of a format"), AfterValidator(_format_name)]


class SparkSource(SourceSettings):
    """One of Spark's own readers."""

    type: Literal["SPARK"]
    """`SPARK`: what is read, and what it means, is up to Spark's reader."""
    format: FormatName
    """Spark's name of the format, such as `csv` or `xml`, or the class of a data source."""
    options: Options = Field(default_factory=dict)
    """Options of that reader, as Spark documents them. They are stored as written: no secrets."""


class SparkTable(TableSettings):
    """The input of one table."""

    path: Paths | None = None
    """A file, folder or glob, or a list of them, relative to this file; some formats have none."""
    options: Options = Field(default_factory=dict)
    """Further options; they win over the source's."""


class SparkSourceType(SourceType[SparkSource, SparkTable, SparkInput]):
    """Spark's own readers."""

    settings = SparkSource
    table = SparkTable

    def written(self, source: SparkSource, table: SparkTable) -> SparkInput:
        """Return the reader with its options; Spark compares their names without case."""
        options = {name.lower(): (name, value) for name, value in source.options.items()}
        options |= {name.lower(): (name, value) for name, value in table.options.items()}
        return SparkInput(source.format, table.path or (), dict(options.values()))

    def resolved(self, written: SparkInput, source: SparkSource, folder: Path) -> SparkInput:
        """Return it with absolute paths."""
        paths = tuple(one for path in written.paths for one in local_paths(folder, path))
        return replace(written, paths=paths)

    def identity(self, written: SparkInput) -> Mapping[str, Any]:
        """Return all of it: anything may change which rows are read."""
        return {
            "type": written.type,
            "format": written.format,
            "paths": written.paths,
            "options": written.options,
        }

    def findings(self, source: Any, tables: Sequence[tuple[int, SparkTable]]) -> Iterator[Finding]:
        """Yield secrets among the options, paths there, and paths in S3."""
        source = source if isinstance(source, dict) else {}
        own = _FILES_ONLY if str(source.get("format")).lower() == "csv" else ()
        if isinstance(given := source.get("options"), dict):
            yield from _option_findings(given, ("source", "options"), own)
        for i, table in tables:
            yield from _option_findings(table.options, ("tables", i, "options"), own)
            if path := next(filter(is_s3, table.path or ()), None):
                yield Finding(
                    f"`{shown(path)}`: a source of `type: SPARK` reads paths of this machine",
                    "use `type: FILES`, which reads S3",
                    ("tables", i, "path"),
                )

    def facts(self, read: SparkInput, reader: ReaderChoice = "AUTO") -> InputFacts:
        """Return the folders and files, none for a reader without paths, and the jars of Avro,
        which Spark does not bring."""
        avro = read.format.lower() == "avro"
        return InputFacts(
            datasets=datasets_of_paths(read.paths), jar_sets=frozenset({"avro"} if avro else ())
        )

    def count_files(self, read: SparkInput) -> InputFound:
        """Count the files at the paths."""
        return look_at_paths(read.paths)

    def absent(self, read: SparkInput) -> tuple[str, ...]:
        """Return the paths where none of them names a file."""
        return () if not read.paths or any_input(read.paths) else read.paths


_FILES_ONLY = frozenset(CSV_OPTIONS) - {"comment", "encoding", "escape", "header", "quote"}
"""Options of CSV that Spark's reader does not know, and ignores."""


def _option_findings(
    options: Mapping[Any, Any], at: tuple[str | int, ...], own: Collection[str]
) -> Iterator[Finding]:
    for name, value in options.items():
        if not isinstance(name, str):
            continue
        text = value if isinstance(value, str) else ""
        if looks_secret(name) or has_userinfo(text) or _SECRET_IN_VALUE.search(text):
            yield Finding(
                f"the option `{shown(name)}` holds a secret, and options are stored as written",
                "leave it out: readers that need a secret are not supported",
                (*at, name),
                "secret-literal",
            )
        elif name.lower() in ("path", "paths"):
            hint = "name the files in the table's `path`"
            yield Finding(f"the option `{name}` belongs to lakeload", hint, (*at, name))
        elif name.lower() in own:
            message = f"Spark's reader of CSV has no option `{name}`, and ignores it"
            hint = "remove it, or use `type: FILES` with `format: CSV`, which has it"
            yield Finding(message, hint, (*at, name))


SPARK = SparkSourceType()
