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
    parse_max_bytes,
    parse_orphan_age,
    refuse_beside_optimizers,
    seconds,
    with_steps,
)
from lakeload.commands.options import Conf, Master, Output, PipelineFile, Tables
from lakeload.ui import console
from lakeload.ui.console import OutputFormat
from lakeload_jobs.contract.errors import InvalidInput, LakeloadError
from lakeload_jobs.contract.maintain import MaintainSpec

if TYPE_CHECKING:
    from lakeload.documents.load import PipelineDocument
    from lakeload.launch.maintain import Maintained
    from lakeload.launch.run_folder import RunFolder
    from lakeload.launch.spec import Attempt
    from lakeload.launch.stop import StopRequests
    from lakeload_jobs.contract.spec import DestinationSpec, TableSpec


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
    from lakeload.documents.spec import destination_spec, table_specs
    from lakeload.launch.maintain import refused
    from lakeload.launch.spec import new_attempt, select_tables
    from lakeload.launch.stop import StopRequests
    from lakeload.ui.maintain import Report, show_text, to_document

    wanted = MaintainSpec(
        orphans_older_than=parse_orphan_age(orphans_older_than),
        steps=(),
        apply=apply,
        where=where,
        max_bytes=parse_max_bytes(max_bytes),
        older_than=None if older_than is None else seconds("--older-than", older_than),
        retain_last=retain_last,
        abort_older_than=seconds("--abort-older-than", abort_older_than),
    )
    if optimizer_role is not None and not register_glue_optimizers:
        raise InvalidInput("`--optimizer-role` belongs to `--register-glue-optimizers`")
    with StopRequests() as stop:
        document = load_pipeline(pipeline, os.environ)
        destination = destination_spec(document.destination)
        tables = select_tables(table_specs(document), table or ())
        if register_glue_optimizers:
            refuse_beside_optimizers(only, wanted)
        else:
            wanted = with_steps(wanted, only or (), destination.table_format)
        attempt, started = new_attempt(None), time.monotonic()
        folder: RunFolder | None = None
        done: Maintained | None
        try:
            if register_glue_optimizers:
                from lakeload.formats.iceberg.glue_optimizers import register

                done = register(destination, tables, optimizer_role, wanted)
            else:
                from lakeload.formats.registry import commands_of

                done = commands_of(destination.table_format).maintain(destination, tables, wanted)
            if done is None:
                job = _Job(document, tables, attempt, wanted, master, conf or ())
                done, folder = _in_spark(job, destination, stop)
        except LakeloadError as error:
            done = refused(error)
    seconds_taken = time.monotonic() - started
    name, log = document.model.name, folder.log if folder else None
    report = Report(attempt.job_id, name, apply, attempt.synced, seconds_taken, done, log)
    if output is OutputFormat.JSON:
        console.show_json(to_document(report))
    else:
        show_text(report, console.out, console.err, quiet=console.quiet())
    raise typer.Exit(done.exit_code)


@dataclass(frozen=True)
class _Job:
    """A maintenance job for Spark: its tables, steps and launcher."""

    document: PipelineDocument
    tables: tuple[TableSpec, ...]
    attempt: Attempt
    wanted: MaintainSpec
    master: str | None
    conf: Sequence[str]


def _in_spark(
    job: _Job, destination: DestinationSpec, stop: StopRequests
) -> tuple[Maintained, RunFolder]:
    from lakeload.commands.context import Context
    from lakeload.commands.installation import find_installation
    from lakeload.commands.spark_job import prepared, spark_settings
    from lakeload.connections import Connections
    from lakeload.launch.maintain import launch_maintenance
    from lakeload.launch.run import Launcher
    from lakeload.launch.run_folder import prune_run_folders
    from lakeload.launch.spec import build_job_spec
    from lakeload.machine.jars.pins import features_of
    from lakeload.probes.preflight import preflight
    from lakeload.ui.progress import ProgressView

    settings = spark_settings(job.document, job.master, job.conf)
    context = Context(os.environ, stop, console.err, console.quiet())
    installation = find_installation(context.environment)
    preflight(Connections(destination, f"maintain-{job.attempt.attempt_id}"))
    features = features_of((), destination.table_format)
    settings, folder = prepared(
        job.document, settings, installation, features, job.attempt, context
    )
    spec = build_job_spec(job.document, destination, job.tables, job.attempt, folder)
    spec = replace(spec, job="maintain", maintain=job.wanted)
    names = [table.source for table in job.tables]
    with ProgressView(context.err, names, quiet=context.quiet, doing="maintaining") as progress:
        launcher = Launcher(installation, settings, context.environment, stop, progress.show)
        outcome = launch_maintenance(spec, folder, launcher)
    prune_run_folders(folder.path.parent)
    return outcome, folder
