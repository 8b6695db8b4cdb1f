"""`lakeload runs`: the load history, from the records in the lake."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from lakeload.commands.options import DestinationFile, Output, Tables, refuse_without_file
from lakeload.config.secret_names import shown
from lakeload.documents.durations import parse_duration
from lakeload.ui import console
from lakeload.ui.console import OutputFormat
from lakeload_jobs.contract.errors import InvalidInput

if TYPE_CHECKING:
    from lakeload.commands.past_jobs import PastJobs
    from lakeload.documents.load import DestinationDocument, PipelineDocument
    from lakeload.formats.tables import TablesRequest
    from lakeload.history.day import HistoryJob
    from lakeload.launch.run_folder import LocalRun

_FOLLOW_SECONDS = 5.0
_FOLLOWED = 10_000
"""Jobs that are shown at most at once."""


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
    failed: Annotated[
        bool,
        typer.Option(
            "--failed",
            help="Show jobs that ended with an exit code other than 0, from the job history.",
        ),
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Show loads and failed jobs since then: an age, such as 24h or PT30M, or a date, "
            "such as 2026-11-27 or 2026-11-27T18:00 (UTC).",
            show_default=False,
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Stay, and show each job that ends, whatever became of it, until Ctrl-C. With "
            "`--output json` each job is a line.",
        ),
    ] = False,
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
    from_history = {"--failed": failed, "--since": since is not None, "--follow": follow}
    if (local or file is None) and (given := [name for name, on in from_history.items() if on]):
        raise InvalidInput(
            f"`{given[0]}` reads the job history of a lake",
            hint="remove `--local`" if local else "name a pipeline or a destination",
        )
    if local or file is None:
        _show_local(file, destination, table or [], limit, output)
        return
    start = None if since is None else parse_since(since, datetime.now(UTC))
    if follow:
        _follow(file, destination, table or [], start, failed=failed, output=output)
    from lakeload.documents.named_files import NamedFiles
    from lakeload.ui.display import Phases
    from lakeload.ui.progress import PHASES
    from lakeload.ui.runs import show_text, to_document

    if failed:
        _show_failed(file, destination, table or [], limit, start, output)
    files = NamedFiles(file, destination)
    with Phases(console.err, PHASES["documents"], quiet=console.silent()) as phases:
        # From here on boto3 is imported, which takes longer than everything before it.
        from lakeload.commands.lake_tables import request_of

        commands, request = request_of("runs", files, table or (), phases=phases)
        report = commands.runs(request, limit)
        running = _running(request)
        jobs: tuple[HistoryJob, ...] = ()
        if start is not None:
            report = report.since(start)
            history = _history(request.document)
            jobs = history.jobs(_failed(table or []), limit, start)
    if output is OutputFormat.JSON:
        console.show_json(to_document(report, running, jobs))
    else:
        verbose = console.verbose()
        show_text(
            report, files, console.out, console.err, verbose=verbose, running=running, jobs=jobs
        )
    raise typer.Exit(report.exit_code)


def parse_since(text: str, now: datetime) -> datetime:
    """Return the instant of an age or a date. Raises `InvalidInput`."""
    with contextlib.suppress(ValueError):
        at = datetime.fromisoformat(text.strip())
        return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    try:
        return now - parse_duration(text)
    except (InvalidInput, OverflowError):
        raise InvalidInput(
            f"`--since {shown(text)}` is neither an age nor a date",
            hint="write it as `24h`, `PT30M`, `2026-11-27` or `2026-11-27T18:00`",
        ) from None


def _failed(globs: Sequence[str]) -> Callable[[HistoryJob], bool]:
    return lambda job: job.failed and job.is_about(globs)


def _show_failed(
    file: Path,
    destination: Path | None,
    globs: Sequence[str],
    limit: int,
    start: datetime | None,
    output: OutputFormat,
) -> NoReturn:
    """Show jobs of the history that failed, and end the command."""
    from lakeload.commands.read_document import read_document
    from lakeload.formats.reports import RunsReport
    from lakeload.ui.display import Phases
    from lakeload.ui.history import show_job
    from lakeload.ui.runs import to_document

    document = read_document(file, destination)
    with Phases(console.err, "reading the job history", quiet=console.silent()):
        history = _history(document)
        jobs = history.jobs(_failed(globs), limit, start)
    if output is OutputFormat.JSON:
        console.show_json(to_document(RunsReport((), ()), jobs=jobs))
    for job in jobs if output is OutputFormat.TEXT else ():
        show_job(job, console.out)
    if not jobs and output is OutputFormat.TEXT:
        console.note("the job history has no job that failed")
    raise typer.Exit(0)


def _follow(
    file: Path,
    destination: Path | None,
    globs: Sequence[str],
    start: datetime | None,
    *,
    failed: bool,
    output: OutputFormat,
) -> NoReturn:
    """Show each job that ends, until a signal ends the command."""
    from lakeload.commands.read_document import read_document
    from lakeload.ui.display import Phases
    from lakeload.ui.history import show_job
    from lakeload_jobs.contract.codec import to_json

    document = read_document(file, destination)
    with Phases(console.err, "reading the job history", quiet=console.silent()):
        history = _history(document)
    since = start or datetime.now(UTC)
    shown_jobs: set[tuple[datetime, str]] = set()
    keeps = _failed(globs) if failed else (lambda job: job.is_about(globs))
    console.note("jobs that end are shown; Ctrl-C ends it")
    while True:
        for job in reversed(history.jobs(keeps, _FOLLOWED, since)):
            if job.order in shown_jobs:
                continue
            shown_jobs.add(job.order)
            if output is OutputFormat.JSON:
                console.show_json_line(to_json(job))
            else:
                show_job(job, console.out)
        time.sleep(_FOLLOW_SECONDS)


def _history(document: PipelineDocument | DestinationDocument) -> PastJobs:
    from lakeload.commands.past_jobs import PastJobs

    return PastJobs(document, os.environ)


def _show_local(
    file: Path | None, destination: Path | None, globs: list[str], limit: int, output: OutputFormat
) -> None:
    from lakeload.launch.run_folder import matching, past_runs, runs_directory
    from lakeload.ui.runs import local_document, show_local

    found = matching(past_runs(runs_directory(os.environ)), globs)
    if file is not None:
        from lakeload.commands.read_document import read_document

        found = _of_document(read_document(file, destination), found)
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
    lake = lake_of(to_json(destination_spec(document.destination)))
    return tuple(run for run in found if run.is_into(lake) and pipeline in (None, run.pipeline))
