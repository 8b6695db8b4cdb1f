"""`lakeload maintain`: keep tables small and quick to read, and remove what dead runs have left."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import typer

from lakeload.commands.maintain_options import (
    AbortOlderThan,
    Apply,
    MaxBytes,
    OlderThan,
    OnlySteps,
    OptimizerRole,
    OrphansOlderThan,
    RegisterOptimizers,
    RetainLast,
    Where,
    asked_for,
    refuse_beside_optimizers,
    refuse_without_effect,
    steps_of,
)
from lakeload.commands.options import Output, PipelineFile, Tables
from lakeload.commands.spark_job import Conf, Master
from lakeload.ui import console
from lakeload.ui.console import OutputFormat
from lakeload_jobs.contract.errors import InvalidInput, LakeloadError

if TYPE_CHECKING:
    from lakeload.documents.load import PipelineDocument
    from lakeload.launch.maintain import Maintained
    from lakeload.launch.run_folder import RunFolder
    from lakeload.launch.spec import Attempt
    from lakeload.launch.stop import StopRequests
    from lakeload_jobs.contract.maintain import MaintainSpec
    from lakeload_jobs.contract.spec import TableSpec


@dataclass(frozen=True)
class _Job:
    """What is to be maintained, and how."""

    document: PipelineDocument
    tables: tuple[TableSpec, ...]
    attempt: Attempt
    wanted: MaintainSpec
    by_glue: bool
    optimizer_role: str | None
    master: str | None
    conf: Sequence[str]


def maintain(
    pipeline: PipelineFile,
    apply: Apply = False,
    only: OnlySteps = None,
    table: Tables = None,
    where: Where = None,
    max_bytes: MaxBytes = None,
    older_than: OlderThan = None,
    retain_last: RetainLast = None,
    orphans_older_than: OrphansOlderThan = "24h",
    abort_older_than: AbortOlderThan = "24h",
    register_glue_optimizers: RegisterOptimizers = False,
    optimizer_role: OptimizerRole = None,
    master: Master = None,
    conf: Conf = None,
    output: Output = OutputFormat.TEXT,
) -> None:
    """Keep a pipeline's tables small and quick to read; loads may go on meanwhile.

    Iceberg: drops branches of dead runs, compacts small files, rewrites
    deletes and manifests, expires old snapshots, removes orphans. Parquet:
    aborts uploads of dead runs. Without --apply it says what it would do.
    Exit code 0 when all is done, 1 when a step failed, 5 when loads came first.
    """
    from lakeload.documents.load import load_pipeline
    from lakeload.documents.spec import table_specs
    from lakeload.launch.spec import new_attempt, select_tables
    from lakeload.launch.stop import StopRequests

    wanted = asked_for(
        apply=apply,
        where=where,
        max_bytes=max_bytes,
        older_than=older_than,
        retain_last=retain_last,
        orphans_older_than=orphans_older_than,
        abort_older_than=abort_older_than,
    )
    if optimizer_role is not None and not register_glue_optimizers:
        raise InvalidInput("`--optimizer-role` belongs to `--register-glue-optimizers`")
    with StopRequests() as stop:
        document = load_pipeline(pipeline, os.environ)
        tables = select_tables(table_specs(document), table or ())
        if register_glue_optimizers:
            refuse_beside_optimizers(only, wanted)
        else:
            table_format = document.destination.model.table_format
            wanted = replace(wanted, steps=steps_of(only or (), table_format))
            refuse_without_effect(wanted, table_format)
        role = optimizer_role if register_glue_optimizers else None
        job = _Job(
            document,
            tables,
            new_attempt(None),
            wanted,
            register_glue_optimizers,
            role,
            master,
            conf or (),
        )
        _finish(job, output, stop)


def _finish(job: _Job, output: OutputFormat, stop: StopRequests) -> None:
    """Maintain, show what came of it, exit with its code."""
    from lakeload.ui.maintain import Report, show_text, to_document

    started = time.monotonic()
    outcome, folder = _maintain(job, stop)
    report = Report(
        job.attempt.job_id,
        job.document.model.name,
        job.wanted.apply,
        job.attempt.synced,
        time.monotonic() - started,
        outcome,
        folder.log if folder else None,
    )
    if output is OutputFormat.JSON:
        console.show_json(to_document(report))
    else:
        show_text(report, console.out, console.err, quiet=console.quiet())
    raise typer.Exit(outcome.exit_code)


def _maintain(job: _Job, stop: StopRequests) -> tuple[Maintained, RunFolder | None]:
    """Return what became of the tables, and the run folder if Spark was started."""
    from lakeload.launch.maintain import maintained, refused

    try:
        if job.by_glue:
            from lakeload.commands.glue_optimizers import register

            return register(job.document, job.tables, job.optimizer_role, job.wanted), None
        if job.document.destination.model.table_format == "ICEBERG":
            return _with_spark(job, stop)
        from lakeload.documents.spec import destination_spec
        from lakeload.formats.parquet.maintain import maintain_parquet
        from lakeload.formats.tables import of_pipeline, open_session
        from lakeload_jobs.storage.objects import Objects

        destination = destination_spec(job.document.destination)
        objects = Objects(open_session(destination, "maintain"), destination)
        places = of_pipeline(destination, job.tables)
        parallelism = destination.parquet.upload_parallelism
        return maintained(maintain_parquet(objects, places, job.wanted, parallelism)), None
    except LakeloadError as error:
        return refused(error), None


def _with_spark(job: _Job, stop: StopRequests) -> tuple[Maintained, RunFolder | None]:
    from lakeload.commands.installation import find_installation
    from lakeload.commands.spark_job import prepared, spark_settings
    from lakeload.documents.spec import destination_spec
    from lakeload.launch.maintain import launch_maintenance
    from lakeload.launch.run import Launcher
    from lakeload.launch.run_folder import prune_run_folders
    from lakeload.launch.spec import build_job_spec
    from lakeload.probes.preflight import preflight
    from lakeload.ui.progress import Progress

    settings = spark_settings(job.document, job.master, job.conf)
    installation = find_installation()
    preflight(destination_spec(job.document.destination))
    settings, folder = prepared(job.document, settings, installation, ("iceberg",), job.attempt)
    spec = build_job_spec(job.document, job.tables, job.attempt, folder)
    spec = replace(spec, job="maintain", maintain=job.wanted)
    names = [table.source for table in job.tables]
    with Progress(console.err, names, quiet=console.quiet(), doing="maintaining") as progress:
        launcher = Launcher(installation, settings, os.environ, stop, progress.show)
        outcome = launch_maintenance(spec, folder, launcher)
    prune_run_folders(folder.path.parent)
    return outcome, folder
