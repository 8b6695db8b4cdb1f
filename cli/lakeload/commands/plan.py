"""`lakeload plan`: a dry run of `sync`. Writes nothing."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from lakeload.commands.options import (
    DestinationFile,
    Details,
    JobId,
    Limit,
    Output,
    PipelineFile,
    Reload,
    Sample,
    Schema,
    Tables,
    interval_of,
)
from lakeload.sources.kept_connections import connections_kept
from lakeload.ui import console
from lakeload.ui.console import OutputFormat
from lakeload_jobs.contract.errors import InvalidInput


@connections_kept()
def plan(
    pipeline: PipelineFile,
    destination: DestinationFile = None,
    table: Tables = None,
    job_id: JobId = None,
    limit: Limit = None,
    reload: Reload = False,
    schema: Schema = None,
    sample: Sample = False,
    details: Details = None,
    every: Annotated[
        str | None,
        typer.Option(
            "--every",
            metavar="INTERVAL",
            help="Also show what loads at this interval cost in a day; overrides "
            "`upload_interval`.",
            show_default=False,
        ),
    ] = None,
    output: Output = OutputFormat.TEXT,
) -> None:
    """Show what `sync` would do, table by table; writes nothing.

    Shows targets, modes, input files, the first key, schema changes, and the remains
    of abandoned attempts. More than ten tables are a line each: `--details` shows more.
    Exit code 0; 2 when a configuration file or an option is wrong; 3 when AWS, the lake,
    the input or the columns would prevent the load.
    """
    from lakeload.commands.source_tables import with_found_tables
    from lakeload.commands.spark_job import Context
    from lakeload.documents.load import load_pipeline
    from lakeload.documents.rounds import refuse_appending
    from lakeload.documents.spec import table_specs
    from lakeload.launch.spec import check_options, new_attempt, run_options, select_tables
    from lakeload.launch.stop import StopRequests
    from lakeload.ui.display import Phases
    from lakeload.ui.progress import PHASES

    once = {"--job-id": job_id, "--reload": reload or None, "--limit": limit}
    for_once = [name for name, given in once.items() if given is not None]
    if every is not None and for_once:
        raise InvalidInput(
            f"`--every` and `{for_once[0]}` cannot be used together",
            hint=f"remove `{for_once[0]}`, or `--every`",
        )
    with Phases(console.err, PHASES["documents"], quiet=console.silent()) as phases:
        document = load_pipeline(pipeline, os.environ, destination)
        document = with_found_tables(document, "plan", keys=True, phases=phases)
        attempt = new_attempt(job_id)
        options = run_options(document, reload=reload, limit=limit)
        tables = select_tables(table_specs(document, options), table or ())
        check_options(tables, document.destination.model.table_format, options)
        interval = None if for_once else interval_of(every, document.model)
        if interval is not None:
            refuse_appending(tables, document.destination.model.table_format)
        # From here on boto3 is imported, which takes longer than everything before it.
        from lakeload.commands.plan_once import show_plan
        from lakeload.commands.sync_once import LoadJob

        context = Context(os.environ, StopRequests(), console.err, console.quiet(), phases=phases)
        job = LoadJob(document, tables, attempt, options, interval=interval)
        chosen = None if not details else select_tables(tables, details, "--details")
        show_plan(job, context, output, schema=schema, sample=sample, details=chosen)
