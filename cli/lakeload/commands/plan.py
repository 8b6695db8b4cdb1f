"""`lakeload plan`: what `sync` would do. Writes nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from lakeload.commands.options import JobId, Limit, Output, PipelineFile, Reload, Schema, Tables
from lakeload.ui import console
from lakeload.ui.console import OutputFormat

if TYPE_CHECKING:
    from lakeload.documents.load import PipelineDocument
    from lakeload.formats.inspection import InspectionRequest
    from lakeload.formats.plan_model import TablePlan
    from lakeload.launch.spec import Attempt
    from lakeload_jobs.contract.spec import RunOptions, TableSpec


STARTED = (
    "Spark is started to see the columns of the source; it writes nothing. "
    "`--no-schema` does without"
)


def plan(
    pipeline: PipelineFile,
    table: Tables = None,
    job_id: JobId = None,
    limit: Limit = None,
    reload: Reload = False,
    schema: Schema = None,
    output: Output = OutputFormat.TEXT,
) -> None:
    """Show what `sync` would do, table by table; writes nothing.

    Targets, modes, input files, the first key at this instant, columns that
    change, and what is left of dead runs. Exit code 0; 2 when a document or a
    flag is wrong; 3 when AWS, the lake, the input or the columns would refuse.
    """
    from lakeload.documents.load import load_pipeline
    from lakeload.documents.spec import table_specs
    from lakeload.launch.spec import check_options, new_attempt, select_tables
    from lakeload_jobs.contract.spec import RunOptions

    document = load_pipeline(pipeline, os.environ)
    attempt = new_attempt(job_id)
    options = RunOptions(reload, limit=limit, table_handling=document.model.table_handling)
    tables = select_tables(table_specs(document, options), table or ())
    check_options(tables, document.destination.model.table_format, options)
    show_plan(document, tables, attempt, options, None, output, schema=schema)


def show_plan(
    document: PipelineDocument,
    tables: tuple[TableSpec, ...],
    attempt: Attempt,
    options: RunOptions,
    master: str | None,
    output: OutputFormat,
    *,
    schema: bool | None = None,
    conf: Sequence[str] = (),
) -> None:
    """Inspect, show, exit with the plan's code.

    `schema` None: the format says whether the columns are read. `master` and `conf` are
    the flags of a load.
    """
    from lakeload.commands.spark_job import chosen_master
    from lakeload.documents.spec import destination_spec
    from lakeload.formats.inspection import InspectionRequest, session_before_spark
    from lakeload.formats.plan_model import exit_code_of
    from lakeload.formats.registry import commands_of
    from lakeload.probes.preflight import preflight
    from lakeload.runtimes.registry import runtime_of
    from lakeload.ui.plan import show_text, to_document
    from lakeload_jobs.contract.traits import format_of

    destination, model = destination_spec(document.destination), document.model
    runtime = runtime_of(chosen_master(document, master))
    preflight(destination)
    session = session_before_spark(destination, attempt)
    request = InspectionRequest(destination, model.name, attempt, options)
    commands = commands_of(destination.table_format)
    local = runtime.traits.tasks_share_driver
    plans = commands.plan(session, tables, request, local=local)
    if schema if schema is not None else format_of(destination).plan_reads_columns:
        plans = _with_schema(plans, document, tables, request, master, conf)
    if output is OutputFormat.JSON:
        console.show_json(to_document(model.name, attempt, plans))
    else:
        from lakeload.policy.engines.recipes import RecipeRequest, readers

        engines = readers(destination, RecipeRequest(attempt.synced, tables))
        file = str(document.path)
        quiet = console.quiet()
        show_text(plans, console.out, console.err, quiet=quiet, readers=engines, file=file)
    raise typer.Exit(exit_code_of(plans))


def _with_schema(
    plans: tuple[TablePlan, ...],
    document: PipelineDocument,
    tables: tuple[TableSpec, ...],
    request: InspectionRequest,
    master: str | None,
    conf: Sequence[str] = (),
) -> tuple[TablePlan, ...]:
    """Return the plans with the change of columns of each table that would be loaded.

    Raises `MachineLacks` without Java, Spark or jars, and what ends the job.
    """
    from lakeload.commands.installation import find_installation
    from lakeload.commands.spark_job import prepared, spark_settings
    from lakeload.formats.plan_schema import find_columns, with_schema
    from lakeload.launch.run import Launcher
    from lakeload.launch.run_folder import prune_run_folders
    from lakeload.launch.spec import build_job_spec
    from lakeload.launch.stop import StopRequests
    from lakeload.machine.jars.pins import features_of
    from lakeload.ui.progress import Progress

    wanted = {plan.table for plan in plans if plan.action == "LOAD"}
    chosen = tuple(table for table in tables if table.source in wanted)
    if not chosen:
        return plans
    console.note(f"note: {STARTED}")
    settings = spark_settings(document, master, conf)
    installation = find_installation()
    features = features_of((table.input for table in chosen), request.destination.table_format)
    settings, folder = prepared(document, settings, installation, features, request.attempt)
    spec = build_job_spec(document, chosen, request.attempt, folder, request.options)
    spec = replace(spec, job="plan")
    names = [table.source for table in chosen]
    with (
        StopRequests() as stop,
        Progress(console.err, names, quiet=console.quiet(), doing="planning") as progress,
    ):
        launcher = Launcher(installation, settings, os.environ, stop, progress.show)
        found = find_columns(spec, folder, launcher)
    prune_run_folders(folder.path.parent)
    return with_schema(plans, found, spec, chosen)
