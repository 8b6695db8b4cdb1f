"""`lakeload validate`: every problem of every file, without network."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from lakeload.commands.options import DestinationFile
from lakeload.config.problems import has_errors
from lakeload.documents.load import inspect_all, refuse_beside_destinations
from lakeload.ui.validation import ValidationFormat, show_inspections
from lakeload_jobs.contract.errors import ExitCode


def validate(
    files: Annotated[
        list[Path], typer.Argument(help="Configuration files of destinations and pipelines.")
    ],
    destination: DestinationFile = None,
    output: Annotated[
        ValidationFormat,
        typer.Option(
            "--output", help="Output format; `github` annotates the lines of a pull request."
        ),
    ] = ValidationFormat.TEXT,
) -> None:
    """Check configuration files: every problem, with line, column and a hint. No network.

    A pipeline's destination is checked with it. Exit code 0 when no file has an error,
    2 otherwise; warnings and notes change nothing.
    """
    inspections = inspect_all(files, os.environ, destination)
    if all(inspection.kind == "destination" for inspection in inspections):
        refuse_beside_destinations(destination, files)
    show_inspections(inspections, output)
    if has_errors(problem for inspection in inspections for problem in inspection.problems):
        raise typer.Exit(ExitCode.INVALID)
