"""`lakeload inspect`: the content of files, and settings to load them. Needs no Spark."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakeload.commands.options import Output
from lakeload.ui import console
from lakeload.ui.console import OutputFormat
from lakeload.ui.display import Phases
from lakeload_jobs.contract.errors import InvalidInput, LoadFailed, Refused

if TYPE_CHECKING:
    from lakeload.sources.files.inspected_tables import InspectedTable

LISTING = "listing files"
"""The first phase."""

Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE…", help="Files, folders, globs or s3:// URLs."),
]


def inspect(files: Files, output: Output = OutputFormat.TEXT) -> None:
    """Show the content of files: format, encoding, dialect, columns, types, three rows.

    Files that belong together are one table, with the settings that load it. Reads
    the first megabytes of large files, and needs no Java. Objects in S3 are read with
    the AWS environment. Exit code 0; 2 when a path is wrong; 3 when a file is missing,
    denied or cannot be loaded.
    """
    with Phases(console.err, LISTING, quiet=console.silent()) as phases:
        for path in files:
            check_path(path)
        tables = inspect_tables(files, Path.cwd(), phases)
    from lakeload.ui.inspect import show_text, to_document

    if output is OutputFormat.JSON:
        console.show_json(to_document(tables))
    else:
        show_text(tables, console.out, console.err, quiet=console.quiet())
    if any(table.error is not None for table in tables):
        raise typer.Exit(Refused.exit_code)


def check_path(path: str) -> None:
    """Raise `InvalidInput` for text that is no path of a FILES table."""
    from pydantic import TypeAdapter, ValidationError

    from lakeload.config.model import first_finding
    from lakeload.sources.paths import PathText

    try:
        TypeAdapter(PathText).validate_python(path)
    except ValidationError as error:
        if finding := first_finding(error):
            raise InvalidInput(finding.message, hint=finding.hint) from error
        raise


def inspect_tables(
    paths: Sequence[str], folder: Path, phases: Phases, *, beside: Sequence[str] = ()
) -> tuple[InspectedTable, ...]:
    """Return the tables that files make; `beside` are files that will be written.

    Raises `Refused` for paths that name nothing.
    """
    from lakeload.sources.files.inspected_tables import inspect_paths
    from lakeload_jobs.aws import AwsSession
    from lakeload_jobs.contract.spec import DestinationSpec
    from lakeload_jobs.sources.paths.file_bytes import FileBytes
    from lakeload_jobs.sources.paths.objects import SourceObjects

    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    # Buckets are those of the paths: only the identity and the region matter.
    reader = DestinationSpec(bucket="", region=region)
    objects = SourceObjects(AwsSession(reader, label="inspect"))
    opener = FileBytes(reader, "inspect")

    def on_file(done: int, total: int) -> None:
        phases.begin("inspecting files")
        phases.at(done, total, "files")

    try:
        return inspect_paths(
            paths,
            folder,
            opener,
            lambda found: tuple(objects.find(found)),
            on_file,
            beside=beside,
        )
    except LoadFailed as error:
        raise Refused(error.message, hint=error.hint) from error
