"""Plan of a load: inspect the tables, show the plan, write nothing."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

import typer

from lakeload.commands.spark_job import (
    Context,
    chosen_master,
    find_installation,
    java_needed,
    launcher,
    prepared,
    spark_settings,
)
from lakeload.commands.sync_once import LoadJob
from lakeload.connections import Connections
from lakeload.formats.plan import (
    TablePlan,
    exit_code_of,
    find_columns,
    with_samples,
    with_schema,
    with_side_tables,
)
from lakeload.formats.registry import commands_of
from lakeload.lake.server import lake_directory, lake_of
from lakeload.launch.run_folder import prune_run_folders
from lakeload.launch.spec import build_job_spec
from lakeload.launch.stop import StopRequests
from lakeload.policy.iam import database_prefix, speaks_rest, uses_glue
from lakeload.policy.recipes import RecipeRequest, readers
from lakeload.probes.connection import preflight
from lakeload.runtimes import runtime_of
from lakeload.sources.registry import facts_of
from lakeload.ui import console
from lakeload.ui.console import OutputFormat
from lakeload.ui.plan import show_text, to_document
from lakeload_jobs.contract.plan import TableColumns
from lakeload_jobs.contract.spec import DestinationSpec, TableSpec
from lakeload_jobs.contract.traits import format_of
from lakeload_jobs.core.job_ids import new_attempt_id

STARTED = (
    "Spark is started to see the columns of the source; it writes nothing. "
    "`--no-schema` does without"
)


def show_plan(
    job: LoadJob,
    context: Context,
    output: OutputFormat,
    *,
    schema: bool | None = None,
    sample: bool = False,
    details: Sequence[TableSpec] | None = None,
) -> NoReturn:
    """Inspect, show, exit with the plan's code.

    `schema` None: the format says whether the columns are read, and False: they are not. `details`
    are the tables that get more than one line, None for all of a few.
    """
    destination = job.destination
    runtime = runtime_of(chosen_master(job.document, job.master))
    connections = Connections(destination, f"plan-{job.attempt.attempt_id}")
    context.begin("connection")
    preflight(connections)
    context.begin("inspection")
    request = job.inspection(context, loads=False)
    local = runtime.traits.tasks_share_driver
    by_spark = schema if schema is not None else format_of(destination).plan_reads_columns
    if schema is not False and not by_spark and local:
        request = replace(request, finds_columns=True)
    plans = commands_of(destination.table_format).plan(
        connections.before_spark, job.tables, request, local=local
    )
    if sample and local:
        plans = with_samples(plans, job.tables, destination, connections.before_spark)
    if by_spark:
        plans = _with_schema(plans, job, context)
    plans = with_side_tables(plans, job.spec)
    context.phases.stop()
    read = job.tables[0].input
    warnings = (*destination_warnings(destination), *facts_of(read).warnings)
    if output is OutputFormat.JSON:
        name = job.document.model.name
        console.show_json(to_document(name, job.attempt, plans, warnings))
    else:
        engines = readers(destination, RecipeRequest(job.attempt.synced, job.tables))
        show_text(
            plans,
            console.out,
            context.err,
            quiet=context.quiet,
            readers=engines,
            query=query_command(destination, plans),
            files=job.document.files,
            warnings=warnings,
            details=None if details is None else {table.source for table in details},
        )
    raise typer.Exit(exit_code_of(plans))


def query_command(destination: DestinationSpec, plans: Sequence[TablePlan]) -> str | None:
    """Return the command that reads the first table, where `lakeload lake query` can: it knows the
    tables without a prefix."""
    lake = lake_of(destination)
    if lake is None or not plans or destination.prefix:
        return None
    elsewhere = lake.folder != lake_directory(os.environ)
    words = ["--folder", str(lake.folder)] if elsewhere else []
    statement = f"SELECT * FROM {plans[0].target} LIMIT 10"  # noqa: S608 - shown, not run
    return shlex.join(["lakeload", "lake", "query", *words, statement])


def destination_warnings(destination: DestinationSpec) -> tuple[str, ...]:
    """Return what a destination lets happen that its owner may not want."""
    if not uses_glue(destination) or speaks_rest(destination) or database_prefix(destination):
        return ()
    return (
        "without `glue_database_prefix` the Glue databases of this destination cannot be "
        "distinguished from others, so `lakeload policy` allows every database: `lakeload "
        "init` writes `supaflow`; setting it changes the names of the databases",
    )


def _with_schema(
    plans: tuple[TablePlan, ...], job: LoadJob, context: Context
) -> tuple[TablePlan, ...]:
    """Return the plans with the change of columns of each table that would be loaded.

    Raises `MachineNotReady` without Java, Spark or jars, and what ends the job.
    """
    wanted = {plan.table for plan in plans if plan.action == "LOAD"}
    chosen = tuple(table for table in job.tables if table.source in wanted)
    if not chosen:
        return plans
    context.note(f"note: {STARTED}")
    context.begin("machine")
    settings = spark_settings(job.document, job.master, job.conf)
    installation = find_installation(context.environment)
    context.begin("preparation")
    java = any(plan.iceberg is not None and plan.iceberg.needs_java for plan in plans)

    def columns_of(tables: tuple[TableSpec, ...], *, java: bool) -> dict[str, TableColumns]:
        attempt = replace(job.attempt, attempt_id=new_attempt_id())
        own, folder = prepared(
            job.document, settings, installation, tables, attempt, context, format_jars=java
        )
        spec = build_job_spec(job.document, job.destination, tables, attempt, folder, job.options)
        with (
            # While no Spark runs there is nothing to stop in order.
            StopRequests() as stop,
            launcher(
                installation, own, tables, replace(context, stop=stop), doing="planning"
            ) as starts,
        ):
            found = find_columns(replace(spec, job="plan"), folder, starts)
        prune_run_folders(folder.path.parent)
        return {table.table: table for table in found}

    found = columns_of(chosen, java=java)
    late = {
        table.table: table.needs_java
        for table in found.values()
        if table.needs_java is not None and table.error is not None
    }
    if late:
        tables = tuple(table for table in chosen if table.source in late)
        needed = {table.target: late[table.source] for table in tables}
        context.note(java_needed(needed, job.destination))
        found |= {
            name: replace(columns, needs_java=late[name])
            for name, columns in columns_of(tables, java=True).items()
        }
    judge = commands_of(job.destination.table_format).judge
    return with_schema(plans, tuple(found.values()), job.spec, chosen, judge)
