"""`lakeload maintain`: compaction, expiry and cleanup of tables."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from lakeload.commands.options import (
    Conf,
    DestinationFile,
    Master,
    Output,
    PipelineFile,
    Tables,
    parse_age,
)
from lakeload.config.document import quoted
from lakeload.ui import console
from lakeload.ui.console import OutputFormat
from lakeload_jobs.contract.errors import ExitCode, InvalidInput, LakeloadError
from lakeload_jobs.contract.events import Step
from lakeload_jobs.contract.maintain import SECONDS_A_DAY, MaintainSpec
from lakeload_jobs.contract.spec import OnBadValue, TableFormat
from lakeload_jobs.contract.traits import FORMATS
from lakeload_jobs.core.names import REJECTED_SUFFIX, did_you_mean
from lakeload_jobs.core.sizes import counted, parse_size

if TYPE_CHECKING:
    from lakeload.commands.sync_once import LoadJob
    from lakeload.launch.run import Maintained
    from lakeload.launch.run_folder import RunFolder
    from lakeload.launch.stop import StopRequests
    from lakeload.ui.display import Phases
    from lakeload_jobs.contract.spec import DestinationSpec, TableSpec

logger = logging.getLogger(__name__)

_STEPS = FORMATS["ICEBERG"].maintenance_steps
Apply = Annotated[bool, typer.Option("--apply", help="Apply the changes (default: dry run).")]
OnlySteps = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="STEP",
        help=f"Only these steps, with commas or repeated: {', '.join(_STEPS)}.",
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        "--where", metavar="SQL", help="compact: only files that can contain matching rows."
    ),
]
MaxBytes = Annotated[
    str | None,
    typer.Option(
        "--max-bytes",
        metavar="SIZE",
        help="compact: rewrite at most this much of a table, such as 50GiB.",
    ),
]
OlderThan = Annotated[
    str | None,
    typer.Option(
        "--older-than",
        metavar="AGE",
        help="expire: snapshots of this age: 12h, 7d. Default: what the table says, else 5d.",
    ),
]
RetainLast = Annotated[
    int | None,
    typer.Option("--retain-last", metavar="N", min=1, help="expire: keep the last N snapshots."),
]
OrphansOlderThan = Annotated[
    str,
    typer.Option(
        "--orphans-older-than",
        metavar="AGE",
        help=("orphans: only files older than this, at least 24h."),
    ),
]
AbortOlderThan = Annotated[
    str,
    typer.Option(
        "--abort-older-than",
        metavar="AGE",
        help="Remove branches and uploads of unfinished attempts of this age. "
        "Choose more than your longest load takes.",
    ),
]
RegisterOptimizers = Annotated[
    bool,
    typer.Option(
        "--register-glue-optimizers",
        help="Instead: let AWS Glue compact, expire and remove orphans on its own.",
    ),
]
OptimizerRole = Annotated[
    str | None,
    typer.Option("--optimizer-role", metavar="ARN", help="The role that Glue assumes for that."),
]


def maintain(
    pipeline: PipelineFile,
    destination: DestinationFile = None,
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
    """Compact and clean up a pipeline's tables, also while loads run.

    Aborts uploads of abandoned attempts. Iceberg: also drops their branches,
    compacts small files, rewrites deletes and manifests, expires old snapshots,
    removes orphans. Without --apply it only shows its plan.
    Exit code 0 when all is done, 1 when a step failed, 5 when loads conflicted with it.
    """
    from lakeload.commands.source_tables import with_found_tables
    from lakeload.documents.load import load_pipeline
    from lakeload.documents.spec import destination_spec, table_specs
    from lakeload.launch.run import refused
    from lakeload.launch.spec import new_attempt, run_options, select_tables
    from lakeload.launch.stop import StopRequests
    from lakeload.ui.display import Phases
    from lakeload.ui.maintain import Report, show_text, to_document
    from lakeload.ui.progress import PHASES

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
        raise InvalidInput(
            "`--optimizer-role` belongs to `--register-glue-optimizers`",
            hint="add `--register-glue-optimizers`",
        )
    phases = Phases(console.err, PHASES["documents"], quiet=console.silent())
    with StopRequests() as stop, phases:
        document = load_pipeline(pipeline, os.environ, destination)
        document = with_found_tables(document, "maintain", phases=phases)
        spec = destination_spec(document.destination)
        tables = select_tables(table_specs(document), table or ())
        if register_glue_optimizers:
            refuse_beside_optimizers(only, wanted)
        else:
            wanted = with_steps(wanted, only or (), spec.table_format)
        attempt, started = new_attempt(None), time.monotonic()
        folder: RunFolder | None = None
        phases.begin(PHASES["inspection"])
        done: Maintained | None
        try:
            stop.acting = apply
            if register_glue_optimizers:
                from lakeload.formats.iceberg.glue_optimizers import register

                done = register(spec, tables, optimizer_role, wanted)
            else:
                from lakeload.formats.registry import commands_of
                from lakeload.formats.tables import MaintenanceRequest

                sides = maintained_tables(tables, document.model.on_bad_value, spec, wanted)
                request = MaintenanceRequest(document.model.name, spec, tables, sides, wanted)
                done = commands_of(spec.table_format).maintain(request)
            stop.acting = False
            if done is None:
                from lakeload.commands.sync_once import LoadJob

                job = LoadJob(document, sides, attempt, run_options(document), master, conf or ())
                done, folder = _in_spark(job, wanted, stop, phases)
        except LakeloadError as error:
            done = refused(error)
        if apply and not only and not register_glue_optimizers and done.exit_code == ExitCode.OK:
            _remove_history(document.model.name, spec)
        stop.hold()
        phases.stop()
        seconds_taken = time.monotonic() - started
        name, log = document.model.name, folder.log if folder else None
        report = Report(attempt.job_id, name, apply, attempt.synced, seconds_taken, done, log)
        if output is OutputFormat.JSON:
            console.show_json(to_document(report))
        else:
            show_text(report, console.out, console.err, quiet=console.quiet())
        raise typer.Exit(done.exit_code)


_HISTORY_DAYS = 90
"""Days of the job history that stay."""


def _remove_history(pipeline: str, destination: DestinationSpec) -> None:
    """Remove old days of the job history. Without the permission they stay: nothing depends on
    them."""
    from lakeload.connections import Connections
    from lakeload.history.store import LakeHistory, LocalHistory, is_in_lake, remove_old_days
    from lakeload.launch.run_folder import runs_directory

    before = datetime.now(UTC).date() - timedelta(days=_HISTORY_DAYS)
    local = LocalHistory(runs_directory(os.environ), destination)
    try:
        removed = remove_old_days(local, pipeline, before)
        if is_in_lake(destination):
            session = Connections(destination, "maintain").before_spark
            removed += remove_old_days(LakeHistory(session, destination), pipeline, before)
    except (LakeloadError, OSError):
        logger.info("removing old days of the job history failed", exc_info=True)
    else:
        if removed:
            console.note(f"removed {counted(removed, 'day')} of the job history")


def _in_spark(
    job: LoadJob, wanted: MaintainSpec, stop: StopRequests, phases: Phases
) -> tuple[Maintained, RunFolder]:
    from lakeload.commands.spark_job import (
        Context,
        find_installation,
        launcher,
        prepared,
        spark_settings,
    )
    from lakeload.connections import Connections
    from lakeload.launch.run import launch_maintenance
    from lakeload.launch.run_folder import prune_run_folders
    from lakeload.launch.spec import build_job_spec
    from lakeload.probes.connection import preflight

    context = Context(os.environ, stop, console.err, console.quiet(), phases=phases)
    context.begin("machine")
    settings = spark_settings(job.document, job.master, job.conf)
    installation = find_installation(context.environment)
    context.begin("connection")
    destination = job.destination
    preflight(Connections(destination, f"maintain-{job.attempt.attempt_id}"))
    context.begin("preparation")
    settings, folder = prepared(
        job.document,
        settings,
        installation,
        # It reads no source.
        (),
        job.attempt,
        context,
    )
    spec = build_job_spec(job.document, destination, job.tables, job.attempt, folder)
    spec = replace(spec, job="maintain", maintain=wanted)
    with launcher(installation, settings, job.tables, context, doing="maintaining") as starts:
        outcome = launch_maintenance(spec, folder, starts)
    prune_run_folders(folder.path.parent)
    return outcome, folder


def maintained_tables(
    tables: Sequence[TableSpec],
    on_bad_value: OnBadValue,
    destination: DestinationSpec,
    wanted: MaintainSpec,
) -> tuple[TableSpec, ...]:
    """Return the tables, each with the side table of its rejected records. That has columns of its
    own, for which `--where` is not meant, and is always on the branch `main`."""
    if wanted.where or destination.iceberg.branch != "main":
        return tuple(tables)
    found = []
    for table in tables:
        found.append(table)
        if (table.on_bad_value or on_bad_value) == "QUARANTINE":
            source, name = table.source + REJECTED_SUFFIX, table.table + REJECTED_SUFFIX
            found.append(replace(table, source=source, table=name))
    return tuple(found)


def seconds(option: str, text: str) -> int:
    """Return the seconds of an age. Raises `InvalidInput`."""
    return int(parse_age(option, text).total_seconds())


def parse_orphan_age(text: str) -> int:
    """Return the seconds of `--orphans-older-than`. Raises `InvalidInput`."""
    age = seconds("--orphans-older-than", text)
    if age < SECONDS_A_DAY:
        raise InvalidInput(
            f"`--orphans-older-than {text}` is less than 24h: a load may still be writing files of "
            "that age",
            hint="leave it out, or give 24h or more",
        )
    return age


def with_steps(
    wanted: MaintainSpec, only: Sequence[str], table_format: TableFormat
) -> MaintainSpec:
    """Return what is wanted with the steps to take, in their order.

    Raises `InvalidInput` for a step there is not, and for a flag of one that is not taken.
    """
    possible = FORMATS[table_format].maintenance_steps
    named = [name.strip() for text in only for name in text.split(",")]
    for name in named:
        if name not in possible:
            known = name in get_args(Step)
            why = f"is no step for tables of {table_format}" if known else "is no step"
            there = f"there are {quoted(possible)}"
            raise InvalidInput(f"`--only {name}` {why}", hint=did_you_mean(name, possible) or there)
    steps = tuple(step for step in possible if not named or step in named)
    flags = {
        "--where": (wanted.where, "compact"),
        "--max-bytes": (wanted.max_bytes, "compact"),
        "--older-than": (wanted.older_than, "expire"),
        "--retain-last": (wanted.retain_last, "expire"),
    }
    for flag, (value, step) in flags.items():
        if value is not None and step not in steps:
            why = f"`--only` leaves `{step}` out"
            if step not in possible:
                why = f"tables of {table_format} have no such step"
            raise InvalidInput(
                f"`{flag}` is an option of the step `{step}`: {why}", hint=f"leave `{flag}` out"
            )
    return replace(wanted, steps=steps)


def refuse_beside_optimizers(only: Sequence[str] | None, wanted: MaintainSpec) -> None:
    """Raise `InvalidInput` for flags that choose what lakeload does itself."""
    if only or wanted.where is not None or wanted.max_bytes is not None:
        raise InvalidInput(
            "`--only`, `--where` and `--max-bytes` choose what lakeload does itself",
            hint="leave them out beside `--register-glue-optimizers`",
        )


def parse_max_bytes(text: str | None) -> int | None:
    """Return the bytes of `--max-bytes`. Raises `InvalidInput`."""
    if text is None:
        return None
    try:
        size = parse_size(text)
    except InvalidInput as error:
        raise InvalidInput(f"`--max-bytes`: {error.message}", hint=error.hint) from error
    if size < 1:
        raise InvalidInput(
            f"`--max-bytes {text}` leaves nothing to rewrite", hint="write it as `10GiB`"
        )
    return size
