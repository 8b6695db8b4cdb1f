"""The Spark job behind `plan`: started as that of a load is, writing nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lakeload.ui import console

if TYPE_CHECKING:
    from lakeload.documents.load import PipelineDocument
    from lakeload.formats.inspection import InspectionRequest
    from lakeload.formats.plan_model import TablePlan
    from lakeload_jobs.contract.spec import TableSpec

STARTED = (
    "Spark is started to see the columns of the source; it writes nothing. "
    "`--no-schema` does without"
)


def add_schema(
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
