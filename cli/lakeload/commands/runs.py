"""`lakeload runs`: the load history, from the records in the lake."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakeload.commands.options import DestinationFile, Output, Tables, refuse_without_file
from lakeload.ui import console
from lakeload.ui.console import OutputFormat

if TYPE_CHECKING:
    from lakeload.documents.load import DestinationDocument, PipelineDocument
    from lakeload.formats.tables import TablesRequest
    from lakeload.launch.run_folder import LocalRun


def runs(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="A pipeline, for its tables, or a destination, for all that have been loaded "
            "there. Without one: the runs of this machine.",
            show_default=False,
        ),
    ] = None,
    destination: DestinationFile = None,
    table: Tables = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="Show the newest N loads of tables.")
    ] = 20,
    local: Annotated[
        bool, typer.Option("--local", help="Show this machine's run folders and logs instead.")
    ] = False,
    output: Output = OutputFormat.TEXT,
) -> None:
    """Show the load history: the newest jobs of the tables, from their logs.

    States: done, unfinished (the next sync finishes it), damaged (an operator has
    to decide), partial, void, reset. With -v also users, record numbers, fences.
    For Iceberg tables, from their snapshots: done, rolled back.
    Exit code 0; 1 when a log is damaged; 3 when AWS or the catalog denies a request.
    """
    if file is None:
        refuse_without_file(destination)
    if local or file is None:
        _show_local(file, destination, table or [], limit, output)
        return
    from lakeload.documents.named_files import NamedFiles
    from lakeload.ui.display import Phases
    from lakeload.ui.progress import PHASES
    from lakeload.ui.runs import show_text, to_document

    files = NamedFiles(file, destination)
    with Phases(console.err, PHASES["documents"], quiet=console.silent()) as phases:
        # From here on boto3 is imported, which takes longer than everything before it.
        from lakeload.commands.lake_tables import request_of

        commands, request = request_of("runs", files, table or (), phases=phases)
        report = commands.runs(request, limit)
        running = _running(request)
    if output is OutputFormat.JSON:
        console.show_json(to_document(report, running))
    else:
        verbose = console.verbose()
        show_text(report, files, console.out, console.err, verbose=verbose, running=running)
    raise typer.Exit(report.exit_code)


def _show_local(
    file: Path | None, destination: Path | None, globs: list[str], limit: int, output: OutputFormat
) -> None:
    from lakeload.launch.run_folder import matching, past_runs, runs_directory
    from lakeload.ui.runs import local_document, show_local

    found = matching(past_runs(runs_directory(os.environ)), globs)
    if file is not None:
        from lakeload.documents.load import load_either

        found = _of_document(load_either(file, os.environ, destination), found)
    if output is OutputFormat.JSON:
        console.show_json(local_document(found[:limit]))
    else:
        show_local(found[:limit], console.out, console.err)


def _running(request: TablesRequest) -> tuple[LocalRun, ...]:
    """Return the loads of this machine whose Spark is at work, also where the command that started
    it is gone: nothing in the lake tells of them before they commit."""
    from lakeload.launch.run_folder import matching, past_runs, runs_directory

    found = matching(past_runs(runs_directory(os.environ)), request.globs)
    loads = tuple(run for run in found if run.outcome == "RUNNING" and run.job == "load")
    return _of_document(request.document, loads)


def _of_document(
    document: PipelineDocument | DestinationDocument, found: tuple[LocalRun, ...]
) -> tuple[LocalRun, ...]:
    """Return the runs into this destination, and of this pipeline: it may have several."""
    from lakeload.documents.load import PipelineDocument
    from lakeload.documents.spec import destination_spec
    from lakeload.launch.run_folder import lake_of
    from lakeload_jobs.contract.codec import to_json

    pipeline = document.model.name if isinstance(document, PipelineDocument) else None
    where = document.destination if isinstance(document, PipelineDocument) else document
    lake = lake_of(to_json(destination_spec(where)))
    return tuple(run for run in found if run.is_into(lake) and pipeline in (None, run.pipeline))
