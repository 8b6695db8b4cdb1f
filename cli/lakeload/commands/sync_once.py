"""One load of a pipeline's tables, from the configuration files to the outcome.

Prints nothing but progress and ends no process: a command shows the outcome and exits, and whoever
loads again and again calls it again and again. Nothing of one call is left for the next.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

from lakeload.commands.spark_job import (
    Context,
    chosen_master,
    find_installation,
    jar_sets,
    java_needed,
    launcher,
    own_jars,
    prepared,
    spark_settings,
)
from lakeload.connections import Connections
from lakeload.documents.load import PipelineDocument
from lakeload.documents.spec import destination_spec
from lakeload.formats.inspection import InspectionRequest, TableState, outcome_without_spark
from lakeload.formats.registry import commands_of
from lakeload.formats.round_costs import plan_rounds
from lakeload.formats.shared_files import shared_files
from lakeload.formats.waiting import Waiting
from lakeload.launch.outcome import Outcome, refused, with_warnings
from lakeload.launch.process import Installation
from lakeload.launch.properties import SparkSettings, takes_class_data
from lakeload.launch.run import RunJob, launch, refuse_without_any_input
from lakeload.launch.run_folder import prune_run_folders
from lakeload.launch.spec import Attempt, build_job_spec
from lakeload.launch.stop import NOTHING_WRITTEN
from lakeload.probes.connection import conditional_writes, preflight
from lakeload.runtimes import runtime_of
from lakeload_jobs.contract.codec import to_json
from lakeload_jobs.contract.errors import InvalidInput, LakeloadError, disk_full
from lakeload_jobs.contract.result import GOOD, TableResult
from lakeload_jobs.contract.spec import DestinationSpec, JobSpec, RunOptions, TableSpec
from lakeload_jobs.contract.traits import format_of
from lakeload_jobs.core.job_ids import new_attempt_id
from lakeload_jobs.core.sizes import counted

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LoadJob:
    """What is to be loaded, and how: the documents, the chosen tables, the attempt, the flags."""

    document: PipelineDocument
    tables: tuple[TableSpec, ...]
    attempt: Attempt
    options: RunOptions
    master: str | None = None
    conf: Sequence[str] = ()
    at_once: int | None = None
    """The tables loaded at a time; None: the `concurrency` of the document."""
    interval: timedelta | None = None
    """How often it is loaded; None: once."""

    @cached_property
    def destination(self) -> DestinationSpec:
        """Where it is loaded into."""
        return destination_spec(self.document.destination)

    def inspection(self, context: Context, *, loads: bool) -> InspectionRequest:
        """Return what all its tables have in common when they are inspected."""
        name = self.document.model.name
        return InspectionRequest(
            self.destination,
            name,
            self.attempt,
            self.options,
            loads=loads,
            spec=self.spec,
            reader=self.document.model.spark.reader,
            interval=self.interval,
            append_again=self._append_again(),
            on_table=lambda done, total: context.phases.at(done, total, "tables"),
        )

    @cached_property
    def spec(self) -> JobSpec:
        """The spec of the job, without what is known only when Spark starts."""
        master = chosen_master(self.document, self.master)
        spec = build_job_spec(
            self.document, self.destination, self.tables, self.attempt, None, self.options
        )
        return replace(spec, runtime=runtime_of(master).traits_of(master))

    def _append_again(self) -> frozenset[str]:
        """Return the tables with `on_append_again: ALLOW`."""
        model = self.document.model
        policies = {table.table: table.on_append_again for table in model.tables}
        return frozenset(
            name for name, own in policies.items() if (own or model.on_append_again) == "ALLOW"
        )


@dataclass(frozen=True)
class Synced:
    """What became of a job, and the log of Spark where it was started."""

    outcome: Outcome
    log: Path | None = None
    archive_for: tuple[str, ...] | None = None
    """The sets of jars of the AppCDS archive with which Spark would have started faster; None where
    it started with one, or would use none."""
    connections: Connections | None = None
    """The AWS identity with which its tables were inspected; None where that failed."""


@dataclass
class Kept:
    """What is kept between the loads of a pipeline: a running driver, the AWS session, and the
    warning about the store."""

    run: RunJob
    on_forget: Callable[[], None]
    """Lets the driver forget its connection too."""
    connections: Connections | None = None
    caveat: str | None = None
    waiting: Waiting = field(default_factory=Waiting)
    may_wait: bool = False
    """Whether new data may wait for a later round."""
    costs_are_known: bool = False
    """Whether a round has said what rounds cost."""
    format_jars: bool = False
    """Whether a round has needed the jars of the table format: later ones keep the driver that has
    them."""

    def forget(self) -> None:
        """Forget the AWS sessions: their credentials may be why a load failed."""
        self.connections = self.caveat = None
        self.on_forget()


def sync_once(job: LoadJob, context: Context, kept: Kept | None = None) -> Synced:
    """Load the tables of a job. A refusal is an outcome too, as any other end is.

    `kept` comes from earlier loads of the same pipeline, and is for later ones.

    Where native code ends the driver, further attempts load the tables that did not cause it: one
    after the other, unless it is known which table did.
    """
    synced = _sync_attempt(job, context, kept)
    results = {table.table: table for table in synced.outcome.tables}
    while (end := synced.outcome.native_end) is not None and synced.outcome.error is not None:
        names = {*end.loading, *end.waiting}
        if len(end.loading) == 1:
            names -= {*end.loading}
            error = replace(synced.outcome.error, stage="stage", retryable=False)
            results[end.loading[0]] = replace(results[end.loading[0]], error=error)
        if not names or not end.loading:
            break
        context.note("the Spark driver crashed: the tables that it did not load are loaded again")
        tables = tuple(table for table in job.tables if table.source in names)
        attempt = replace(job.attempt, attempt_id=new_attempt_id())
        others = replace(job, tables=tables, attempt=attempt, at_once=1)
        synced = _sync_attempt(others, context, kept)
        results |= {table.table: table for table in synced.outcome.tables}
    outcome = _with_tables(synced.outcome, tuple(results.values()))
    if kept is not None:
        kept.waiting.note_loaded(outcome.tables)
    return replace(synced, outcome=outcome)


def _with_tables(last: Outcome, tables: tuple[TableResult, ...]) -> Outcome:
    """Return the outcome of all tables, given that of the last driver."""
    if not tables:
        return last
    if last.kind == "INTERRUPTED" and last.error is not None and not last.tables:
        loaded = sum(table.status in GOOD for table in tables)
        so_far = f"{loaded} of {counted(len(tables), 'table')} had been loaded"
        message = last.error.message.replace(NOTHING_WRITTEN, so_far)
        return replace(last, tables=tables, error=replace(last.error, message=message))
    if last.error is not None or last.kind == "INTERRUPTED":
        return replace(last, tables=tables)
    return last if len(tables) == len(last.tables) else Outcome.of(tables, last.usage)


def _sync_attempt(job: LoadJob, context: Context, kept: Kept | None) -> Synced:
    """Load the tables of a job with one driver, or with two where some need the jars of their
    format after all."""
    inspected: Connections | None = None
    try:
        context.stop.begin()
        context.begin("machine")
        settings = spark_settings(job.document, job.master, job.conf)
        installation = find_installation(context.environment)
        local = settings.runtime.traits.tasks_share_driver
        if local:
            refuse_without_any_input(job.tables)
        connections = kept.connections if kept else None
        if connections is None:
            connections = Connections(job.destination, f"sync-{job.attempt.attempt_id}")
            context.begin("connection")
            preflight(connections)
        context.begin("inspection")
        request = job.inspection(context, loads=True)
        states = commands_of(job.destination.table_format).inspect(
            connections.before_spark, job.tables, request
        )
        inspected = connections
        check_job_known(states)
        if kept is not None:
            kept.connections = connections
            if kept.may_wait:
                states = kept.waiting.with_waiting(states, datetime.now(UTC))
        if done := outcome_without_spark(states):
            return Synced(_with_costs(done, states, job, kept), connections=connections)
        context.begin("preparation")
        warnings = _warnings(states, connections, kept)
        # Of rounds the first one says it.
        shared = (
            shared_files(states, request, local=local)
            if kept is None or not kept.costs_are_known
            else {}
        )
        tables = [
            replace(state.table, input_bytes=state.report.bytes, inspected=to_json(state.inspected))
            for state in states
            # A driver that stays is given what is new: the others need no further look.
            if kept is None or state.has_work
        ]
        drivers = _Drivers(job, settings, installation, connections, context, kept)
        synced = drivers.load_all(tables, format_jars=_needs_java(job, states, kept))
    except (LakeloadError, OSError) as error:
        return Synced(_refused(error), connections=inspected)
    if not synced.outcome.tables:
        return synced
    outcome = _located(_with_idle(synced.outcome, states), states)
    outcome = _with_costs(outcome, states, job, kept)
    return replace(synced, outcome=with_warnings(outcome, shared, warnings))


def _refused(error: LakeloadError | OSError) -> Outcome:
    """Return the outcome of a load that ended before any table did. Raises what is neither a
    refusal nor a full disk."""
    if isinstance(error, LakeloadError):
        return refused(error)
    if (full := disk_full(error)) is None:
        raise error
    return refused(full)


@dataclass(frozen=True)
class _Drivers:
    """The drivers of one attempt at a job, and what they have in common."""

    job: LoadJob
    settings: SparkSettings
    installation: Installation
    connections: Connections
    context: Context
    kept: Kept | None

    def load_all(self, tables: Sequence[TableSpec], *, format_jars: bool) -> Synced:
        """Load tables with one driver, and those that need the jars of their format after all with
        another one, which has them."""
        job, context = self.job, self.context
        first = self._load(tables, job.attempt, format_jars=format_jars)
        late = first.outcome.needs_java
        if not late or first.outcome.kind == "INTERRUPTED":
            return first
        waiting = [table for table in tables if table.source in late]
        needed = {table.target: late[table.source] for table in waiting}
        if context.stop.requested is None:
            context.note(java_needed(needed, job.destination))
        if self.kept is not None:
            self.kept.format_jars = True
        context.begin("preparation")
        again = replace(job.attempt, attempt_id=new_attempt_id())
        last = self._load(waiting, again, format_jars=True)
        results = {table.table: table for table in (*first.outcome.tables, *last.outcome.tables)}
        outcome = _with_tables(last.outcome, tuple(results.values()))
        used = first.outcome.usage.then(outcome.usage) if first.outcome.usage else outcome.usage
        return replace(last, outcome=replace(outcome, usage=used), log=last.log or first.log)

    def _load(self, tables: Sequence[TableSpec], attempt: Attempt, *, format_jars: bool) -> Synced:
        """Load tables with one driver."""
        job, context = self.job, self.context
        log: Path | None = None
        archive_for: tuple[str, ...] | None = None
        try:
            context.stop.begin()
            settings, folder = prepared(
                job.document,
                self.settings,
                self.installation,
                job.tables,
                attempt,
                context,
                format_jars=format_jars,
            )
            log = folder.log
            if (
                settings.archive is None
                and not own_jars(job.tables)
                and takes_class_data(settings, context.environment)
            ):
                archive_for = jar_sets(job.document, job.tables, format_jars=format_jars)
            if settings.runtime.traits.tasks_share_driver and self.kept is None:
                # Driver and workers need not assume the role again.
                handed = self.connections.before_spark.handover()
                context = replace(context, environment={**context.environment, **handed})
            spec = build_job_spec(
                job.document, job.destination, tables, attempt, folder, job.options
            )
            if job.at_once is not None:
                spec = replace(spec, concurrency=job.at_once)
            run = self.kept.run if self.kept else None
            with launcher(self.installation, settings, tables, context, run=run) as starts:
                context.timings.begin("spark")
                outcome = launch(spec, folder, starts)
                context.timings.begin("summary")
            prune_run_folders(folder.path.parent)
        except (LakeloadError, OSError) as error:
            outcome = _refused(error)
        return Synced(outcome, log, archive_for, self.connections)


def _needs_java(job: LoadJob, states: Sequence[TableState], kept: Kept | None) -> bool:
    """Return whether Spark is started with the jars of the table format, as far as the inspection
    tells. Rounds ask it of tables without anything new too: a driver that stays loads them
    later."""
    if kept is not None and kept.format_jars:
        return True
    for state in states:
        if state.error is not None or not (kept is not None or state.has_work):
            continue
        if reason := state.needs_java(job.spec):
            logger.info("%s needs the jars of its format: %s", state.table.target, reason)
            if kept is not None:
                kept.format_jars = True
            return True
    return False


def check_job_known(states: Sequence[TableState]) -> None:
    """Raise `InvalidInput` for `--retry-rejected` with a job that has loaded none of the tables."""
    jobs = [state.report.unknown_job for state in states]
    if jobs and all(jobs):
        raise InvalidInput(
            f"`--retry-rejected {jobs[0]}`: no table has a load of this job",
            hint="`lakeload runs` lists the jobs and what they have rejected; those of which "
            "nothing is left, or that came long ago, are not known any more",
        )


def _with_idle(outcome: Outcome, states: Sequence[TableState]) -> Outcome:
    """Return the outcome with the tables that Spark was not given, in the order of the job."""
    reported = {table.table: table for table in outcome.tables}
    if len(reported) == len(states):
        return outcome
    # One that Spark was given need not have a result before.
    tables = (reported.get(state.table.source) or state.result for state in states)
    return _with_tables(outcome, tuple(tables))


def _with_costs(
    outcome: Outcome, states: Sequence[TableState], job: LoadJob, kept: Kept | None
) -> Outcome:
    """Return the outcome of the first round with what rounds cost."""
    if kept is None or kept.costs_are_known:
        return outcome
    kept.costs_are_known = True
    planned = {
        state.table.source: plan_rounds(state, job.interval, job.destination.table_format)
        for state in states
    }
    tables = tuple(
        replace(
            table,
            warnings=(*table.warnings, *rounds.warnings),
            notes=(*table.notes, *rounds.notes),
        )
        if (rounds := planned.get(table.table)) is not None
        else table
        for table in outcome.tables
    )
    return replace(outcome, tables=tables)


def _located(outcome: Outcome, states: Sequence[TableState]) -> Outcome:
    """Return the outcome with the location of tables that failed, as far as it was known before."""
    known = {state.table.source: state.location for state in states}
    tables = tuple(
        replace(table, location=table.location or known.get(table.table))
        for table in outcome.tables
    )
    return replace(outcome, tables=tables)


def _warnings(
    states: Sequence[TableState], connections: Connections, kept: Kept | None
) -> set[str]:
    """Return what could not be found out before Spark starts, and what a single writer risks.

    Raises `Refused` for a store in which two writers could damage a table. Where the commits are a
    catalog's, the store is asked for nothing.
    """
    warnings = {table.caveat for table in states}
    if format_of(connections.destination).commits_in_store:
        caveat = kept.caveat if kept else None
        if caveat is None:
            caveat = conditional_writes(connections) or ""
        if kept is not None:
            kept.caveat = caveat
        warnings.add(caveat)
    return warnings - {""}
