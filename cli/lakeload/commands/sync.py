"""`lakeload sync`: load a pipeline's tables, exactly once, through one Spark job."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakeload.commands.options import (
    Conf,
    JobId,
    Limit,
    Master,
    Output,
    PipelineFile,
    Reload,
    Schema,
    Tables,
)
from lakeload.ui import console
from lakeload.ui.console import OutputFormat
from lakeload_jobs.contract.errors import ExitCode, InvalidInput

if TYPE_CHECKING:
    from lakeload.commands.sync_once import LoadJob, Synced
    from lakeload.launch.timings import WallTime
    from lakeload.ui.json_documents import MissingArchive


def sync(
    pipeline: PipelineFile,
    table: Tables = None,
    job_id: JobId = None,
    master: Master = None,
    conf: Conf = None,
    limit: Limit = None,
    reload: Reload = False,
    full_refresh: Annotated[
        bool,
        typer.Option(
            "--full-refresh",
            help="OVERWRITE and UPSERT: replace the table with all files, in one snapshot.",
        ),
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="VALUE",
            help="Load the rows of databases from this value of `cursor` on, also those loaded.",
            show_default=False,
        ),
    ] = None,
    retry_rejected: Annotated[
        str | None,
        typer.Option(
            "--retry-rejected",
            metavar="JOB",
            help=(
                "Load the records that this job rejected, with today's settings, instead of files."
            ),
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done, as `lakeload plan` does.")
    ] = False,
    schema: Schema = None,
    timings: Annotated[
        bool, typer.Option("--timings", help="Show the wall time of each phase and each table.")
    ] = False,
    output: Output = OutputFormat.TEXT,
) -> None:
    """Load the tables of a pipeline: all rows of a table or none, each job once.

    The job's id is the first line on stderr. If a table fails, the others are still
    loaded. Rerun the same command with `--job-id` and that id to load the rest.
    """
    from lakeload.commands.spark_job import Context
    from lakeload.documents.found_tables import with_found_tables
    from lakeload.documents.load import load_pipeline
    from lakeload.documents.spec import table_specs
    from lakeload.launch.spec import (
        check_options,
        new_attempt,
        retry_tables,
        run_options,
        select_tables,
    )
    from lakeload.launch.stop import StopRequests
    from lakeload.launch.timings import Timings, process_started
    from lakeload.ui.display import Phases
    from lakeload.ui.progress import PHASES

    if schema is not None and not dry_run:
        raise InvalidInput(
            "`--schema` and `--no-schema` go with `--dry-run`", hint="add `--dry-run`"
        )
    if timings and dry_run:
        raise InvalidInput("`--timings` needs a load", hint="remove `--dry-run`")
    times = Timings(process_started())
    phases = Phases(console.err, PHASES["documents"], quiet=console.silent())
    with StopRequests() as stop, phases:
        times.begin("documents")
        document = with_found_tables(load_pipeline(pipeline, os.environ), "sync", keys=True)
        attempt = new_attempt(job_id)
        options = run_options(
            document, reload=reload, full_refresh=full_refresh, limit=limit, since=since
        )
        tables = select_tables(table_specs(document, options), table or ())
        if retry_rejected is not None:
            tables = retry_tables(tables, retry_rejected, options)
        check_options(tables, document.destination.model.table_format, options)
        console.note(f"job {attempt.job_id}")
        context = Context(os.environ, stop, console.err, console.quiet(), times, phases)
        context.begin("machine")
        # Importing boto3 takes longer than all of the above, so it is done only now.
        from lakeload.commands.sync_once import LoadJob, sync_once

        job = LoadJob(document, tables, attempt, options, master, conf or ())
        if dry_run:
            from lakeload.commands.plan_once import show_plan

            show_plan(job, context, output, schema=schema)
        started = time.monotonic()
        synced = sync_once(job, context)
        # What is shown from here on is decided: a signal changes neither it nor the exit code.
        stop.hold()
        phases.stop()
        wall_time = times.finish() if timings else None
        # A load that failed has more urgent things to say.
        archive_for = synced.archive_for if synced.outcome.exit_code is ExitCode.OK else None
        hint = None
        if archive_for is not None and _shows_hint(archive_for, output):
            hint = _hint(pipeline, archive_for)
        _show(job, synced, time.monotonic() - started, output, wall_time, hint)
        raise typer.Exit(synced.outcome.exit_code)


def _show(
    job: LoadJob,
    synced: Synced,
    seconds: float,
    output: OutputFormat,
    wall_time: WallTime | None,
    hint: MissingArchive | None,
) -> None:
    """Show the summary."""
    from lakeload.ui.summary import Summary, show_text, show_what_next, to_document

    summary = Summary(
        job.attempt.job_id,
        job.attempt.attempt_id,
        job.document.model.name,
        job.document.destination.model.bucket,
        job.attempt.synced,
        seconds,
        synced.outcome,
        synced.log,
        wall_time,
        hint,
    )
    if output is OutputFormat.JSON:
        console.show_json(to_document(summary))
        show_what_next(summary, console.err)
    else:
        show_text(summary, console.out, console.err, quiet=console.quiet())


def _shows_hint(features: tuple[str, ...], output: OutputFormat) -> bool:
    """Return whether to name the missing archive: always in JSON, else once for sets of jars."""
    from lakeload.machine.appcds import is_first_hint
    from lakeload.machine.cache import cache_directory

    if output is OutputFormat.JSON:
        return True
    return not console.quiet() and is_first_hint(cache_directory(os.environ), features)


def _hint(pipeline: Path, features: tuple[str, ...]) -> MissingArchive:
    """Return how to build the AppCDS archive that a load did not have."""
    from lakeload.commands.appcds_archive import saves_seconds

    command = f"lakeload jars fetch {shlex.quote(str(pipeline))}"
    return {"command": command, "saves_seconds": saves_seconds(features)}
