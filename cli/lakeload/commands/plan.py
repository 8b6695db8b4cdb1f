"""`lakeload plan`: what `sync` would do. Writes nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import typer

from lakeload.commands.options import JobId, Limit, Output, PipelineFile, Reload, Tables
from lakeload.ui import console
from lakeload.ui.console import OutputFormat

if TYPE_CHECKING:
    from lakeload.config.load import PipelineDocument
    from lakeload.launch.spec import Attempt
    from lakeload_jobs.contract.spec import TableSpec


def plan(
    pipeline: PipelineFile,
    table: Tables = None,
    job_id: JobId = None,
    limit: Limit = None,
    reload: Reload = False,
    output: Output = OutputFormat.TEXT,
) -> None:
    """Show what `sync` would do, table by table; writes nothing and starts no Spark.

    Targets, modes, input files, the first key at this instant, and unfinished
    jobs that would be recovered. Exit code 0; 2 when a document or a flag is
    wrong; 3 when AWS, the lake or the input would refuse the load.
    """
    from lakeload.config.load import load_pipeline, refuse_to_load
    from lakeload.config.spec import table_specs
    from lakeload.launch.spec import check_limit, new_attempt, select_tables

    document = load_pipeline(pipeline, os.environ)
    refuse_to_load(document)
    attempt = new_attempt(job_id)
    tables = select_tables(table_specs(document, limit=limit, reload=reload), table or ())
    check_limit(tables, limit)
    show_plan(document, tables, attempt, None, output, reload=reload)


def show_plan(
    document: PipelineDocument,
    tables: tuple[TableSpec, ...],
    attempt: Attempt,
    master: str | None,
    output: OutputFormat,
    *,
    reload: bool,
) -> None:
    """Look, show, exit with the plan's code."""
    from lakeload.config.spark import is_local
    from lakeload.config.spec import destination_spec
    from lakeload.launch.foresee import foresee, session_before_spark
    from lakeload.launch.plan import exit_code_of, plan_tables
    from lakeload.launch.plan_catalog import plan_catalog
    from lakeload.probes.preflight import preflight
    from lakeload.ui.plan import show_text, to_document

    destination, model = destination_spec(document.destination), document.model
    preflight(destination)
    session = session_before_spark(destination, attempt)
    seen = foresee(
        session, destination, tables, model.name, attempt, model.table_handling, reload=reload
    )
    local = is_local(master or model.spark.master)
    plans = plan_tables(seen, destination, attempt, local=local, reload=reload)
    if destination.parquet.update_glue_catalog:
        plans = plan_catalog(plans, seen, session, destination)
    if output is OutputFormat.JSON:
        console.show_json(to_document(model.name, attempt, plans))
    else:
        show_text(plans, console.out, console.err)
    raise typer.Exit(exit_code_of(plans))
