"""The Spark job behind `plan`: started as that of a load is, writing nothing."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lakeload.ui import console

if TYPE_CHECKING:
    from lakeload.config.load import PipelineDocument
    from lakeload.launch.look import Look
    from lakeload.launch.plan_model import TablePlan
    from lakeload_jobs.contract.spec import TableSpec

logger = logging.getLogger(__name__)

STARTED = (
    "Spark is started to see the columns of the source; it writes nothing. "
    "`--no-schema` does without"
)


def add_schema(
    plans: tuple[TablePlan, ...],
    document: PipelineDocument,
    tables: tuple[TableSpec, ...],
    look: Look,
    master: str | None,
    limit: int | None,
    conf: Sequence[str] = (),
) -> tuple[TablePlan, ...]:
    """Return the plans with the change of columns of each table that would be loaded.

    Raises `MachineLacks` without Java, Spark or jars, and what ends the job.
    """
    from lakeload.commands.installation import class_data_of, find_installation
    from lakeload.commands.spark_job import jars_of, spark_settings
    from lakeload.launch.plan_schema import find_columns, with_schema
    from lakeload.launch.run_folder import create_run_folder, prune_run_folders, runs_directory
    from lakeload.launch.spec import build_job_spec
    from lakeload.launch.stop import StopRequests
    from lakeload.machine.jars import features_of
    from lakeload.ui.progress import Progress

    wanted = {plan.table for plan in plans if plan.action == "LOAD"}
    chosen = tuple(table for table in tables if table.source in wanted)
    if not chosen:
        return plans
    console.note(f"note: {STARTED}")
    settings = spark_settings(document, master, conf)
    installation = find_installation()
    table_format = look.destination.table_format
    jars = jars_of(document, features_of((table.input for table in chosen), table_format))
    archive = class_data_of(installation, jars, settings.master)
    runs = runs_directory(os.environ)
    folder = create_run_folder(runs, look.attempt.synced, look.attempt.attempt_id)
    logger.info("the run folder is %s", folder.path)
    spec = build_job_spec(
        document,
        chosen,
        look.attempt,
        folder,
        limit,
        reload=look.reload and not look.full_refresh,
        full_refresh=look.full_refresh,
    )
    spec = replace(spec, job="plan")
    names = [table.source for table in chosen]
    with (
        StopRequests() as stop,
        Progress(console.err, names, quiet=console.quiet(), doing="planning") as progress,
    ):
        found = find_columns(
            spec,
            folder,
            installation,
            replace(settings, jars=jars, archive=archive),
            environment=os.environ,
            stop=stop,
            show=progress.show,
        )
    prune_run_folders(runs)
    return with_schema(plans, found, spec, chosen)
