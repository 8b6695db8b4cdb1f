"""`lakeload sync`: load a pipeline's tables, exactly once, through one Spark job."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from lakeload.commands.options import JobId, Limit, Output, PipelineFile, Reload, Schema, Tables
from lakeload.commands.spark_job import Conf, Master, prepared, spark_settings
from lakeload.ui import console
from lakeload.ui.console import OutputFormat
from lakeload_jobs.contract.errors import InvalidInput, LakeloadError

if TYPE_CHECKING:
    from lakeload.documents.load import PipelineDocument
    from lakeload.launch.command import Installation
    from lakeload.launch.outcome import Outcome
    from lakeload.launch.properties import SparkSettings
    from lakeload.launch.run_folder import RunFolder
    from lakeload.launch.spec import Attempt
    from lakeload.launch.stop import StopRequests
    from lakeload_jobs.contract.spec import RunOptions, TableSpec


@dataclass(frozen=True)
class _Job:
    """What is to be loaded: the documents, the chosen tables, the attempt."""

    document: PipelineDocument
    tables: tuple[TableSpec, ...]
    attempt: Attempt
    options: RunOptions


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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done, as `lakeload plan` does.")
    ] = False,
    schema: Schema = None,
    output: Output = OutputFormat.TEXT,
) -> None:
    """Load the tables of a pipeline: all rows of a table or none, each job once.

    The job's id is the first line on stderr. When a table fails the others are
    loaded; the same command with `--job-id` and that id then loads the rest.
    """
    from lakeload.documents.load import load_pipeline
    from lakeload.documents.spec import table_specs
    from lakeload.launch.spec import check_options, new_attempt, select_tables
    from lakeload.launch.stop import StopRequests
    from lakeload_jobs.contract.spec import RunOptions

    if schema is not None and not dry_run:
        raise InvalidInput("`--schema` and `--no-schema` go with `--dry-run`")
    with StopRequests() as stop:
        document = load_pipeline(pipeline, os.environ)
        attempt = new_attempt(job_id)
        console.note(f"job {attempt.job_id}")
        options = RunOptions(reload, full_refresh, limit, document.model.table_handling)
        tables = select_tables(table_specs(document, options), table or ())
        check_options(tables, document.destination.model.table_format, options)
        job = _Job(document, tables, attempt, options)
        if dry_run:
            from lakeload.commands.plan import show_plan

            show_plan(
                document, tables, attempt, options, master, output, schema=schema, conf=conf or ()
            )
            return
        _finish(job, master, conf or (), output, stop)


def _finish(
    job: _Job, master: str | None, conf: Sequence[str], output: OutputFormat, stop: StopRequests
) -> None:
    """Load, show the summary, exit with its code."""
    from lakeload.ui.summary import Summary, show_text, show_what_next, to_document

    started = time.monotonic()
    outcome, folder = _load(job, master, conf, stop)
    summary = Summary(
        job.attempt.job_id,
        job.attempt.attempt_id,
        job.document.model.name,
        job.document.destination.model.bucket,
        job.attempt.synced,
        time.monotonic() - started,
        outcome,
        folder.log if folder else None,
    )
    if output is OutputFormat.JSON:
        console.show_json(to_document(summary))
        show_what_next(summary, console.err)
    else:
        show_text(summary, console.out, console.err, quiet=console.quiet())
    raise typer.Exit(outcome.exit_code)


def _load(
    job: _Job, master: str | None, conf: Sequence[str], stop: StopRequests
) -> tuple[Outcome, RunFolder | None]:
    """Return what became of the job, and the run folder if Spark was started.

    A refusal is an outcome too: in JSON it needs the job id like any other end.
    """
    from lakeload.commands.installation import find_installation
    from lakeload.launch.outcome import refused, with_warning
    from lakeload.launch.run_folder import prune_run_folders

    folder: RunFolder | None = None
    try:
        settings = spark_settings(job.document, master, conf)
        installation = find_installation()
        done, caveats = _without_spark(job, settings.master)
        if done is not None:
            return done, None
        caveats |= {_conditional_writes(job)}
        features = _features(job)
        settings, folder = prepared(job.document, settings, installation, features, job.attempt)
        outcome = _with_spark(job, settings, installation, folder, stop)
        for warning in filter(None, caveats):
            outcome = with_warning(outcome, warning)
        prune_run_folders(folder.path.parent)
    except LakeloadError as error:
        return refused(error), folder
    return outcome, folder


def _without_spark(job: _Job, master: str) -> tuple[Outcome | None, set[str | None]]:
    """Refuse what can be refused, and return the outcome where Spark has nothing to do; also what
    could not be found out before Spark starts."""
    from lakeload.documents.spec import destination_spec
    from lakeload.launch.inputs import refuse_without_any_input
    from lakeload.runtimes.registry import runtime_of

    if runtime_of(master).traits.tasks_share_driver:
        refuse_without_any_input(job.tables)
    destination = destination_spec(job.document.destination)
    # From here on boto3 is imported, which takes longer than everything before it.
    from lakeload.formats.inspection import (
        InspectionRequest,
        outcome_without_spark,
        session_before_spark,
    )
    from lakeload.formats.registry import commands_of
    from lakeload.probes.preflight import preflight

    preflight(destination)
    session = session_before_spark(destination, job.attempt)
    pipeline = job.document.model.name
    request = InspectionRequest(destination, pipeline, job.attempt, job.options, loads=True)
    states = commands_of(destination.table_format).inspect(session, job.tables, request)
    return outcome_without_spark(states), {table.caveat for table in states}


def _conditional_writes(job: _Job) -> str | None:
    """Refuse a store in which two writers could damage a table; say what a single one risks.

    Where the commits are a catalog's, the store is asked for nothing.
    """
    from lakeload.documents.spec import destination_spec
    from lakeload.probes.preflight import conditional_writes
    from lakeload_jobs.contract.traits import format_of

    destination = destination_spec(job.document.destination)
    return conditional_writes(destination) if format_of(destination).commits_in_store else None


def _features(job: _Job) -> tuple[str, ...]:
    """Return the sets of jars that these tables need."""
    from lakeload.machine.jars.pins import features_of

    table_format = job.document.destination.model.table_format
    return features_of((table.input for table in job.tables), table_format)


def _with_spark(
    job: _Job,
    settings: SparkSettings,
    installation: Installation,
    folder: RunFolder,
    stop: StopRequests,
) -> Outcome:
    """Run the Spark job and show its progress."""
    from lakeload.launch.run import Launcher, launch
    from lakeload.launch.spec import build_job_spec
    from lakeload.ui.progress import Progress

    spec = build_job_spec(job.document, job.tables, job.attempt, folder, job.options)
    names = [table.source for table in job.tables]
    with Progress(console.err, names, quiet=console.quiet()) as progress:
        launcher = Launcher(installation, settings, os.environ, stop, progress.show)
        return launch(spec, folder, launcher)
